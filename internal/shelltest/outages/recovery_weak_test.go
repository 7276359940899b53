package outages

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// weakRecovery is an outage of a minute after which the dependency is weaker than before.
type weakRecovery struct {
	messages, consumers, concurrency int
	// capacity is how many attempts at once the dependency can bear at the given time after the
	// outage: more take longer and fail.
	capacity func(back time.Duration) float64
}

const (
	weakTakes   = 50 * time.Millisecond  // an attempt, a tenth more or less
	weakHealthy = 500 * time.Millisecond // before the outage
	weakOutage  = time.Minute
)

// TestWeakDependencyRecovers: a dependency that comes back cold, or with a third of its capacity,
// gets at most three times its capacity. All is done within twice the time that it would take
// at exactly its capacity from the first instant, plus the wait for the first probe, by one
// consumer and by ten. That holds for the median of the seeds: which attempts fail is chance,
// and one run in thirty takes a few seconds longer, at most twice that wait.
func TestWeakDependencyRecovers(t *testing.T) {
	const longestWait = 6 * time.Second // of a probe, after a minute
	seeds := race.Fewer(15, 1)          // of machines, in which nothing runs at once
	messages := 3000
	if whole := flag.Lookup("recovery.table"); whole != nil && whole.Value.String() == "true" {
		messages = 10_000
	}
	var table strings.Builder
	fmt.Fprint(&table, "| comes back | consumers | at best | takes | at worst of 15 | most at once / capacity |\n|---|---|---|---|---|---|\n")
	for _, weak := range []struct {
		name     string
		capacity func(time.Duration) float64
	}{
		{"cold: 5 at once, after 2 min 150", func(back time.Duration) float64 { return min(150, 5+145*back.Seconds()/120) }},
		{"with 33 at once, of 100", func(time.Duration) float64 { return 100.0 / 3 }},
	} {
		for _, consumers := range []int{1, 10} {
			r := weakRecovery{messages: messages, consumers: consumers, concurrency: 100 / consumers, capacity: weak.capacity}
			var took []time.Duration
			overload := 0.0
			for seed := range uint64(seeds) {
				d, load := r.run(t, seed+1)
				took, overload = append(took, d), max(overload, load)
			}
			slices.Sort(took)
			best, median, worst := r.atBest(), took[seeds/2], took[seeds-1]
			fmt.Fprintf(&table, "| %s | %d of %d | %s | %s | %s | %.1f |\n", weak.name, consumers, r.concurrency, inSeconds(best), inSeconds(median), inSeconds(worst), overload)
			if median > 2*best+longestWait || worst > 2*best+2*longestWait || overload > 3 {
				t.Errorf("%s, %d consumers: done after %v, at worst %v, at best %v; %.1f times the capacity", weak.name, consumers, median, worst, best, overload)
			}
		}
	}
	t.Logf("\n%s", table.String())
}

// run runs the consumers until no message is left. It returns the time since the outage, and the
// most attempts at once as a share of the capacity.
func (r weakRecovery) run(t *testing.T, seed uint64) (took time.Duration, overload float64) {
	l := world.NewLoop(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), seed)
	sqs := l.NewService()
	queue := sqs.Create("main", engine.Settings{Visibility: time.Minute, Retention: 14 * 24 * time.Hour})
	for i := range r.messages {
		queue.Put(engine.Message{Delay: -1, Payload: i})
	}
	const back = weakHealthy + weakOutage
	isDown := func() bool { return l.Since() >= weakHealthy && l.Since() < back }
	running, left := 0, r.messages
	model := func(*simulation.Message) simulation.Run {
		running++
		failed, stretch := isDown(), 1.0
		if l.Since() >= back {
			load := float64(running) / r.capacity(l.Since()-back)
			overload = max(overload, load)
			stretch = max(1, load)
			failed = l.Chance(1 - 1/stretch)
		}
		return simulation.Run{
			Takes: time.Duration(float64(weakTakes) * stretch * (0.9 + 0.2*l.Random.Float64())),
			Over:  func() { running-- },
			Ends: func() []simulation.Result {
				if failed || isDown() {
					return []simulation.Result{{Err: kit.ErrUnavailable, Unavailable: true}}
				}
				left--
				return nil
			},
		}
	}
	for n := range r.consumers {
		c, err := simulation.New(simulation.Spec{
			Settings: consumer.Settings{
				Settings:    plan.Settings{Lease: time.Minute},
				Retry:       retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: -1, MaxAge: -1},
				Concurrency: r.concurrency, Prefetch: 10, LongPoll: 20 * time.Second, StopBudget: 25 * time.Second,
				InFlightQuota: plan.MaxInFlight, Threshold: 20, Seed: l.Random.Uint64(),
			},
			Process: l.Start(fmt.Sprint("node-", n+1), 0, 0), Service: sqs, Queue: queue,
			Latency: world.Latency{Base: time.Millisecond, Spread: time.Millisecond, Most: time.Second},
			Handler: model, Observed: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Start()
	}
	for l.Since() < back || left > 0 {
		if err := l.Run(l.Since() + 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if l.Since() > back+6*time.Hour {
			t.Fatalf("seed %d: %d of %d messages left six hours after the outage", seed, left, r.messages)
		}
	}
	return l.Since() - back, overload
}

// atBest is how long the remaining messages take after the healthy time if exactly the capacity is
// used at any time.
func (r weakRecovery) atBest() (t time.Duration) {
	const step = 10 * time.Millisecond
	most := float64(r.consumers * r.concurrency)
	left := float64(r.messages) - most*(weakHealthy.Seconds()/weakTakes.Seconds())
	for ; left > 0; t += step {
		left -= min(most, r.capacity(t)) * step.Seconds() / weakTakes.Seconds()
	}
	return t
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds())) }
