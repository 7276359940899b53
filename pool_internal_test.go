package reprise

import (
	"context"
	"log/slog"
	"testing"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// TestPoolForgetsWhoHasStopped: consumers that a program adds to a pool and stops, again and again,
// do not stay in memory.
func TestPoolForgetsWhoHasStopped(t *testing.T) {
	p, err := NewPool(PoolConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c, err := p.Add(struct{ Client }{}, "https://sqs.eu-west-1.amazonaws.com/1/q",
			HandlerFunc(func(context.Context, *Message) error { return nil }), Share{}, Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if _, found := p.shells[c.guarded]; !found || len(p.shells) != 1 {
			t.Errorf("the pool knows %d consumers, the latest among them: %v", len(p.shells), found)
		}
		c.enter(func(m *consumer.Machine) {
			m.Close()
			p.closed(c)
		})
	}
	if n := len(p.shells); n > 0 || len(p.Status().Queues) > 0 {
		t.Errorf("%d consumers are kept, though all have stopped", n)
	}
}
