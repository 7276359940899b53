package simulate_test

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// FuzzTimes checks that a distribution that is read is written so that it reads back, and has a mean.
func FuzzTimes(f *testing.F) {
	for _, text := range []string{"200ms", "exponential(1s)", "uniform(1ms,2h)", "lognormal(80ms,1s)", "lognormal(1s,1s)", "uniform(", "constant(1s)", "12h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d, again simulate.Times
		if d.UnmarshalText([]byte(text)) != nil {
			if d != (simulate.Times{}) {
				t.Fatalf("%q is refused, and changes the value to %v", text, d)
			}
			return
		}
		if err := again.UnmarshalText([]byte(d.String())); err != nil || again != d {
			t.Fatalf("%q is read as %v, whose text is read as %v: %v", text, d, again, err)
		}
		if m := d.Mean(); m <= 0 {
			t.Fatalf("%q has the mean %v", text, m)
		}
	})
}

// FuzzRun checks that no scenario hangs, panics or loses a message, whatever its numbers.
func FuzzRun(f *testing.F) {
	f.Add(10, 1.0, int64(time.Minute), 0.5, 10.0, int64(time.Second), int64(time.Minute), 2, 3, 1, false, uint64(1))
	f.Add(100, 0.0, int64(0), 1.0, 0.0, int64(0), int64(1), 1, 1, -1, true, uint64(2))
	f.Add(0, 50.0, int64(1), 0.0, 0.5, int64(time.Hour), int64(time.Hour), 3, 1000, 0, false, uint64(3))
	f.Fuzz(func(t *testing.T, backlog int, rate float64, lasts int64, fails, capacity float64, at, down int64, consumers, concurrency, prefetch int, fifo bool, seed uint64) {
		s := simulate.Scenario{
			Traffic: simulate.Traffic{Backlog: backlog, Rate: rate, For: time.Duration(lasts)}, Queue: simulate.Queue{FIFO: fifo},
			Handler:    simulate.Handler{Fails: []float64{fails}, Changes: []simulate.Change{{At: max(time.Duration(at)/2, 0) + 1, Fails: []float64{fails / 2}}}},
			Dependency: simulate.Dependency{Capacity: capacity, Outages: []simulate.Outage{{At: time.Duration(at), For: time.Duration(down)}}},
			Fleet:      simulate.Fleet{Consumers: consumers, Concurrency: concurrency, Prefetch: prefetch},
			Policy:     policy(t, "exponential(base=1s,max=10s) attempts=3"), Horizon: time.Hour, Seed: seed,
		}
		if float64(backlog)+rate*min(time.Duration(lasts), time.Hour).Seconds() > 2000 || rate > 0 && lasts == 0 || consumers > 10 {
			return // it would take long
		}
		for _, s.Fluid = range []bool{false, true} {
			if s.Validate() == nil {
				run(t, s)
			}
		}
		s.Fluid = false
		s.Pool = []simulate.Pooled{{Name: "low", Priority: -1, Traffic: simulate.Traffic{Backlog: backlog/2 + 1}}, {Name: "equal", Weight: 2, Traffic: s.Traffic}}
		if s.Validate() == nil {
			run(t, s)
		}
	})
}
