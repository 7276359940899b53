package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func consumeByPriority(ctx context.Context, sqsClient *sqs.Client, urgentURL, ordersURL, reportsURL string) error {
	pool, err := reprise.NewPool(reprise.PoolConfig{Concurrency: 32})
	if err != nil {
		return err
	}
	_, urgentErr := pool.Add(sqsClient, urgentURL, reprise.JSON(ship), reprise.Share{Priority: 1}, reprise.Config{})
	_, ordersErr := pool.Add(sqsClient, ordersURL, reprise.JSON(ship), reprise.Share{Weight: 3}, reprise.Config{})
	_, reportsErr := pool.Add(sqsClient, reportsURL, reprise.JSON(ship), reprise.Share{}, reprise.Config{Concurrency: 24})
	if err := errors.Join(urgentErr, ordersErr, reportsErr); err != nil {
		return err
	}
	return pool.Run(ctx) // all of them; nil after a clean drain
}

func consumeWithLane(ctx context.Context, sqsClient *sqs.Client, ordersURL, laneURL, deadLetterURL string) error {
	consumer, err := reprise.New(sqsClient, ordersURL, reprise.JSON(ship), reprise.Config{
		Concurrency:   32, // of both queues together
		RetryLane:     reprise.RetryLane{URL: laneURL},
		DeadLetterURL: deadLetterURL,
		Retry:         retry.Policy{MaxAttempts: 20},
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

// An order that fails at first comes back through the retry lane.
func ExampleConfig_retryLane() {
	client, closeServer := localSQS()
	defer closeServer()
	ctx, stop := context.WithCancel(context.Background())
	orders, lane, dead := newQueue(ctx, client, "orders"), newQueue(ctx, client, "orders-retries"), newQueue(ctx, client, "orders-dead")
	if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &orders, MessageBody: aws.String(`{"id":"o-1","sku":"teapot"}`)}); err != nil {
		log.Fatal(err)
	}
	attempts := 0
	warehouse.Ship = func(_ context.Context, o Order) error {
		if attempts++; attempts == 1 {
			return errors.New("closed")
		}
		fmt.Printf("shipped %s of order %s at attempt %d\n", o.SKU, o.ID, attempts)
		stop() // as a SIGTERM would
		return nil
	}
	fmt.Println(consumeWithLane(ctx, client, orders, lane, dead))
	// Output:
	// shipped teapot of order o-1 at attempt 2
	// <nil>
}

// localSQS is an SQS in this process, and a client of it; on AWS that is
// sqs.NewFromConfig(cfg, reprise.Tuned(reprise.Transport{})).
func localSQS() (client *sqs.Client, closeServer func()) {
	server := httptest.NewServer(sqsserver.New(sqsserver.Config{}))
	return sqs.New(sqs.Options{BaseEndpoint: &server.URL, Region: "us-east-1", Credentials: aws.AnonymousCredentials{}}), server.Close
}

// newQueue creates a queue and returns its URL.
func newQueue(ctx context.Context, client *sqs.Client, name string) string {
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		log.Fatal(err)
	}
	return *queue.QueueUrl
}

// Three queues share 32 workers.
func ExamplePool_Run() {
	client, closeServer := localSQS()
	defer closeServer()
	ctx, stop := context.WithCancel(context.Background())
	urgent, orders, reports := newQueue(ctx, client, "urgent"), newQueue(ctx, client, "orders"), newQueue(ctx, client, "reports")
	if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &orders, MessageBody: aws.String(`{"id":"o-1","sku":"teapot"}`)}); err != nil {
		log.Fatal(err)
	}
	warehouse.Ship = func(_ context.Context, o Order) error {
		fmt.Printf("shipped %s of order %s\n", o.SKU, o.ID)
		stop() // as a SIGTERM would
		return nil
	}
	fmt.Println(consumeByPriority(ctx, client, urgent, orders, reports))
	// Output:
	// shipped teapot of order o-1
	// <nil>
}

// One worker for two queues: urgent messages go first, whatever waits in the other queue.
func ExamplePool() {
	client, closeServer := localSQS()
	defer closeServer()
	ctx, stop := context.WithCancel(context.Background())

	pool, err := reprise.NewPool(reprise.PoolConfig{Concurrency: 1})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan string)
	handler := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		done <- m.Body
		return nil
	})
	send := map[string]func(){}
	for priority, name := range []string{"report", "urgent"} {
		url := newQueue(ctx, client, name)
		cfg := reprise.Config{StopBudget: 200 * time.Millisecond}
		if _, err := pool.Add(client, url, handler, reprise.Share{Priority: priority}, cfg); err != nil {
			log.Fatal(err)
		}
		send[name] = func() {
			if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &name}); err != nil {
				log.Fatal(err)
			}
		}
	}
	stopped := make(chan error)
	go func() { stopped <- pool.Run(ctx) }()

	send["report"]()
	for pool.Status().Handlers == 0 { // until it is being handled
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		send["report"]()
		send["urgent"]()
	}
	for pool.Status().Queues[0].Status.Waiting < 2 { // of the urgent ones
		time.Sleep(time.Millisecond)
	}
	for range 5 {
		fmt.Println(<-done)
	}
	stop()
	<-stopped
	// Output:
	// report
	// urgent
	// urgent
	// report
	// report
}
