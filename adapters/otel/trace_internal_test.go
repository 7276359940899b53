package otel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestNothingIsRememberedOfMessagesThatAreGone, whatever became of them: deleted,
// held and run again, retried, dead-lettered, lost.
func TestNothingIsRememberedOfMessagesThatAreGone(t *testing.T) {
	for name, attributes := range map[string]map[string]string{
		"standard": nil,
		"FIFO":     {"FifoQueue": "true", "ContentBasedDeduplication": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, attributes)
				q.NewDeadLetterQueue(50)
				known, err := parseQueue(q.URL())
				if err != nil {
					t.Fatal(err)
				}
				s := newTracing(sdktrace.NewTracerProvider().Tracer(scope), known, propagator{propagation.TraceContext{}}, false).spans()
				remembered := func() int {
					s.mu.Lock()
					defer s.mu.Unlock()
					return len(s.runs)
				}
				q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					if remembered() == 0 {
						t.Error("nothing is remembered of a run that is under way")
					}
					switch {
					case m.Body == "hopeless":
						return reprise.Permanent(errors.New("hopeless"))
					case m.Attempt < 4:
						return errors.New("not yet")
					}
					return nil
				}), reprise.Config{Concurrency: 1, Retry: retry.Policy{Backoff: retry.Constant(time.Second)}, Observer: s.observer()})
				q.Send("hopeless", "one", "two", "three")
				q.WaitEmpty(time.Hour)
				synctest.Wait()
				if n := remembered(); n > 0 {
					t.Errorf("%d runs are still remembered, want 0", n)
				}
			})
		})
	}
}
