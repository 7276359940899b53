package s3payload_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/middleware"
)

// Order is the content of the examples' messages.
type Order struct {
	ID    string   `json:"id"`
	Items []string `json:"items"`
}

// ship stands for the work.
func ship(_ context.Context, o Order) error {
	fmt.Println("shipping", o.ID, "with", len(o.Items), "items")
	return nil
}

// Both sides: a sender whose messages may have any size, and their consumer.
func Example() {
	send := func(ctx context.Context, cfg aws.Config, queueURL string, orders ...reprise.Outgoing) error {
		payloads, err := s3payload.New(s3.NewFromConfig(cfg), s3payload.Config{Bucket: "shop-payloads", Prefix: "orders/"})
		if err != nil {
			return err
		}
		sender, err := reprise.NewSender(sqs.NewFromConfig(cfg), queueURL, reprise.SenderConfig{})
		if err != nil {
			return err
		}
		defer sender.Close(ctx)
		_, err = payloads.Send(ctx, sender, orders...)
		return err
	}
	consume := func(ctx context.Context, cfg aws.Config, queueURL string) error {
		payloads, err := s3payload.New(s3.NewFromConfig(cfg), s3payload.Config{Bucket: "shop-payloads", Prefix: "orders/"})
		if err != nil {
			return err
		}
		consumer, err := reprise.New(sqs.NewFromConfig(cfg), queueURL, payloads.Fetch(reprise.JSON(ship)), reprise.Config{
			AfterDelete: payloads.Remove, // or leave it out, and let a lifecycle rule remove objects
		})
		if err != nil {
			return err
		}
		return consumer.Run(ctx)
	}
	_, _ = send, consume // they need AWS: the tests of this package do the same against servers of their own
}

// Compress large bodies first: the result may fit into the message, or is at least a smaller
// object. The handler's side has the reverse order.
func ExamplePayloads_Offload_compressed() {
	payloads, err := s3payload.New(newStorage(), s3payload.Config{Bucket: "shop-payloads", Threshold: 1000}) // an S3 client, elsewhere
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := middleware.Chain(
		payloads.Fetch,
		middleware.Must(middleware.Decompress(middleware.DecompressConfig{})),
	)(reprise.JSON(ship))

	var items strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&items, `,"%x"`, i*i)
	}
	order := reprise.Outgoing{Body: `{"id":"o-1","items":["0"` + items.String() + `]}`}
	ctx := context.Background()
	sendable, err := payloads.Offload(ctx, middleware.Compress(order))
	if err != nil {
		fmt.Println(err)
		return
	}
	inS3, _ := strconv.Atoi(*sendable.Attributes[s3payload.SizeAttribute].StringValue)
	fmt.Println(len(order.Body), "bytes became", len(sendable.Body), "and S3 has fewer:", inS3 < len(order.Body))
	fmt.Println(handler.Handle(ctx, &reprise.Message{Body: sendable.Body, Attributes: sendable.Attributes}))
	// Output:
	// 44566 bytes became 134 and S3 has fewer: true
	// shipping o-1 with 5001 items
	// <nil>
}

// A handler can ask where its body came from.
func ExampleFrom() {
	handler := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		if from, ok := s3payload.From(ctx); ok {
			fmt.Println("the body was at", from, "and has", from.Size, "bytes")
		}
		return nil
	})
	store := newStorage() // an S3 client, elsewhere
	store.objects["shop-payloads/orders/1"] = `{"id":"o-1"}`
	payloads, err := s3payload.New(store, s3payload.Config{Bucket: "shop-payloads"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = payloads.Fetch(handler).Handle(context.Background(), pointing("shop-payloads", "orders/1", 12))
	// Output: the body was at s3://shop-payloads/orders/1 and has 12 bytes
}
