package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// TestOverloadAfterOutage: the dependency takes a burst of requests when it is back, so that it
// bears a whole ramp, and then rejects what is beyond its capacity at once. The breaker finds out
// what it bears all the same: attempts are hardly more than the capacity, and the backlog is
// cleared in not much longer than with all of the capacity.
func TestOverloadAfterOutage(t *testing.T) {
	const (
		capacity = 30.0
		rate     = 10.0
		outage   = 10 * time.Minute
	)
	for _, burst := range []float64{30, 900} {
		for _, fleet := range []simulate.Fleet{{Consumers: 1, Concurrency: 20}, {Consumers: 2, Concurrency: 10}, {Consumers: 10, Concurrency: 5}} {
			for _, rejects := range []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second} {
				s := simulate.Scenario{
					Traffic:    simulate.Traffic{Rate: rate, For: 40 * time.Minute},
					Policy:     policy(t, "exponential(base=2s,max=5m) attempts=12"),
					Handler:    simulate.Handler{Takes: simulate.Lognormal(80*time.Millisecond, time.Second), Fails: []float64{0.05}},
					Dependency: simulate.Dependency{Capacity: capacity, Burst: burst, Rejects: rejects, Outages: []simulate.Outage{{At: 5 * time.Minute, For: outage}}},
					Fleet:      fleet,
				}
				name := fmt.Sprintf("a burst of %v, %d consumers of %d, rejected in %v", burst, fleet.Consumers, fleet.Concurrency, rejects)
				r := run(t, s)
				after := r.Outages[0]
				best := time.Duration(float64(after.Backlog) / (capacity*0.95 - rate) * float64(time.Second))
				cleared := time.Duration(-1) // but for the waits of the last messages
				for _, b := range r.Series {
					if end := s.Dependency.Outages[0].At + outage; cleared < 0 && b.At >= end && b.Open < after.Backlog/20 {
						cleared = b.At - end
					}
				}
				t.Logf("%s: cleared in %v, at best %v; at most %d requests a second; %d of %d attempts rejected, %d dead", name, cleared, best.Round(time.Second), after.Peak, r.Attempts.Rejected, r.Attempts.Started, r.Messages.Dead)
				if cleared < 0 || cleared > best*5/4+time.Minute {
					t.Errorf("%s: the backlog is cleared in %v, at best in %v", name, cleared, best)
				}
				wasted := r.Attempts.Started / 5
				if fleet.Consumers == 10 { // each has to find out by itself
					wasted = r.Attempts.Started / 3
				}
				if r.Attempts.Rejected > wasted || r.Messages.Dead > 0 || after.Peak > 250 {
					t.Errorf("%s: %d of %d attempts are rejected, %d in a second at worst, %d messages given up", name, r.Attempts.Rejected, r.Attempts.Started, after.Peak, r.Messages.Dead)
				}
			}
		}
	}
}

// TestRateSparesRejections: ten consumers that start no more runs than their share of the capacity have
// none rejected after an outage, and clear its backlog no later than with the breakers alone.
func TestRateSparesRejections(t *testing.T) {
	s := simulate.Scenario{
		Traffic:    simulate.Traffic{Rate: 10, For: 40 * time.Minute},
		Policy:     policy(t, "exponential(base=2s,max=5m) attempts=12"),
		Handler:    simulate.Handler{Takes: simulate.Lognormal(80*time.Millisecond, time.Second), Fails: []float64{0.05}},
		Dependency: simulate.Dependency{Capacity: 30, Outages: []simulate.Outage{{At: 5 * time.Minute, For: 10 * time.Minute}}},
		Fleet:      simulate.Fleet{Consumers: 10, Concurrency: 5},
	}
	alone := run(t, s)
	s.Fleet.Rate = 3
	limited := run(t, s)
	if alone.Attempts.Rejected < 5000 || limited.Attempts.Rejected > 100 || limited.Outages[0].Recovered > alone.Outages[0].Recovered {
		t.Errorf("%d attempts are rejected and the backlog is cleared in %v; with a rate %d, and %v", alone.Attempts.Rejected, alone.Outages[0].Recovered, limited.Attempts.Rejected, limited.Outages[0].Recovered)
	}
}
