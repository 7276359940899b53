package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// run handles a message on a goroutine of its own, which may end, and returns the
// error, and what was panicked with.
func run(ctx context.Context, h reprise.Handler, m *reprise.Message) (panicked any, err error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { panicked = recover() }()
		err = h.Handle(ctx, m)
	})
	wg.Wait()
	return panicked, err
}

// TestMetrics: each end of a run, with what was asked for, and nothing of it changed.
func TestMetrics(t *testing.T) {
	stopping, stop := context.WithCancelCause(t.Context())
	stop(reprise.ErrStopping)
	lost, lose := context.WithCancelCause(t.Context())
	lose(reprise.ErrLeaseLost)
	ended, end := context.WithCancel(t.Context())
	end()
	goexit := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { runtime.Goexit(); return nil })
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		handler reprise.Handler
		err     error
		asked   reprise.Outcome
	}{
		{"done", t.Context(), returns(nil), nil, reprise.OutcomeDelete},
		{"done in the face of a stop", stopping, returns(nil), nil, reprise.OutcomeDelete},
		{"failed", t.Context(), returns(errBroken), errBroken, reprise.OutcomeRetry},
		{"failed, and says when", t.Context(), returns(reprise.RetryAfter(time.Hour, errBroken)), errBroken, reprise.OutcomeRetry},
		{"released", t.Context(), returns(fmt.Errorf("not now: %w", reprise.Release(time.Hour, errBroken))), errBroken, reprise.OutcomeRelease},
		{"permanent", t.Context(), returns(reprise.Permanent(errBroken)), errBroken, reprise.OutcomeDeadLetter},
		{"stopped", stopping, returns(stopping.Err()), context.Canceled, reprise.OutcomeRelease},
		{"stopped, and says so", stopping, returns(context.Cause(stopping)), reprise.ErrStopping, reprise.OutcomeRelease},
		{"failed while stopping", stopping, returns(errBroken), errBroken, reprise.OutcomeRetry},
		{"lost", lost, returns(lost.Err()), context.Canceled, reprise.OutcomeLost},
		{"ended otherwise", ended, returns(ended.Err()), context.Canceled, reprise.OutcomeRetry},
		{"panicked", t.Context(), panics("oh"), middleware.ErrNoReturn, reprise.OutcomeRetry},
		{"called Goexit", t.Context(), goexit, middleware.ErrNoReturn, reprise.OutcomeRetry},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var runs []middleware.Run
			h := middleware.Metrics(func(ctx context.Context, m *reprise.Message, r middleware.Run) {
				if ctx != tt.ctx || m.ID != "m-1" {
					t.Errorf("told of %v, %+v", ctx, m)
				}
				runs = append(runs, r)
			})(tt.handler)
			wantPanic, want := run(tt.ctx, tt.handler, message())
			panicked, err := run(tt.ctx, h, message())
			if err != want || panicked != wantPanic {
				t.Errorf("returned %v and panicked with %v, want %v and %v", err, panicked, want, wantPanic)
			}
			if len(runs) != 1 || !errors.Is(runs[0].Err, tt.err) || runs[0].Asked != tt.asked || runs[0].Started.IsZero() {
				t.Errorf("told of %+v, want %v, %v", runs, tt.asked, tt.err)
			}
		})
	}
}

// TestMetricsTakesTheTime of the handler.
func TestMetricsTakesTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told middleware.Run
		h := middleware.Metrics(func(_ context.Context, _ *reprise.Message, r middleware.Run) { told = r })(
			reprise.HandlerFunc(func(context.Context, *reprise.Message) error { time.Sleep(3 * time.Second); return nil }))
		started := time.Now()
		if err := h.Handle(t.Context(), message()); err != nil {
			t.Fatal(err)
		}
		if told.Duration != 3*time.Second || !told.Started.Equal(started) {
			t.Errorf("told of %+v", told)
		}
	})
}

// TestPanicKeepsItsStack: middleware that sees a panic pass leaves its stack to the
// consumer.
func TestPanicKeepsItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(1)
		var mu sync.Mutex
		var got error
		q.Consume(middleware.Logging(slog.New(slog.DiscardHandler))(reprise.HandlerFunc(explode)), reprise.Config{
			Logger: slog.New(slog.DiscardHandler),
			Observer: reprise.Observer{Attempt: func(_ context.Context, a reprise.Attempt) {
				mu.Lock()
				defer mu.Unlock()
				got = a.Err
			}},
		})
		q.Send("order")
		q.WaitEmpty(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		p, ok := errors.AsType[*reprise.PanicError](got)
		if !ok || p.Value != "oh" || !strings.Contains(string(p.Stack), "middleware_test.explode") {
			t.Errorf("the consumer saw %v", got)
		}
	})
}

func explode(context.Context, *reprise.Message) error { panic("oh") }

// TestLogging: one line for each run, at its level, which says which message it was
// and not what it holds.
func TestLogging(t *testing.T) {
	stopping, stop := context.WithCancelCause(t.Context())
	stop(reprise.ErrStopping)
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		handler reprise.Handler
		want    string
	}{
		{"done", t.Context(), returns(nil), `level=INFO msg="message handled" asked=delete `},
		{"failed", t.Context(), returns(errBroken), `level=WARN msg="message handled" asked=retry `},
		{"released", t.Context(), returns(reprise.Release(0, errBroken)), `level=INFO msg="message handled" asked=release `},
		{"permanent", t.Context(), returns(reprise.Permanent(errBroken)), `level=ERROR msg="message handled" asked=dead-letter `},
		{"stopped", stopping, returns(stopping.Err()), `level=INFO msg="message handled" asked=release `},
		{"panicked", t.Context(), panics("oh"), `level=ERROR msg="message handled" asked=retry `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			h := middleware.Logging(slog.New(slog.NewTextHandler(&out, nil)))(tt.handler)
			m := message()
			m.Attributes = attributes("token", "secret attribute")
			panicked, err := run(tt.ctx, h, m)
			line := out.String()
			if !strings.Contains(line, tt.want) || strings.Count(line, "\n") != 1 ||
				!strings.Contains(line, " message.id=m-1 message.origin=m-0 message.group=acme message.attempt=2 message.receives=3 message.bytes=11") {
				t.Errorf("logged %q, want %q", line, tt.want)
			}
			if failed := err != nil || panicked != nil; strings.Contains(line, " error=") != failed {
				t.Errorf("logged %q after %v, %v", line, err, panicked)
			}
			if strings.Contains(line, "cause=") != (tt.ctx == stopping) {
				t.Errorf("logged %q: the cause is for contexts that ended", line)
			}
			if strings.Contains(line, "secret") {
				t.Errorf("logged what the message holds: %q", line)
			}
		})
	}
}

// TestLoggingByDefault goes to slog's default logger, whichever that is by then, and
// leaves out what is not there.
func TestLoggingByDefault(t *testing.T) {
	h := middleware.Logging(nil)(returns(nil))
	var out strings.Builder
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	if err := h.Handle(t.Context(), &reprise.Message{ID: "m-1", OriginID: "m-1", Attempt: 1, Receives: 1}); err != nil {
		t.Fatal(err)
	}
	if line := out.String(); !strings.Contains(line, "message.id=m-1 message.attempt=1 message.receives=1 message.bytes=0\n") {
		t.Errorf("logged %q", line)
	}
}
