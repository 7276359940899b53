package reprise

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/retry"
)

// BenchmarkMachines works off messages of which a fifth fail, each time that they run, by
// consumers and a queue in virtual time. An operation is a message; an attempt costs what
// "ns/attempt" says.
func BenchmarkMachines(b *testing.B) {
	for _, fifo := range []bool{false, true} {
		b.Run(map[bool]string{false: "standard", true: "fifo"}[fifo], func(b *testing.B) {
			b.ReportAllocs()
			l := world.NewLoop(machinesEpoch, 1)
			sqs := l.NewService()
			suffix := map[bool]string{true: ".fifo"}[fifo]
			queue := sqs.Create("main"+suffix, engine.Settings{FIFO: fifo, Visibility: time.Minute, Retention: 14 * 24 * time.Hour})
			attempts := 0
			model := func([]*Message) work {
				attempts++
				return work{takes: 20 * time.Millisecond, finished: func() {}, errs: func() []error {
					if l.Chance(0.2) {
						return []error{errOfHandler}
					}
					return nil
				}}
			}
			for i := range b.N {
				m := engine.Message{Delay: -1, Payload: &letter{body: "m"}}
				if fifo {
					m.Group, m.Dedup = fmt.Sprint(i%1000), fmt.Sprint(i)
				}
				queue.Put(m)
			}
			latency := world.Latency{Base: time.Millisecond, Spread: time.Millisecond, Most: 100 * time.Millisecond}
			p := l.Start("node", 0, 0)
			cfg := Config{Concurrency: 100, Retry: retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: -1, MaxAge: -1}, seed: 1}
			b.ResetTimer()
			if err := simulateOne(newHost(l, p), simulation{sqs: sqs, queue: queue, latency: latency, spec: spec{cfg: cfg}}, model); err != nil {
				b.Fatal(err)
			}
			for end := time.Minute; ; end += time.Minute {
				if err := l.Run(end); err != nil {
					b.Fatal(err)
				}
				if visible, inFlight, delayed := queue.Counts(); visible+inFlight+delayed == 0 {
					break
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(attempts), "ns/attempt")
		})
	}
}
