package breaker

import (
	"fmt"
	"testing"
	"time"
)

const seeds = 5

// worst is the worst of each figure over the seeds.
func worst(s scenario) (r result) {
	for seed := range uint64(seeds) {
		one := simulate(s, seed+1)
		r.done = max(r.done, one.done)
		r.late = max(r.late, one.late)
		r.firstMinute = max(r.firstMinute, one.firstMinute)
		r.firstHour = max(r.firstHour, one.firstHour)
		r.overload = max(r.overload, one.overload)
		r.collapses = max(r.collapses, one.collapses)
		r.left = max(r.left, one.left)
	}
	return r
}

// TestOutagesEnd: whatever share of attempts fails without an outage, everything is
// done soon after one: within one and a half times what it takes without, plus 10 s
// or 15 % of the outage.
func TestOutagesEnd(t *testing.T) {
	for _, errors := range []float64{0, 0.1, 0.3, 0.5, 0.7, 0.9} {
		for _, healthy := range []time.Duration{0, 2 * time.Second} {
			s := scenario{messages: 1000, consumers: 1, concurrency: 10, takes: 50 * time.Millisecond, errors: errors, healthy: healthy, backoff: time.Minute}
			without := worst(s)
			for _, outage := range []time.Duration{time.Second, time.Minute, time.Hour, 6 * time.Hour} {
				s.outage = outage
				got := worst(s)
				allowed := without.done*3/2 + max(10*time.Second, outage*15/100)
				t.Logf("%2.0f %% errors, outage of %5v after %2v: done after %7.1f s, %7.1f without own backoff, %7.1f without the outage; %d attempts in its first minute, %d in its first hour",
					errors*100, outage, healthy, got.done.Seconds(), got.late.Seconds(), without.done.Seconds(), got.firstMinute, got.firstHour)
				if got.left > 0 || got.late > allowed {
					t.Errorf("%2.0f %% errors, outage of %v after %v: %d left, a message is done %v after it, without its own backoff; allowed are %v", errors*100, outage, healthy, got.left, got.late, allowed)
				}
				if outage >= time.Hour && errors == 0 && (got.firstMinute > 50 || got.firstHour > 300) {
					t.Errorf("%d attempts in the first minute of an outage, %d in its first hour; want 50 and 300 at most", got.firstMinute, got.firstHour)
				}
			}
		}
	}
}

// TestWeakDependencies come back cold, shrunk or with a third of what they bore, and
// some fail now and then besides: they see three times what they bear at most, and
// everything is done in twice the time that an oracle takes. Ten consumers that
// know nothing of the dependency, since it was down when they started, take
// nearly three times as long.
func TestWeakDependencies(t *testing.T) {
	for name, capacity := range map[string]func(time.Duration) float64{
		"cold":   func(back time.Duration) float64 { return min(150, 5+145*back.Seconds()/120) },
		"shrunk": func(back time.Duration) float64 { return min(30, 10+20*back.Seconds()/60) },
		"third":  func(time.Duration) float64 { return 100.0 / 3 },
	} {
		for _, consumers := range []int{1, 10} {
			for _, errors := range []float64{0, 0.3} {
				for _, healthy := range []time.Duration{0, 2 * time.Second} {
					s := scenario{messages: 10_000, consumers: consumers, concurrency: 100 / consumers, takes: 50 * time.Millisecond, errors: errors, outage: time.Minute, healthy: healthy, backoff: time.Minute, capacity: capacity}
					got := worst(s)
					s.oracle = true
					oracle := worst(s)
					what := fmt.Sprintf("%s, %d consumers, %v healthy, %2.0f %% errors", name, consumers, healthy, errors*100)
					t.Logf("%s: done after %6.1f s, an oracle %6.1f s; at most %.1f times what is borne, %d collapses", what, got.done.Seconds(), oracle.done.Seconds(), got.overload, got.collapses)
					allowed := 2 * oracle.done
					if consumers > 1 && healthy == 0 {
						allowed = 3 * oracle.done
					}
					if got.left > 0 || got.done > allowed {
						t.Errorf("%s: %d left after %v, an oracle needs %v", what, got.left, got.done, oracle.done)
					}
					if got.overload > 3 {
						t.Errorf("%s: %.1f times what is borne", what, got.overload)
					}
				}
			}
		}
	}
}
