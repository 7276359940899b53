package simulation_test

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/retry"
)

// BenchmarkSimulation works off messages of which a fifth fail, each time that they run. An operation is
// a message; an attempt costs what "ns/attempt" says.
func BenchmarkSimulation(b *testing.B) {
	for _, fifo := range []bool{false, true} {
		b.Run(map[bool]string{false: "standard", true: "fifo"}[fifo], func(b *testing.B) {
			b.ReportAllocs()
			attempts := 0
			s := newScenario(b, 1, engine.Settings{FIFO: fifo, Retention: 14 * 24 * time.Hour}, func(spec *simulation.Spec) {
				spec.Settings.Concurrency = 100
				spec.Settings.Retry = retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: -1, MaxAge: -1}
				spec.Attempted, spec.Settled = nil, nil
				state := uint32(1)
				spec.Handler = func(*simulation.Message) simulation.Run {
					attempts++
					state = state*1664525 + 1013904223
					if state>>16%5 == 0 {
						return simulation.Run{Takes: 20 * time.Millisecond, Err: errFailed}
					}
					return simulation.Run{Takes: 20 * time.Millisecond}
				}
			})
			s.put(b.N, 1000)
			b.ResetTimer()
			for left(s.queue) > 0 {
				s.runFor(b, time.Minute)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(attempts), "ns/attempt")
		})
	}
}
