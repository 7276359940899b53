package reprise_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func ExampleSender() {
	// An SQS in this process; on AWS: sqs.NewFromConfig(cfg, reprise.Tuned(reprise.Transport{})).
	server := httptest.NewServer(sqsserver.New(sqsserver.Config{}))
	defer server.Close()
	client := sqs.New(sqs.Options{BaseEndpoint: &server.URL, Region: "us-east-1", Credentials: aws.AnonymousCredentials{}})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		fmt.Println(err)
		return
	}
	sender, err := reprise.NewSender(client, *queue.QueueUrl, reprise.SenderConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}

	// Send waits for SQS's answers.
	sent, err := sender.Send(ctx, reprise.Outgoing{Body: "order 1"}, reprise.Outgoing{Body: "order 2"})
	fmt.Println(len(sent), "messages sent:", err)

	// Submit does not: the function is told.
	err = sender.Submit(ctx, reprise.Outgoing{Body: "order 3"}, func(s reprise.Sent) {
		fmt.Println("and another:", s.Err)
	})
	if err != nil {
		fmt.Println(err)
	}
	unsent, err := sender.Close(ctx)
	fmt.Println(len(unsent), "left:", err)
	// Output:
	// 2 messages sent: <nil>
	// and another: <nil>
	// 0 left: <nil>
}
