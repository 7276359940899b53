package sqsserver_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// The server is an http.Handler: in a test it needs no process and no port of its
// own, and hours pass at once.
func ExampleServer_Advance() {
	server := sqsserver.New(sqsserver.Config{})
	defer server.Close()
	web := httptest.NewServer(server)
	defer web.Close()
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &web.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})

	ctx := context.Background()
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		panic(err)
	}
	_, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("hello"), DelaySeconds: 900})
	if err != nil {
		panic(err)
	}
	if err := server.Advance(15 * time.Minute); err != nil {
		panic(err)
	}
	out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl})
	if err != nil {
		panic(err)
	}
	fmt.Println(*out.Messages[0].Body)
	// Output: hello
}
