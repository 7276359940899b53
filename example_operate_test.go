package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

// sendOne sends a message to a new queue, and returns the queue's URL.
func sendOne(ctx context.Context, client *sqs.Client, name, body string) string {
	url := newQueue(ctx, client, name)
	if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(body)}); err != nil {
		log.Fatal(err)
	}
	return url
}

// A message whose work cannot be done yet has not failed: it comes back later, and uses up no
// attempt.
func ExampleRelease() {
	client, closeServer := localSQS()
	defer closeServer()
	ctx, stop := context.WithCancel(context.Background())
	orders := sendOne(ctx, client, "orders", "o-1")

	calls := 0
	consumer, err := reprise.New(client, orders, reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		calls++
		fmt.Printf("call %d, attempt %d\n", calls, m.Attempt)
		if calls == 1 {
			return reprise.Release(time.Second, errors.New("the order is not paid yet"))
		}
		stop() // as a SIGTERM would
		return nil
	}), reprise.Config{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(consumer.Run(ctx))
	// Output:
	// call 1, attempt 1
	// call 2, attempt 1
	// <nil>
}

// A consumer is paused for maintenance. The messages that it holds keep their leases, and lose
// neither a receive nor an attempt.
func ExampleConsumer_Pause() {
	client, closeServer := localSQS()
	defer closeServer()
	ctx, stop := context.WithCancel(context.Background())
	orders := sendOne(ctx, client, "orders", "o-1")

	consumer, err := reprise.New(client, orders, reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		fmt.Println("shipped", m.Body)
		stop() // as a SIGTERM would
		return nil
	}), reprise.Config{})
	if err != nil {
		log.Fatal(err)
	}
	consumer.Pause() // from any goroutine, such as that of an admin's request
	done := make(chan error)
	go func() { done <- consumer.Run(ctx) }()
	time.Sleep(100 * time.Millisecond)
	fmt.Println("paused:", consumer.Status().Paused, "attempts:", consumer.Status().Counts.Attempts)
	consumer.Resume()
	fmt.Println(<-done)
	// Output:
	// paused: true attempts: 0
	// shipped o-1
	// <nil>
}

// Two observers on one consumer: one of the user's own, and one of a package.
func ExampleObservers() {
	client, closeServer := localSQS()
	defer closeServer()
	ctx, stop := context.WithCancel(context.Background())
	orders := sendOne(ctx, client, "orders", "o-1")

	attempts := reprise.Observer{Attempt: func(_ context.Context, a reprise.Attempt) {
		fmt.Printf("attempt %d at %s: %v\n", a.Message.Attempt, a.Message.Body, a.Outcome)
	}}
	ends := reprise.Observer{Settled: func(_ context.Context, s reprise.Settled) { // or telemetry.Observer() of repriseotel
		fmt.Printf("%s is settled: %v, in %d request\n", s.Message.Body, s.Outcome, s.Requests)
		stop() // as a SIGTERM would
	}}
	consumer, err := reprise.New(client, orders, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
		return nil
	}), reprise.Config{Observer: reprise.Observers(attempts, ends)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(consumer.Run(ctx))
	// Output:
	// attempt 1 at o-1: delete
	// o-1 is settled: delete, in 1 request
	// <nil>
}
