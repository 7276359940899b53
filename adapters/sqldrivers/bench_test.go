package sqldrivers_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/sqlstore"
)

// metered is a store that counts its trips.
type metered struct {
	idempotency.Store
	acquires, completes atomic.Int64
}

func (m *metered) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	m.acquires.Add(1)
	return m.Store.Acquire(ctx, batch)
}

func (m *metered) Complete(ctx context.Context, batch []idempotency.Completion) ([]bool, error) {
	m.completes.Add(1)
	return m.Store.Complete(ctx, batch)
}

// BenchmarkTenMessages measures ten new messages at once on PostgreSQL: the time, and the round
// trips to claim and to record them.
func BenchmarkTenMessages(b *testing.B) {
	db := openPostgres(b)
	store, err := sqlstore.New(db, sqlstore.Postgres, table())
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	trips := &metered{Store: store}
	once, err := idempotency.New(trips, idempotency.Config{})
	if err != nil {
		b.Fatal(err)
	}
	h := once(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }))
	next := 0
	b.ReportAllocs()
	for b.Loop() {
		var messages sync.WaitGroup
		for range 10 {
			next++
			id := strconv.Itoa(next)
			messages.Go(func() {
				if err := h.Handle(b.Context(), &reprise.Message{ID: id, OriginID: id}); err != nil {
					b.Error(err)
				}
			})
		}
		messages.Wait()
	}
	b.ReportMetric(float64(trips.acquires.Load())/float64(b.N), "acquire-trips/op")
	b.ReportMetric(float64(trips.completes.Load())/float64(b.N), "complete-trips/op")
}
