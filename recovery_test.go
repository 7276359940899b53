package reprise_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

var wholeTable = flag.Bool("recovery.table", false, "TestRecovery measures every outage, and prints the tables of docs/outages.md")

// recovery is an outage of the dependency of real consumers, in virtual time.
type recovery struct {
	messages, consumers, concurrency int
	takes                            time.Duration // an attempt, a tenth more or less
	errors                           float64       // the share of attempts that fail without an outage
	outage                           time.Duration // after half a second; 0: none
	keyed                            bool          // the messages have one key, with a breaker of its own
}

// recovered is the course of a recovery.
type recovered struct {
	took                   time.Duration // from the end of the outage until all was done
	late                   time.Duration // the most of any message, without its own backoff since
	firstMinute, firstHour int           // attempts of the outage's
}

const healthyTime = 500 * time.Millisecond

// run runs the consumers until no message is left.
func (r recovery) run(t *testing.T, seed uint64) (got recovered) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send(numbered(r.messages)...)
		down := time.Now().Add(healthyTime)
		back := down.Add(r.outage)
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(seed, 7))
		left := r.messages
		waited := make(map[string]time.Duration) // by message, since the outage
		isDown := func() bool { return !time.Now().Before(down) && time.Now().Before(back) }
		handle := func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			if since := time.Since(down); isDown() && since < time.Hour {
				got.firstHour++
				if since < time.Minute {
					got.firstMinute++
				}
			}
			failed := isDown() || random.Float64() < r.errors
			takes := time.Duration(float64(r.takes) * (0.9 + 0.2*random.Float64()))
			mu.Unlock()
			time.Sleep(takes)
			mu.Lock()
			defer mu.Unlock()
			if failed || isDown() {
				return reprise.Unavailable(errUnavailable)
			}
			left--
			got.late = max(got.late, time.Since(back)-waited[m.ID])
			return nil
		}
		cfg := reprise.Config{
			Concurrency: r.concurrency,
			Retry:       retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: -1, MaxAge: -1},
			Observer: reprise.Observer{Attempt: func(_ context.Context, e reprise.Attempt) {
				if e.Outcome == reprise.OutcomeRetry {
					mu.Lock()
					defer mu.Unlock()
					from := e.Started.Add(e.Duration)
					if from.Before(back) {
						from = back
					}
					waited[e.Message.ID] += max(0, e.Due.Sub(from))
				}
			}},
		}
		if r.keyed {
			cfg.Outage.Key = func(*reprise.Message) string { return "acme" }
		}
		var all []*reprisetest.Consumer
		for range r.consumers {
			all = append(all, q.Consume(reprise.HandlerFunc(handle), cfg))
		}
		for end := back.Add(6 * time.Hour); ; time.Sleep(100 * time.Millisecond) {
			mu.Lock()
			rest := left
			mu.Unlock()
			if rest == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d of %d messages left six hours after the outage: %+v", rest, r.messages, all[0].Status())
			}
		}
		got.took = time.Since(back)
	})
	return got
}

// worst is the worst of each figure over some seeds.
func (r recovery) worst(t *testing.T, seeds int) (w recovered) {
	for seed := range uint64(seeds) {
		got := r.run(t, seed+1)
		w.took, w.late = max(w.took, got.took), max(w.late, got.late)
		w.firstMinute, w.firstHour = max(w.firstMinute, got.firstMinute), max(w.firstHour, got.firstHour)
	}
	return w
}

// recoversWithin is how long after an outage a thousand messages are done that take six seconds
// without one: the wait for a probe of up to 24 s, and the ramp. What was sent away during the outage
// must not wait beyond its end.
const recoversWithin = 40 * time.Second

// TestRecovery checks that the consumers recover from an outage, whatever share of attempts fails
// without one: all is done within one and a half times what it takes without the outage, plus 10 s
// or 15 % of it, plus the messages' own backoff.
func TestRecovery(t *testing.T) {
	outages, shares, seeds := []time.Duration{time.Minute, time.Hour}, []float64{0, 0.3, 0.9}, 1
	if race.Enabled {
		outages, shares = outages[:1], shares[:1]
	}
	if *wholeTable {
		outages, shares = []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}, []float64{0, 0.1, 0.3, 0.5, 0.7, 0.9}
		seeds = 5
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
			r := recovery{messages: 1000, consumers: 1, concurrency: 10, takes: 50 * time.Millisecond, errors: share, keyed: keyed}
			without := r.worst(t, seeds)
			fmt.Fprintf(&table, "| %.0f %% | %s |", share*100, seconds(without.took+healthyTime))
			for _, r.outage = range outages {
				got := r.worst(t, seeds)
				fmt.Fprintf(&table, " %s |", seconds(got.took))
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
	t.Logf("seconds until all is done:\n\n%s", table.String())
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds())) }

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
		waitFor(t, "the breaker opens", time.Minute, stateIs(c, "", reprise.BreakerOpen))
		time.Sleep(time.Minute)
		p.set("", false)
		waitFor(t, "the breaker ramps up", time.Minute, stateIs(c, "", reprise.BreakerRamping))
		if s := c.Status(); s.Breakers[0].Level != 1 || s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, "answers again") {
			t.Errorf("level %d, health %v: %s", s.Breakers[0].Level, s.Health, s.Problem)
		}
		q.WaitEmpty(time.Minute)
		waitFor(t, "the breaker closes", time.Minute, stateIs(c, "", reprise.BreakerClosed))
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
		c := q.Consume(p, reprise.Config{})
		waitFor(t, "the breaker opens", time.Minute, stateIs(c, "", reprise.BreakerOpen))
		time.Sleep(10 * time.Minute)
		p.set("", false)
		back := time.Now()
		q.WaitEmpty(10 * time.Minute)
		p.mu.Lock()
		defer p.mu.Unlock()
		var after []time.Time
		for _, at := range p.starts {
			if at.After(back) {
				after = append(after, at)
			}
		}
		// The first is the canary, the next two belong to the lowest level.
		if gap := after[2].Sub(after[1]); gap < 4*takes {
			t.Errorf("the second attempt after the outage began %v after the first, want %v at least", gap, 4*takes)
		}
	})
}
