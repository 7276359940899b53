package reprise_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/reprise-sqs/reprise"
)

// A handler of orders that reads the number of the attempt and the message's id.
func ExampleJSONMessage() {
	handler := reprise.JSONMessage(func(_ context.Context, o Order, m *reprise.Message) error {
		fmt.Printf("order %s of tenant %s, attempt %d\n", o.ID, m.GroupID, m.Attempt)
		return nil
	})
	_ = handler.Handle(context.Background(), &reprise.Message{Body: `{"id":"o-1"}`, GroupID: "red", Attempt: 2})
	// Output: order o-1 of tenant red, attempt 2
}

// Code called by a handler gets the message from the context.
func ExampleMessageFrom() {
	charge := func(ctx context.Context, o Order) error {
		slog.InfoContext(ctx, "charging", "order", o.ID, "message", reprise.MessageFrom(ctx))
		fmt.Println("charged with the key", reprise.MessageFrom(ctx).OriginID)
		return nil
	}
	handler := reprise.JSON(charge)
	_ = handler.Handle(context.Background(), &reprise.Message{Body: `{"id":"o-1"}`, OriginID: "m-1"})
	// Output: charged with the key m-1
}
