package outages

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestOverloadAfterOutage: a dependency takes a burst of requests after an outage, so that the
// breaker closes, and then rejects most at once. The breaker ramps up again instead of opening, no
// more messages run than it says, no attempt is used up on the rejections that it finds out by, and
// the health says why.
func TestOverloadAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity, burst, concurrency = 20.0, 200.0, 20
		var (
			mu        sync.Mutex
			down      = true
			tokens    = burst
			filled    = time.Now()
			running   int
			rejected  int
			lastBurst time.Time // when the last token of the burst was taken
			changes   []string
			relapsed  time.Time
			most      int // that ran at once, well after the relapse
		)
		handle := func(context.Context, *reprise.Message) error {
			mu.Lock()
			now := time.Now()
			running++
			if !relapsed.IsZero() && now.Sub(relapsed) > time.Second && now.Sub(relapsed) < 20*time.Second {
				most = max(most, running)
			}
			tokens = min(burst, tokens+capacity*now.Sub(filled).Seconds())
			filled = now
			takes, ok := 10*time.Millisecond, !down && tokens >= 1
			switch {
			case ok:
				tokens--
				takes = 200 * time.Millisecond
			case !down:
				rejected++
				if lastBurst.IsZero() {
					lastBurst = now
				}
			}
			mu.Unlock()
			time.Sleep(takes)
			mu.Lock()
			defer mu.Unlock()
			running--
			if !ok {
				return reprise.Unavailable(kit.ErrUnavailable)
			}
			return nil
		}
		q := reprisetest.NewQueue(t, nil)
		q.Send(kit.Numbered(1500)...)
		c := q.Consume(reprise.HandlerFunc(handle), reprise.Config{
			Concurrency: concurrency,
			Retry:       retry.Policy{Backoff: retry.Constant(time.Second), MaxAttempts: -1},
			Observer: reprise.Observer{Outage: func(_ context.Context, e reprise.OutageEvent) {
				mu.Lock()
				defer mu.Unlock()
				changes = append(changes, e.Previous.String()+" "+e.State.String())
				if e.Previous == reprise.BreakerClosed && e.State == reprise.BreakerRamping {
					relapsed = e.At
				}
			}},
		})
		time.Sleep(5 * time.Minute)
		mu.Lock()
		down = false
		mu.Unlock()
		kit.WaitFor(t, "the burst is over, and the breaker ramps up again", 2*time.Minute, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return !relapsed.IsZero()
		})
		if s := c.Status(); s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, "overloaded since") {
			t.Errorf("health %v: %s", s.Health, s.Problem)
		}
		q.WaitEmpty(3 * time.Minute)
		kit.WaitFor(t, "the breaker closes", 3*time.Minute, kit.StateIs(c, "", reprise.BreakerClosed))
		mu.Lock()
		defer mu.Unlock()
		if took := relapsed.Sub(lastBurst); took > time.Second {
			t.Errorf("the overload is found after %v", took)
		}
		if again := slices.Index(changes, "closed ramping"); slices.Contains(changes[again:], "ramping open") {
			t.Errorf("the breaker opens after it was overloaded: %v", changes[again:])
		}
		if most > concurrency*3/4 {
			t.Errorf("%d ran at once after the relapse", most)
		}
		if rejected > 300 {
			t.Errorf("%d attempts of 1500 messages were rejected", rejected)
		}
	})
}
