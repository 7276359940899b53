package idempotency_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
)

// BenchmarkOnce is what the middleware adds to a message that is new, and to one
// whose work is done, with the store in memory.
func BenchmarkOnce(b *testing.B) {
	for _, name := range []string{"new", "duplicate"} {
		b.Run(name, func(b *testing.B) {
			once, err := idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{})
			if err != nil {
				b.Fatal(err)
			}
			h := once(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }))
			m := &reprise.Message{ID: "id", OriginID: "id"}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				if name == "new" {
					n++
					m.OriginID = strconv.Itoa(n)
				}
				if err := h.Handle(context.Background(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
