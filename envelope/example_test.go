package envelope_test

import (
	"context"
	"fmt"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/envelope"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/middleware"
)

// Order is what the examples' messages hold.
type Order struct {
	ID string `json:"id"`
}

func ship(ctx context.Context, o Order) error {
	e, wrapped := envelope.From(ctx)
	if !wrapped {
		fmt.Println("shipping", o.ID)
		return nil
	}
	fmt.Printf("shipping %s, %s of %s\n", o.ID, e.Type, e.Source)
	return nil
}

func ExampleUnwrap() {
	handler := envelope.Unwrap(envelope.SNS, envelope.EventBridge)(reprise.JSON(ship))

	for _, body := range []string{
		`{"id":"o-1"}`,
		`{"version":"0","id":"6a7e8feb","detail-type":"OrderPlaced","source":"com.acme.shop","detail":{"id":"o-2"}}`,
		`{"Type":"Notification","MessageId":"22b80b92","TopicArn":"arn:aws:sns:us-east-1:123456789012:orders","Message":"{\"id\":\"o-3\"}"}`,
		`{"Type":"Notification","MessageId":"22b80b93","TopicArn":"arn:aws:sns:us-east-1:123456789012:orders"}`,
	} {
		if err := handler.Handle(context.Background(), &reprise.Message{Body: body}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// shipping o-1
	// shipping o-2, OrderPlaced of com.acme.shop
	// shipping o-3, Notification of arn:aws:sns:us-east-1:123456789012:orders
	// permanent: opening an envelope: SNS notification: "Message" is missing or empty
}

func ExampleKey() {
	decoders := []envelope.Decoder{envelope.SNS, envelope.EventBridge}
	store := idempotency.NewMemory(idempotency.MemoryConfig{}) // one that processes share, in production
	handler := middleware.Chain(
		middleware.Must(idempotency.New(store, idempotency.Config{Key: envelope.Key(decoders...)})),
		envelope.Unwrap(decoders...),
	)(reprise.JSON(ship))

	// EventBridge delivers at least once: one event, two messages.
	event := `{"version":"0","id":"6a7e8feb","detail-type":"OrderPlaced","source":"com.acme.shop","detail":{"id":"o-2"}}`
	for _, id := range []string{"m-1", "m-2"} {
		if err := handler.Handle(context.Background(), &reprise.Message{ID: id, OriginID: id, Body: event}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// shipping o-2, OrderPlaced of com.acme.shop
}

func ExampleCloudEvents() {
	e, err := envelope.CloudEvents(`{"specversion":"1.0","id":"e-1","source":"/shop","type":"com.acme.order","datacontenttype":"text/plain","data":"teapot"}`)
	fmt.Println(e.Type, e.Body, e.Key(), err)
	// Output: com.acme.order teapot cloudevents:5:/shop:e-1 <nil>
}

func ExampleS3() {
	e, err := envelope.S3(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventTime":"2026-01-01T00:00:00.000Z","eventName":"ObjectCreated:Put",` +
		`"s3":{"bucket":{"name":"photos"},"object":{"key":"red+flower.jpg","sequencer":"0055AED6DCD90281E5"}}}]}`)
	fmt.Println(e.Type, e.Source, e.Subject, err)
	// Output: ObjectCreated:Put photos red flower.jpg <nil>
}
