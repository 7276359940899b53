package repriselambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// Order is what the example's messages hold.
type Order struct {
	ID string `json:"id"`
}

// ship stands for the work.
func ship(_ context.Context, o Order) error {
	if o.ID == "o-2" {
		return errors.New("no carrier today")
	}
	fmt.Println("shipping", o.ID)
	return nil
}

func ExampleSQS() {
	sqsClient := agreeable{} // stands for sqs.NewFromConfig(cfg)

	handle, err := repriselambda.SQS(reprise.JSON(ship), repriselambda.Config{
		Client: sqsClient,
		Retry: retry.Policy{
			Backoff:     retry.Exponential{Base: 10 * time.Second, Max: 6 * time.Hour},
			MaxAttempts: 20,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	// In the function: lambda.Start(handle)

	event := repriselambda.Event{Records: []repriselambda.Record{
		{MessageID: "m-1", ReceiptHandle: "h-1", Body: `{"id":"o-1"}`, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:orders"},
		{MessageID: "m-2", ReceiptHandle: "h-2", Body: `{"id":"o-2"}`, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:orders"},
	}}
	response, err := handle(context.Background(), event)
	if err != nil {
		log.Fatal(err)
	}
	reply, err := json.Marshal(response)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(reply))
	// Output:
	// shipping o-1
	// {"batchItemFailures":[{"itemIdentifier":"m-2"}]}
}

// insertOrders stands for one insert of many rows.
func insertOrders(_ context.Context, orders []Order, _ []*reprise.Message) []error {
	fmt.Println("inserting", orders)
	return nil // or a verdict for each
}

func ExampleSQSBatch() {
	sqsClient := agreeable{} // stands for sqs.NewFromConfig(cfg)

	handle, err := repriselambda.SQSBatch(reprise.JSONBatch(insertOrders), repriselambda.BatchConfig{Config: repriselambda.Config{
		Client:        sqsClient,
		DeadLetterURL: "https://sqs.us-east-1.amazonaws.com/123456789012/orders-dead",
	}})
	if err != nil {
		log.Fatal(err)
	}
	// In the function: lambda.Start(handle)

	const orders = "arn:aws:sqs:us-east-1:123456789012:orders"
	response, err := handle(context.Background(), repriselambda.Event{Records: []repriselambda.Record{
		{MessageID: "m-1", ReceiptHandle: "h-1", Body: `{"id":"o-1"}`, EventSourceARN: orders},
		{MessageID: "m-2", ReceiptHandle: "h-2", Body: `not an order`, EventSourceARN: orders}, // to the dead-letter queue
		{MessageID: "m-3", ReceiptHandle: "h-3", Body: `{"id":"o-3"}`, EventSourceARN: orders},
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(response.BatchItemFailures), "come again")
	// Output:
	// inserting [{o-1} {o-3}]
	// 0 come again
}
