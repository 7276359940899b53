//go:build unix

package simulate_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// BenchmarkGrowth says what messages, attempts and consumers cost: processor time and the largest heap,
// of one simulation each. docs/performance.md has a run of it.
func BenchmarkGrowth(b *testing.B) {
	scenario := func(messages int, fails float64, consumers int, fluid bool) simulate.Scenario {
		return simulate.Scenario{
			Traffic: simulate.Traffic{Rate: float64(messages) / 86400, For: 24 * time.Hour}, Policy: policy(b, "exponential(base=1s,max=1m) attempts=unlimited"),
			Handler: simulate.Handler{Takes: simulate.Constant(20 * time.Millisecond), Fails: []float64{fails}}, Fleet: simulate.Fleet{Consumers: consumers, Concurrency: 100}, Fluid: fluid,
		}
	}
	for _, c := range []struct {
		messages  int
		fails     float64
		consumers int
		fluid     bool
	}{
		{10_000, 0.2, 1, false},
		{100_000, 0.2, 1, false},
		{1_000_000, 0.2, 1, false},
		{100_000, 0, 1, false},
		{100_000, 0.5, 1, false},
		{100_000, 0.8, 1, false},
		{100_000, 0.2, 10, false},
		{100_000, 0.2, 100, false},
		{1_000_000, 0.2, 1, true},
		{1_000_000_000, 0.2, 100, true},
	} {
		b.Run(fmt.Sprintf("messages=%d/fails=%g/consumers=%d/fluid=%v", c.messages, c.fails, c.consumers, c.fluid), func(b *testing.B) {
			b.ReportAllocs()
			s := scenario(c.messages, c.fails, c.consumers, c.fluid)
			var most uint64
			began, attempts := processorTime(b), 0
			for b.Loop() {
				runtime.GC()
				calls := 0
				r, err := simulate.Run(b.Context(), s, func(simulate.Progress) {
					if calls++; calls%64 == 0 {
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						most = max(most, m.HeapAlloc)
					}
				})
				if err != nil {
					b.Fatal(err)
				}
				attempts += r.Attempts.Started
			}
			b.ReportMetric((processorTime(b)-began).Seconds()/float64(b.N), "cpu-s")
			b.ReportMetric(float64(attempts)/float64(b.N), "attempts")
			b.ReportMetric(float64(most)/1e6, "heap-MB")
		})
	}
}

// processorTime is what the process has used so far.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
