package repriseotel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestOtherObserversBeginSpansAndLeaveTrails: telemetry ends only the spans that it has begun
// itself, and remembers nothing of runs of which it learns no end.
func TestOtherObserversBeginSpansAndLeaveTrails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		known, err := parseQueue(q.URL())
		if err != nil {
			t.Fatal(err)
		}
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		s := newTracing(provider.Tracer(scope), known, newPropagator(propagation.TraceContext{}), false).spans()
		other := reprise.Observer{Starting: func(ctx context.Context, m *reprise.Message) (context.Context, string) {
			ctx, _ = provider.Tracer("other").Start(ctx, "other")
			return ctx, "other-" + m.ID
		}}
		q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 3 {
				return errors.New("not yet")
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Second)}, Observer: reprise.Observers(s.observer(), other)})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		synctest.Wait()
		var ended []string
		for _, span := range recorder.Ended() {
			ended = append(ended, span.Name())
		}
		run := spanName(operationProcess, known)
		if diff := cmp.Diff([]string{run, run, run}, ended); diff != "" {
			t.Errorf("spans that have ended (-want +got):\n%s", diff)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.runs) > 0 {
			t.Errorf("%d runs are still remembered, want 0", len(s.runs))
		}
	})
}

// TestLostIsToldFirst: that a message is lost may be told before the end of its run. No request has settled it, so that
// the run has the only span.
func TestLostIsToldFirst(t *testing.T) {
	known, err := parseQueue("https://sqs.us-east-1.amazonaws.com/123456789012/orders")
	if err != nil {
		t.Fatal(err)
	}
	recorder := tracetest.NewSpanRecorder()
	s := newTracing(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer(scope), known, newPropagator(propagation.TraceContext{}), false).spans()
	m := &reprise.Message{ID: "m", OriginID: "m"}
	began := time.Now()
	ctx, trail := s.starting(t.Context(), m)
	m.Trail = trail
	s.settled(t.Context(), reprise.Settled{Message: m, Outcome: reprise.OutcomeLost, Err: reprise.ErrLeaseLost})
	s.attempt(ctx, reprise.Attempt{Message: m, Started: began, Duration: time.Second, Outcome: reprise.OutcomeLost, Err: reprise.ErrLeaseLost})
	var ended []string
	for _, span := range recorder.Ended() {
		ended = append(ended, span.Name())
	}
	if diff := cmp.Diff([]string{spanName(operationProcess, known)}, ended); diff != "" || len(s.runs) > 0 {
		t.Errorf("%d runs are remembered; the spans (-want +got):\n%s", len(s.runs), diff)
	}
}

// TestNothingIsRememberedOfMessagesThatAreGone: deleted, held and run again, retried, dead-lettered
// or lost.
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
				s := newTracing(sdktrace.NewTracerProvider().Tracer(scope), known, newPropagator(propagation.TraceContext{}), false).spans()
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
