package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// One account's bookings stay in order, although the first one fails at first. Other accounts go on
// meanwhile.
func ExampleFIFO() {
	client, closeServer := localSQS()
	defer closeServer()
	ctx, stop := context.WithCancel(context.Background())
	bookings, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName:  new("bookings.fifo"),
		Attributes: map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"open the account", "book 10", "book 20"} {
		_, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: bookings.QueueUrl, MessageBody: &body, MessageGroupId: new("account-7")})
		if err != nil {
			log.Fatal(err)
		}
	}

	consumer, err := reprise.New(client, *bookings.QueueUrl, reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		fmt.Printf("%s, attempt %d\n", m.Body, m.Attempt)
		switch {
		case m.Body == "open the account" && m.Attempt == 1:
			return errors.New("the ledger is locked")
		case m.Body == "book 20":
			stop() // as a SIGTERM would
		}
		return nil
	}), reprise.Config{
		FIFO:  reprise.FIFOHold, // the default: a group waits here for up to a minute
		Retry: retry.Policy{Backoff: retry.Constant(50 * time.Millisecond), MaxAttempts: 5},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(consumer.Run(ctx))
	// Output:
	// open the account, attempt 1
	// open the account, attempt 2
	// book 10, attempt 1
	// book 20, attempt 1
	// <nil>
}
