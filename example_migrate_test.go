package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

// loop is what a program without Reprise often has. docs/migrate.md shows its replacement.
func loop(ctx context.Context, client *sqs.Client, queue string, handle func(context.Context, string) error) error {
	for {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
		if err != nil {
			return err
		}
		for _, m := range out.Messages {
			if err := handle(ctx, *m.Body); err != nil {
				continue // it comes again when the queue's visibility timeout ends
			}
			if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return err
			}
		}
	}
}

func consumeWith(ctx context.Context, client *sqs.Client, queue string, handle func(context.Context, string) error) error {
	consumer, err := reprise.New(client, queue, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		return handle(ctx, m.Body)
	}), reprise.Config{})
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

// Both have the same queue, one after the other.
func Example_migrate() {
	client, closeServer := localSQS()
	defer closeServer()
	orders := newQueue(context.Background(), client, "orders")
	for i, run := range []func(context.Context, *sqs.Client, string, func(context.Context, string) error) error{loop, consumeWith} {
		body := fmt.Sprintf("o-%d", i+1)
		if _, err := client.SendMessage(context.Background(), &sqs.SendMessageInput{QueueUrl: &orders, MessageBody: &body}); err != nil {
			log.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		err := run(ctx, client, orders, func(_ context.Context, body string) error {
			fmt.Println("shipping", body)
			stop()
			return nil
		})
		fmt.Println("ended:", err == nil || errors.Is(err, context.Canceled))
	}
	// Output:
	// shipping o-1
	// ended: true
	// shipping o-2
	// ended: true
}
