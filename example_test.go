package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Order is the content of the example's queue.
type Order struct {
	ID  string `json:"id"`
	SKU string `json:"sku"`
}

// warehouse stands for the service that the example's handler calls.
var warehouse = struct {
	ErrUnknownSKU, ErrBusy, ErrDown error
	Ship                            func(context.Context, Order) error
}{ErrUnknownSKU: errors.New("unknown SKU"), ErrBusy: errors.New("busy"), ErrDown: errors.New("down")}

func ship(ctx context.Context, o Order) error {
	err := warehouse.Ship(ctx, o)
	switch {
	case errors.Is(err, warehouse.ErrUnknownSKU):
		return reprise.Permanent(err) // dead-lettered now
	case errors.Is(err, warehouse.ErrBusy):
		return reprise.RetryAfter(time.Minute, err)
	case errors.Is(err, warehouse.ErrDown):
		return reprise.Unavailable(err) // for the circuit breaker; net/http, gRPC and the like are known
	}
	return err // nil deletes; any other error is retried by policy
}

func consume(ctx context.Context, sqsClient *sqs.Client, queueURL string) error {
	consumer, err := reprise.New(sqsClient, queueURL, reprise.JSON(ship), reprise.Config{
		Concurrency: 32,
		Retry: retry.Policy{
			Backoff:     retry.Exponential{Base: 2 * time.Second, Max: 12 * time.Hour},
			Jitter:      retry.Full,
			MaxAttempts: 20,
			MaxAge:      24 * time.Hour,
		},
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx) // blocks; nil after a clean drain
}

func ExampleNew() {
	// An SQS in this process; on AWS: sqs.NewFromConfig(cfg, reprise.Tuned(reprise.Transport{})).
	server := httptest.NewServer(sqsserver.New(sqsserver.Config{}))
	defer server.Close()
	client := sqs.New(sqs.Options{
		BaseEndpoint: &server.URL,
		Region:       "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	}, reprise.Tuned(reprise.Transport{}))

	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:    queue.QueueUrl,
		MessageBody: aws.String(`{"id":"o-1","sku":"teapot"}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	warehouse.Ship = func(_ context.Context, o Order) error {
		fmt.Printf("shipped %s of order %s\n", o.SKU, o.ID)
		stop() // as a SIGTERM would
		return nil
	}
	fmt.Println(consume(ctx, client, *queue.QueueUrl))
	// Output:
	// shipped teapot of order o-1
	// <nil>
}
