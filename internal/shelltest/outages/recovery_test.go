package outages

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

var wholeTable = flag.Bool("recovery.table", false, "TestRecovery measures every outage, and prints the tables of docs/outages.md")

// recovery is an outage of the dependency of a simulated consumer.
type recovery struct {
	messages, concurrency int
	takes                 time.Duration // an attempt, a tenth more or less
	errors                float64       // the share of attempts that fail without an outage
	outage                time.Duration // after half a second; 0: none
	keyed                 bool          // the messages have one key, with a breaker of its own
}

// recovered is the course of a recovery.
type recovered struct {
	took                   time.Duration // from the end of the outage until all was done
	late                   time.Duration // the most of any message, without its own backoff since
	firstMinute, firstHour int           // attempts of the outage's
}

const healthyTime = 500 * time.Millisecond

// run runs the consumer until no message is left. The same seed gives the same course.
func (r recovery) run(t *testing.T, seed uint64) (got recovered) {
	l := world.NewLoop(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), seed)
	start := l.Now()
	sqs := l.NewService()
	queue := sqs.Create("main", engine.Settings{Visibility: time.Minute, Retention: 14 * 24 * time.Hour})
	for i := range r.messages {
		queue.Put(engine.Message{Payload: i, Delay: -1})
	}
	back := healthyTime + r.outage
	isDown := func() bool { return l.Since() >= healthyTime && l.Since() < back }
	left := r.messages
	waited := make([]time.Duration, r.messages) // by message, since the outage
	model := func(m *simulation.Message) simulation.Run {
		if since := l.Since() - healthyTime; isDown() && since < time.Hour {
			got.firstHour++
			if since < time.Minute {
				got.firstMinute++
			}
		}
		failed := isDown() || l.Chance(r.errors)
		return simulation.Run{
			Takes: time.Duration(float64(r.takes) * (0.9 + 0.2*l.Random.Float64())),
			Ends: func() []simulation.Result {
				if failed || isDown() {
					return []simulation.Result{{Err: kit.ErrUnavailable, Unavailable: true}}
				}
				left--
				got.late = max(got.late, l.Since()-back-waited[m.Payload.(int)])
				return nil
			},
		}
	}
	spec := simulation.Spec{
		Settings: consumer.Settings{
			Settings:    plan.Settings{Lease: time.Minute},
			Retry:       retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: -1, MaxAge: -1},
			Concurrency: r.concurrency, Prefetch: 10, LongPoll: 20 * time.Second, StopBudget: 25 * time.Second,
			InFlightQuota: plan.MaxInFlight, Threshold: 20, Seed: l.Random.Uint64(),
		},
		Process: l.Start("node", 0, 0), Service: sqs, Queue: queue,
		Latency: world.Latency{Base: time.Millisecond, Spread: time.Millisecond, Most: time.Second},
		Handler: model, Observed: true,
		Attempted: func(a simulation.Attempt) {
			if a.Outcome == consumer.OutcomeRetry {
				from := a.Ended
				if end := start.Add(back); from.Before(end) {
					from = end
				}
				waited[a.Payload.(int)] += max(0, a.Due.Sub(from))
			}
		},
	}
	if r.keyed {
		spec.Key = func(any) string { return "acme" }
	}
	c, err := simulation.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	for l.Since() < back || left > 0 {
		if err := l.Run(l.Since() + 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if l.Since() > back+6*time.Hour {
			t.Fatalf("seed %d: %d of %d messages left six hours after the outage", seed, left, r.messages)
		}
	}
	got.took = l.Since() - back
	return got
}

// runs runs the consumer with some seeds. It returns the median of how long that took, and the worst of
// each figure.
func (r recovery) runs(t *testing.T, seeds int) (median time.Duration, worst recovered) {
	var took []time.Duration
	for seed := range uint64(seeds) {
		got := r.run(t, seed+1)
		took = append(took, got.took)
		worst.late = max(worst.late, got.late)
		worst.firstMinute, worst.firstHour = max(worst.firstMinute, got.firstMinute), max(worst.firstHour, got.firstHour)
	}
	slices.Sort(took)
	worst.took = took[seeds-1]
	return took[seeds/2], worst
}

// recoversWithin is how long after an outage a thousand messages are done that take six seconds
// without one: the wait for a probe of up to 24 s, and the ramp. What was sent away during the outage
// must not wait beyond its end.
const recoversWithin = 40 * time.Second

