//go:build unix

package reprise_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

func consumeUntilSignal(sqsClient *sqs.Client, queueURL string, handler reprise.Handler) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once

	consumer, err := reprise.New(sqsClient, queueURL, handler, reprise.Config{})
	if err != nil {
		return err
	}
	return consumer.Run(ctx) // after the first it drains, within Config.StopBudget
}

// The first Ctrl-C, or SIGTERM, stops gracefully: handlers end, and messages that have not started
// go back to the queue. A second one is no longer caught.
func ExampleConsumer_Run() {
	client, closeServer := localSQS()
	defer closeServer()
	orders := newQueue(context.Background(), client, "orders")
	if _, err := client.SendMessage(context.Background(), &sqs.SendMessageInput{QueueUrl: &orders, MessageBody: aws.String("o-1")}); err != nil {
		log.Fatal(err)
	}
	err := consumeUntilSignal(client, orders, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil { // as an orchestrator would
			log.Fatal(err)
		}
		fmt.Println("shipped", m.Body)
		return nil
	}))
	fmt.Println(err)
	// Output:
	// shipped o-1
	// <nil>
}
