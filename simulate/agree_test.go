package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// TestConsumersMeet holds a plan, a simulation and a consumer in a synctest bubble against each other in
// random scenarios: each attempt comes at the same time in all three, but for the rounding to whole
// seconds, which a millisecond of network can decide.
func TestConsumersMeet(t *testing.T) {
	const rounding = time.Second + 250*time.Millisecond
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		text := fmt.Sprintf("exponential(base=%ds,max=%ds) jitter=none attempts=%d", 1+r.IntN(10), 30+r.IntN(300), 2+r.IntN(6))
		if r.IntN(3) == 0 {
			text = fmt.Sprintf("list(%ds,%ds,%ds) jitter=none attempts=%d", 1+r.IntN(60), 1+r.IntN(60), 1+r.IntN(600), 2+r.IntN(8))
		}
		p := policy(t, text)
		messages, concurrency, prefetch := 1+r.IntN(40), 1+r.IntN(50), r.IntN(30)-1
		takes := time.Duration(10+r.IntN(500)) * time.Millisecond
		name := fmt.Sprintf("seed %d: %s, %d messages, %d handlers, prefetch %d, runs of %v", seed, text, messages, concurrency, prefetch, takes)

		simulated := make([][]time.Duration, p.MaxAttempts)
		for _, a := range run(t, simulate.Scenario{
			Traffic: simulate.Traffic{Backlog: messages}, Policy: p, Trace: messages, Handler: simulate.Handler{Takes: simulate.Constant(takes), Always: 1},
			Fleet: simulate.Fleet{Concurrency: concurrency, Prefetch: prefetch, NoBreaker: true},
		}).Trace {
			simulated[a.Attempt-1] = append(simulated[a.Attempt-1], a.Started)
		}
		consumed := consumed(t, p, messages, takes, reprise.Config{Concurrency: concurrency, Prefetch: prefetch})
		planned := plan.NewSchedule(p, plan.Queue{Retention: plan.MaxRetention}, plan.Settings{}).Attempts
		if len(planned) != p.MaxAttempts {
			t.Fatalf("%s: the plan has %d attempts", name, len(planned))
		}
		for i := range simulated {
			if len(simulated[i]) != messages || len(consumed[i]) != messages {
				t.Fatalf("%s: attempt %d is made %d times in the simulation and %d times by the consumer", name, i+1, len(simulated[i]), len(consumed[i]))
			}
			slices.Sort(simulated[i])
			slices.Sort(consumed[i])
			allowed := time.Duration(i+1) * rounding
			for k := range messages {
				if d := simulated[i][k] - consumed[i][k]; d.Abs() > allowed {
					t.Fatalf("%s: the %dth attempt %d starts at %v in the simulation, %v in the consumer", name, k+1, i+1, simulated[i][k], consumed[i][k])
				}
			}
			first := planned[i].Since.Expected + time.Duration(i)*takes
			if d := simulated[i][0] - first; d < 0 || d > allowed && concurrency >= messages { // else it waits for a handler
				t.Fatalf("%s: the first attempt %d starts at %v in the simulation, at %v in the plan", name, i+1, simulated[i][0], first)
			}
		}
	}
}

// consumed is when a consumer starts the attempts of messages that always fail, by their numbers.
func consumed(t *testing.T, p retry.Policy, messages int, takes time.Duration, cfg reprise.Config) [][]time.Duration {
	started := make([][]time.Duration, p.MaxAttempts)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		q := reprisetest.NewQueue(t, nil)
		cfg.Retry, cfg.Outage.Off, cfg.Logger = p, true, slog.New(slog.DiscardHandler)
		for i := range messages {
			q.Send(fmt.Sprint(i))
		}
		began := time.Now()
		q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			started[m.Attempt-1] = append(started[m.Attempt-1], time.Since(began))
			mu.Unlock()
			time.Sleep(takes)
			if m.Attempt == p.MaxAttempts {
				return nil // there is no dead-letter queue
			}
			return errors.New("it failed")
		}), cfg)
		q.WaitEmpty(24 * time.Hour)
	})
	return started
}
