package idempotency_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
)

// payments stands for the service that the examples' handlers call.
var payments paymentService

type paymentService struct{}

func (paymentService) Charge(_ context.Context, key, body string) (string, error) {
	fmt.Printf("charged %s, idempotency key %s\n", body, key)
	return "receipt-1", nil
}

// The work of a message is done once, and later duplicates get its result.
func ExampleNew() {
	once, err := idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{
		Key: idempotency.ByJSON("/order"),
		Duplicate: func(_ context.Context, m *reprise.Message, result []byte) error {
			fmt.Printf("%s asks for the same: %s\n", m.ID, result)
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	charge := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		claim, _, _ := idempotency.ClaimFrom(ctx)
		receipt, err := payments.Charge(ctx, claim.Key, m.Body)
		if err != nil {
			return err
		}
		return idempotency.SetResult(ctx, []byte(receipt))
	})
	handler := once(charge) // to reprise.New

	for _, id := range []string{"message-1", "message-2"} {
		err := handler.Handle(context.Background(), &reprise.Message{ID: id, OriginID: id, Body: `{"order": "o-1"}`})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// charged {"order": "o-1"}, idempotency key o-1
	// message-2 asks for the same: receipt-1
}

func insertOnce(store idempotency.Store, insert func(ctx context.Context, bodies []string) error) (reprise.BatchHandler, error) {
	once, err := idempotency.NewBatch(store, idempotency.Config{})
	if err != nil {
		return nil, err
	}
	return once(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
		var bodies []string
		for _, m := range ms { // those that are to be done
			bodies = append(bodies, m.Body)
		}
		if err := insert(ctx, bodies); err != nil {
			return slices.Repeat([]error{err}, len(ms)) // their keys are free again
		}
		return nil
	})), nil
}

// A batch in which one message has been done before: its neighbours are inserted.
func ExampleNewBatch() {
	handler, err := insertOnce(idempotency.NewMemory(idempotency.MemoryConfig{}), func(_ context.Context, bodies []string) error {
		fmt.Println("inserted", bodies)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	batches := [][]*reprise.Message{ // from reprise.NewBatchConsumer's consumer
		{{ID: "1", Body: "one"}, {ID: "2", Body: "two"}},
		{{ID: "2", Body: "two"}, {ID: "3", Body: "three"}},
	}
	for _, ms := range batches {
		fmt.Println(handler.HandleBatch(context.Background(), ms))
	}
	// Output:
	// inserted [one two]
	// [<nil> <nil>]
	// inserted [three]
	// [<nil> <nil>]
}

// Counters of what becomes of messages.
func ExampleConfig_observe() {
	counts := make(map[string]int) // a counter of your metrics, by kind
	once, err := idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{
		Prefix:    "billing/",
		Lease:     30 * time.Second,
		Retention: 30 * 24 * time.Hour,
		Observe:   func(_ context.Context, e idempotency.Event) { counts[e.Kind.String()]++ },
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := once(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }))
	for range 3 {
		if err := handler.Handle(context.Background(), &reprise.Message{ID: "m", OriginID: "m"}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(counts)
	// Output: map[done:1 duplicate:2]
}
