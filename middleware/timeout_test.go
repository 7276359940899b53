package middleware_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// untilTold is a handler that works until its context ends, and notes why.
func untilTold(cause *error) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
		<-ctx.Done()
		*cause = context.Cause(ctx)
		return ctx.Err()
	})
}

// TestTimeout ends the handler's context in time, with its own cause, and the error
// says so.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		started := time.Now()
		err := middleware.Must(middleware.Timeout(30*time.Second))(untilTold(&cause)).Handle(t.Context(), message())
		if took := time.Since(started); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
		if !errors.Is(cause, middleware.ErrTimeout) || !errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("cause %v", cause)
		}
		if !errors.Is(err, middleware.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || !reprise.IsUnavailable(err) || !strings.Contains(err.Error(), "30s") {
			t.Errorf("error %v", err)
		}
		if reasonOf(err) != retry.ReasonPolicy {
			t.Errorf("taken for %v, want an attempt that failed", reasonOf(err))
		}
	})
}

// TestTimeoutIsNoStop: another end of the context keeps its cause, and its error.
func TestTimeoutIsNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(reprise.ErrStopping) })
		var cause error
		err := middleware.Must(middleware.Timeout(30*time.Second))(untilTold(&cause)).Handle(ctx, message())
		if !errors.Is(cause, reprise.ErrStopping) || err != context.Canceled {
			t.Errorf("cause %v, error %v", cause, err)
		}
	})
}

// TestTimeoutNested: the shorter limit is the one that is told of.
func TestTimeoutNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limits := range [][2]time.Duration{{time.Second, time.Minute}, {time.Minute, time.Second}} {
			var cause error
			h := middleware.Chain(middleware.Must(middleware.Timeout(limits[0])), middleware.Must(middleware.Timeout(limits[1])))(untilTold(&cause))
			err := h.Handle(t.Context(), message())
			if !strings.Contains(cause.Error(), "limit 1s") || strings.Count(err.Error(), "took too long") != 1 {
				t.Errorf("limits %v: cause %v, error %v", limits, cause, err)
			}
		}
	})
}

// TestTimeoutLeavesOtherEndsAlone: success is success, late or not, and an error of
// the handler's own stays that.
func TestTimeoutLeavesOtherEndsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, want := range []error{nil, errBroken, reprise.Permanent(errBroken)} {
			for _, took := range []time.Duration{0, time.Minute} {
				h := middleware.Must(middleware.Timeout(time.Second))(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					time.Sleep(took)
					return want
				}))
				if err := h.Handle(t.Context(), message()); err != want {
					t.Errorf("%v after %v became %v", want, took, err)
				}
			}
		}
	})
}

// TestTimeoutByAConsumer: it costs an attempt, a stop does not.
func TestTimeoutByAConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		var attempts []reprise.Attempt
		var cause error
		c := q.Consume(middleware.Must(middleware.Timeout(40*time.Second))(untilTold(&cause)), reprise.Config{
			Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None},
			Observer: reprise.Observer{Attempt: func(_ context.Context, a reprise.Attempt) {
				mu.Lock()
				defer mu.Unlock()
				attempts = append(attempts, a)
			}},
		})
		q.Send("order")
		time.Sleep(110 * time.Second) // in the second attempt
		c.Stop()
		mu.Lock()
		defer mu.Unlock()
		if len(attempts) != 2 || attempts[0].Outcome != reprise.OutcomeRetry || !errors.Is(attempts[0].Err, middleware.ErrTimeout) ||
			attempts[1].Outcome != reprise.OutcomeRelease || errors.Is(attempts[1].Err, middleware.ErrTimeout) || !errors.Is(cause, reprise.ErrStopping) {
			t.Errorf("attempts %+v, then cause %v", attempts, cause)
		}
	})
}