// TestRecovery checks that a consumer recovers from an outage, whatever share of attempts fails
// without one: all is done within one and a half times what it takes without the outage, plus 10 s
// or 15 % of it, plus the messages' own backoff. That backoff is chance: with 30 % errors and no outage
// at all half of the runs take 30 s, and one in 300 takes 256 s, because a message has failed many times
// in a row. The consumer is the simulated one, in which nothing runs at once, so that each run is the same
// each time.
func TestRecovery(t *testing.T) {
	outages, shares, seeds := []time.Duration{10 * time.Second, time.Minute, time.Hour}, []float64{0, 0.3, 0.9}, 2
	if race.Enabled {
		outages, shares, seeds = outages[:1], shares[:1], 1
	}
	if *wholeTable {
		outages, shares = []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}, []float64{0, 0.1, 0.3, 0.5, 0.7, 0.9}
		seeds = 15
	}
	var table strings.Builder
	fmt.Fprint(&table, "| steady errors | no outage |")
	for _, outage := range outages {
		fmt.Fprintf(&table, " after %s |", spoken(outage))
	}
	fmt.Fprintf(&table, "\n|---|---|%s\n", strings.Repeat("---|", len(outages)))
	for _, keyed := range []bool{false, true} {
		if keyed && *wholeTable {
			break
		}
		for _, share := range shares {
			r := recovery{messages: 1000, concurrency: 10, takes: 50 * time.Millisecond, errors: share, keyed: keyed}
			median, without := r.runs(t, seeds)
			fmt.Fprintf(&table, "| %.0f %% | %s/%s |", share*100, seconds(median+healthyTime), seconds(without.took+healthyTime))
			for _, r.outage = range outages {
				median, got := r.runs(t, seeds)
				fmt.Fprintf(&table, " %s/%s |", seconds(median), seconds(got.took))
				allowed := (without.took+healthyTime)*3/2 + max(10*time.Second, r.outage*15/100)
				if got.late > allowed {
					t.Errorf("%.0f %% errors, keyed %v: %v after the end of an outage of %v, without its own backoff, a message is done; allowed are %v", share*100, keyed, got.late, r.outage, allowed)
				}
				if share == 0 && !keyed && got.took > recoversWithin {
					t.Errorf("%v after the end of an outage of %v all is done, want %v at most", got.took, r.outage, recoversWithin)
				}
				if share == 0 && (got.firstMinute > 50 || got.firstHour > 300) {
					t.Errorf("keyed %v: an outage of %v got %d attempts in its first minute and %d in its first hour, want 50 and 300 at most", keyed, r.outage, got.firstMinute, got.firstHour)
				}
			}
			fmt.Fprintln(&table)
		}
	}
	t.Logf("the median and the worst time until all is done:\n\n%s", table.String())
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f", math.Ceil(d.Seconds())) }

func spoken(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	case d >= time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// TestOutageEndsOnAnEmptyQueue: when the dependency is available again there are no messages left
// that could show its capacity. The breaker closes nevertheless.
func TestOutageEndsOnAnEmptyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, 10*time.Millisecond, 25)
		c := q.Consume(p, reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Second)}})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(time.Minute)
		p.Set("", false)
		kit.WaitFor(t, "the breaker ramps up", time.Minute, kit.StateIs(c, "", reprise.BreakerRamping))
		if s := c.Status(); s.Breakers[0].Level != 1 || s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, "answers again") {
			t.Errorf("level %d, health %v: %s", s.Breakers[0].Level, s.Health, s.Problem)
		}
		q.WaitEmpty(time.Minute)
		kit.WaitFor(t, "the breaker closes", time.Minute, kit.StateIs(c, "", reprise.BreakerClosed))
		if s := c.Status(); s.Health != reprise.HealthOK {
			t.Errorf("health %v: %s", s.Health, s.Problem)
		}
	})
}

// TestRampBeginsWithPauses: below a level of one, attempts follow each other with
// pauses of three times their length, so that many consumers together are few
// attempts at once.
func TestRampBeginsWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 100 * time.Millisecond
		q, p := newOutage(t, takes, 300)
		var mu sync.Mutex
		var ramps time.Time
		c := q.Consume(p, reprise.Config{Observer: reprise.Observer{Outage: func(_ context.Context, e reprise.OutageEvent) {
			mu.Lock()
			defer mu.Unlock()
			if e.State == reprise.BreakerRamping && ramps.IsZero() {
				ramps = e.At
			}
		}}})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(10 * time.Minute)
		p.Set("", false)
		back := time.Now()
		q.WaitEmpty(10 * time.Minute)
		p.Mu.Lock()
		defer p.Mu.Unlock()
		// The ramp begins when the canary ends. It may have begun while the dependency was down.
		mu.Lock()
		defer mu.Unlock()
		var after []time.Time
		for _, at := range p.Starts {
			if !at.Before(ramps) {
				after = append(after, at)
			}
		}
		if len(after) < 2 || ramps.Before(back) {
			t.Fatalf("%d attempts after the ramp began at %v; the dependency was back at %v", len(after), ramps, back)
		}
		// Of the lowest level there are two at least: what is known then are the canary and the first.
		if gap := after[1].Sub(after[0]); gap < 4*takes {
			t.Errorf("the second attempt of the ramp began %v after the first, want %v at least", gap, 4*takes)
		}
	})
}
