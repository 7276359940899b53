package middleware_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/retry"
)

var errBroken = errors.New("broken")

// message is what the tests' handlers get.
func message() *reprise.Message {
	return &reprise.Message{ID: "m-1", OriginID: "m-0", Body: "secret body", GroupID: "acme", Attempt: 2, Receives: 3}
}

// returns is a handler that returns err.
func returns(err error) reprise.Handler {
	return reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return err })
}

// panics is a handler that panics with v.
func panics(v any) reprise.Handler {
	return reprise.HandlerFunc(func(context.Context, *reprise.Message) error { panic(v) })
}

// reasonOf is how a consumer takes err.
func reasonOf(err error) retry.Reason {
	return retry.Policy{}.Decide(retry.Failure{N: 1, Err: err, Ended: time.Unix(1, 0)}).Reason
}

// TestChainOrder: the first is the outermost, on the way in and on the way out.
func TestChainOrder(t *testing.T) {
	var steps []string
	step := func(name string) middleware.Middleware {
		return func(next reprise.Handler) reprise.Handler {
			return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
				steps = append(steps, name)
				err := next.Handle(ctx, m)
				steps = append(steps, "/"+name)
				return err
			})
		}
	}
	h := middleware.Chain(step("a"), middleware.Chain(step("b"), middleware.Chain()), step("c"))(returns(errBroken))
	if err := h.Handle(t.Context(), message()); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
	if want := []string{"a", "b", "c", "/c", "/b", "/a"}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
}

// TestBadSettings are errors that name the setting and the remedy, and Must makes
// panics of them.
func TestBadSettings(t *testing.T) {
	limit := func(c middleware.RateLimitConfig) func() (middleware.Middleware, error) {
		return func() (middleware.Middleware, error) { return middleware.RateLimit(c) }
	}
	timeout := func(d time.Duration) func() (middleware.Middleware, error) {
		return func() (middleware.Middleware, error) { return middleware.Timeout(d) }
	}
	size := func(n int) func() (middleware.Middleware, error) {
		return func() (middleware.Middleware, error) {
			return middleware.Decompress(middleware.DecompressConfig{MaxSize: n})
		}
	}
	for _, tt := range []struct {
		name string
		make func() (middleware.Middleware, error)
		want []string
	}{
		{"no time limit", timeout(0), []string{"time limit is 0s: set a positive duration"}},
		{"a negative time limit", timeout(-time.Second), []string{"time limit is -1s"}},
		{"no rate", limit(middleware.RateLimitConfig{}), []string{"RateLimitConfig.Rate is 0: set 0.001 to 1000000 runs per second"}},
		{"everything at once", limit(middleware.RateLimitConfig{Rate: 2e6, Burst: -1, MaxKeys: -5}), []string{"Rate is 2e+06", "Burst is -1", "MaxKeys is -5"}},
		{"a large burst", limit(middleware.RateLimitConfig{Rate: 1, Burst: 2e6}), []string{"Burst is 2000000"}},
		{"a negative size", size(-1), []string{"DecompressConfig.MaxSize is -1: set 1 to 1073741824 bytes, or 0 for 16777216"}},
		{"a huge size", size(2 << 30), []string{"MaxSize is 2147483648"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := tt.make()
			if m != nil || err == nil {
				t.Fatalf("error %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q in it", err, want)
				}
			}
			defer func() {
				if v := recover(); v != err {
					t.Errorf("Must panicked with %v, want the error", v)
				}
			}()
			middleware.Must(m, err)
		})
	}
}

// TestMissingFunctionsPanicAtOnce, not at the first message.
func TestMissingFunctionsPanicAtOnce(t *testing.T) {
	for name, f := range map[string]func(){
		"Metrics":  func() { middleware.Metrics(nil) },
		"Validate": func() { middleware.Validate(nil) },
	} {
		func() {
			defer func() {
				if v, ok := recover().(string); !ok || !strings.Contains(v, name+" was given a nil function") {
					t.Errorf("%s: panic %v", name, v)
				}
			}()
			f()
		}()
	}
}

// TestValidate: what does not pass is dead-lettered with the reason and not handled,
// even if the check says to retry.
func TestValidate(t *testing.T) {
	runs := 0
	handler := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { runs++; return errBroken })
	var problem error
	h := middleware.Validate(func(_ context.Context, m *reprise.Message) error {
		if m.Body != "secret body" {
			t.Errorf("the check saw %q", m.Body)
		}
		return problem
	})(handler)
	if err := h.Handle(t.Context(), message()); !errors.Is(err, errBroken) || runs != 1 {
		t.Errorf("valid: %v after %d runs", err, runs)
	}
	for _, problem = range []error{errors.New("no customer"), reprise.RetryAfter(time.Minute, errors.New("no customer"))} {
		err := h.Handle(t.Context(), message())
		if reasonOf(err) != retry.ReasonPermanent || !strings.Contains(err.Error(), "the message is not valid") || !errors.Is(err, problem) || runs != 1 {
			t.Errorf("not valid: %v after %d runs", err, runs)
		}
	}
}
