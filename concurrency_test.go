package reprise_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestConcurrencyFromOutside: a few lines of additive increase and multiplicative decrease keep a
// consumer at the load that its dependency can bear. See the example.
func TestConcurrencyFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages, bears = 3000, 12
		q := reprisetest.NewQueue(t, nil)
		q.Send(kit.Numbered(messages)...)
		p := &kit.Dependency{Takes: 100 * time.Millisecond}
		adaptive := &additiveIncrease{limit: 2, most: 64}
		refused := 0
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			_ = p.Handle(ctx, m)
			p.Mu.Lock()
			defer p.Mu.Unlock()
			if p.Running >= bears {
				refused++
				return reprise.Unavailable(kit.ErrUnavailable)
			}
			return nil
		}), reprise.Config{
			Concurrency: 2,
			Outage:      reprise.Outage{Off: true},
			Retry:       retry.Policy{MaxAttempts: -1},
			Observer:    reprise.Observer{Attempt: adaptive.attempt},
		})
		adaptive.drive(c)
		began := time.Now()
		q.WaitEmpty(10 * time.Minute)
		took := time.Since(began)
		if ideal := messages / bears * p.Takes; took > 2*ideal {
			t.Errorf("worked off in %v, at best %v", took, ideal)
		}
		p.Mu.Lock()
		defer p.Mu.Unlock()
		if refused > messages/10 {
			t.Errorf("%d of %d calls were too many", refused, messages)
		}
	})
}
