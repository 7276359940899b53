package delivery

import (
	"context"
	"log/slog"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// TestQueuesShareAStore: a store is shared by all queues of a process. A message of one queue must not be
// deleted unhandled because a message of another queue has the same key.
func TestQueuesShareAStore(t *testing.T) {
	attribute := map[string]types.MessageAttributeValue{"order": {DataType: aws.String("String"), StringValue: aws.String("1")}}
	for _, key := range []string{"origin", "body", "attribute:order", "json:/order"} {
		stores, ran := new(Stores), make(map[string]int)
		for range 2 {
			for _, queue := range []string{"orders", "refunds"} {
				s := settingsOf(t, "exec", "true", "idempotency", "memory", "idempotency-key", key)
				h, err := s.Once(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { ran[queue]++; return nil }), queue, stores, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				if err := h.Handle(t.Context(), &reprise.Message{ID: "id", OriginID: "id", Body: `{"order":1}`, Attributes: attribute}); err != nil {
					t.Error(err)
				}
			}
		}
		if ran["orders"] != 1 || ran["refunds"] != 1 {
			t.Errorf("%s: the handlers ran %v times, want once for each queue", key, ran)
		}
	}
}

// TestOnceRefusesOtherWork: a key that comes again with another body is a mistake of the sender. It is an error,
// and not work that is done already.
func TestOnceRefusesOtherWork(t *testing.T) {
	attribute := map[string]types.MessageAttributeValue{"order": {DataType: aws.String("String"), StringValue: aws.String("1")}}
	s, ran := settingsOf(t, "exec", "true", "idempotency", "memory", "idempotency-key", "attribute:order"), 0
	h, err := s.Once(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { ran++; return nil }), "orders", new(Stores), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Handle(t.Context(), &reprise.Message{ID: "a", OriginID: "a", Body: "pay 10", Attributes: attribute}); err != nil {
		t.Fatal(err)
	}
	if err := h.Handle(t.Context(), &reprise.Message{ID: "b", OriginID: "b", Body: "pay 20", Attributes: attribute}); err == nil || ran != 1 {
		t.Errorf("another body with the key of the first: %v after %d runs, want an error after 1", err, ran)
	}
}
