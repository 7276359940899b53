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
	"github.com/reprise-sqs/reprise/sqsserver"
)

func consumeByPriority(ctx context.Context, sqsClient *sqs.Client, urgentURL, ordersURL, reportsURL string) error {
	pool, err := reprise.NewPool(reprise.PoolConfig{Concurrency: 32})
	if err != nil {
		return err
	}
	_, urgent := reprise.New(sqsClient, urgentURL, reprise.JSON(ship), reprise.Config{Pool: pool, Priority: 1})
	_, orders := reprise.New(sqsClient, ordersURL, reprise.JSON(ship), reprise.Config{Pool: pool, Weight: 3})
	_, reports := reprise.New(sqsClient, reportsURL, reprise.JSON(ship), reprise.Config{Pool: pool, Concurrency: 24})
	if err := errors.Join(urgent, orders, reports); err != nil {
		return err
	}
	return pool.Run(ctx) // all of them; nil after a clean drain
}

// Three queues share 32 workers.
func ExamplePool_Run() {
	local := sqsserver.New(sqsserver.Config{})
	server := httptest.NewServer(local)
	defer server.Close()
	client := sqs.New(sqs.Options{BaseEndpoint: &server.URL, Region: "us-east-1", Credentials: aws.AnonymousCredentials{}})
	ctx, stop := context.WithCancel(context.Background())

	var urls []string
	for _, name := range []string{"urgent", "orders", "reports"} {
		queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})
		if err != nil {
			log.Fatal(err)
		}
		urls = append(urls, *queue.QueueUrl)
	}
	if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &urls[1], MessageBody: aws.String(`{"id":"o-1","sku":"teapot"}`)}); err != nil {
		log.Fatal(err)
	}
	warehouse.Ship = func(_ context.Context, o Order) error {
		fmt.Printf("shipped %s of order %s\n", o.SKU, o.ID)
		stop()                                               // as a SIGTERM would
		time.AfterFunc(300*time.Millisecond, local.EndPolls) // else the idle long polls take up to 20 s
		return nil
	}
	fmt.Println(consumeByPriority(ctx, client, urls[0], urls[1], urls[2]))
	// Output:
	// shipped teapot of order o-1
	// <nil>
}

// One worker for two queues: what is urgent comes first, whatever waits in the other.
func ExamplePool() {
	// An SQS in this process; on AWS: sqs.NewFromConfig(cfg, reprise.Tuned(reprise.Transport{})).
	local := sqsserver.New(sqsserver.Config{})
	server := httptest.NewServer(local)
	defer server.Close()
	client := sqs.New(sqs.Options{BaseEndpoint: &server.URL, Region: "us-east-1", Credentials: aws.AnonymousCredentials{}})
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
		queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})
		if err != nil {
			log.Fatal(err)
		}
		cfg := reprise.Config{Pool: pool, Priority: priority, StopBudget: 200 * time.Millisecond}
		if _, err := reprise.New(client, *queue.QueueUrl, handler, cfg); err != nil {
			log.Fatal(err)
		}
		send[name] = func() {
			if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: &name}); err != nil {
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
