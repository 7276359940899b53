package repriselambda_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// TestCallsOfABatch: whatever becomes of ten messages, settling them takes four
// calls at the most, beside the invocations.
func TestCallsOfABatch(t *testing.T) {
	minute := retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None}
	deleted := func(c call) bool { return c.Number%5 == 0 }
	for name, c := range map[string]struct {
		cfg     repriselambda.RetryConfig
		waited  bool // for when they are due
		answers func(c call) *reply
		runs    func(c call) *failed
		want    calls
	}{
		"not due":      {cfg: repriselambda.RetryConfig{Retry: minute}, want: calls{Visibilities: 1, Hidden: 10}},
		"due":          {cfg: repriselambda.RetryConfig{Retry: minute}, waited: true, want: calls{}},
		"throttled":    {cfg: repriselambda.RetryConfig{Retry: minute}, waited: true, answers: func(call) *reply { return &reply{status: 429, code: "TooManyRequestsException"} }, want: calls{Visibilities: 1, Hidden: 10}},
		"exhausted":    {cfg: repriselambda.RetryConfig{Retry: retry.Policy{MaxAttempts: 1}}, want: calls{Sends: 1}},
		"beyond hours": {cfg: repriselambda.RetryConfig{Retry: retry.Policy{Backoff: retry.Constant(1000 * time.Hour), Jitter: retry.None, MaxAge: -1}}, want: calls{Visibilities: 1, Hidden: 10, Sends: 1}},
		"mixed": {cfg: repriselambda.RetryConfig{Retry: minute}, waited: true, answers: func(c call) *reply {
			switch {
			case deleted(c):
				return &reply{status: 404, code: "ResourceNotFoundException"}
			case c.Number%2 == 0:
				return &reply{status: 503}
			}
			return nil
		}, want: calls{Visibilities: 1, Hidden: 4, Sends: 1}},
		"direct, failing one after the other": {
			cfg:    repriselambda.RetryConfig{Retry: minute, Mode: repriselambda.ModeDirect, Timeout: targetTimeout},
			waited: true,
			runs: func(c call) *failed {
				time.Sleep(time.Duration(c.Number) * time.Second)
				return always(c)
			},
			want: calls{Sends: 1},
		},
		"direct, all there is": {
			cfg:    repriselambda.RetryConfig{Retry: minute, Mode: repriselambda.ModeDirect, Timeout: targetTimeout},
			waited: true,
			answers: func(c call) *reply {
				switch {
				case deleted(c):
					return &reply{status: 404, code: "ResourceNotFoundException"}
				case c.Number%3 == 0:
					return &reply{err: context.DeadlineExceeded}
				}
				return nil
			},
			runs: func(c call) *failed {
				time.Sleep(time.Duration(c.Number) * time.Second)
				if c.Number%2 == 0 {
					return nil
				}
				return always(c)
			},
			want: calls{Sends: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, always, c.cfg)
				s.lambda.invoke(order) // the queue's attributes are read once in the life of the process
				s.invoke()
				for _, m := range s.queue.Messages() {
					s.queue.Release(m.ID)
				}
				purge(t, s)
				for range 10 {
					s.lambda.invoke(order)
				}
				if c.waited {
					time.Sleep(time.Minute)
				}
				s.lambda.mu.Lock()
				s.lambda.calls = nil
				s.lambda.mu.Unlock()
				s.lambda.answers, s.lambda.runs = c.answers, fails(0)
				if c.runs != nil {
					s.lambda.runs = c.runs
				}
				before := s.client.calls()
				s.invoke()
				after := s.client.calls()
				got := calls{after.Visibilities - before.Visibilities, after.Hidden - before.Hidden, after.Sends - before.Sends, after.Attributes - before.Attributes}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if n := got.Visibilities + got.Sends + got.Attributes; n > 4 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
}

// purge empties the retry queue.
func purge(t *testing.T, s *system) {
	t.Helper()
	for _, r := range s.event(10).Records {
		s.deleteRecord(r)
	}
	if n := len(s.queue.Messages()); n > 0 {
		t.Fatalf("%d messages are left", n)
	}
}

// TestHandlerThatDies after it has invoked a function, and before its reply: the
// function runs once more, unless an idempotency store knows better; what had not been
// reached runs once.
func TestHandlerThatDies(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, stored %v", mode, stored), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := repriselambda.RetryConfig{Mode: mode, Timeout: targetTimeout, Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None}}
					if stored {
						cfg.Middleware = middleware.Must(idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{}))
					}
					s := newSystem(t, always, cfg)
					for i := range 10 {
						s.lambda.invoke(fmt.Sprintf(`"%d"`, i))
					}
					s.lambda.runs = fails(0)
					time.Sleep(time.Minute)
					ctx, cancel := context.WithTimeout(context.Background(), functionTimeout)
					defer cancel()
					if _, err := s.function(ctx, s.event(5)); err != nil { // and its reply is lost
						t.Fatal(err)
					}
					s.run(24 * time.Hour)
					runs := make(map[string]int)
					for _, c := range s.lambda.made() {
						runs[c.Payload]++
					}
					want := 15
					if stored {
						want = 10
					}
					if n := len(s.lambda.made()); n != want || len(runs) != 10 {
						t.Errorf("%d invocations for %d events, want %d for 10", n, len(runs), want)
					}
					if n, d := len(s.queue.Messages()), len(s.dead.Messages()); n+d > 0 {
						t.Errorf("%d messages and %d dead letters are left", n, d)
					}
				})
			})
		}
	}
}

// TestRecordThatComesTwice, as two messages: with an idempotency store the failed
// request is one, whatever message tells of it.
func TestRecordThatComesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once := middleware.Must(idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{}))
		s := newSystem(t, fails(0), repriselambda.RetryConfig{Middleware: once})
		record := s.lambda.record(order, "RetriesExhausted", "{}")
		s.queue.Send(record, record)
		s.run(time.Hour)
		if n := len(s.lambda.made()); n != 1 || len(s.queue.Messages()) > 0 {
			t.Errorf("%d invocations, want 1; %d messages are left", n, len(s.queue.Messages()))
		}
	})
}

// TestMiddleware is put around what is invoked, and what it says goes: it may refuse,
// put off, fail and panic, which counts as no attempt.
func TestMiddleware(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				var origins []string
				odd := func(next reprise.Handler) reprise.Handler {
					return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
						n++
						origins = append(origins, m.OriginID)
						switch n {
						case 1:
							panic("as told")
						case 2:
							return fmt.Errorf("the store: %w", context.DeadlineExceeded)
						case 3:
							return reprise.Release(time.Hour, idempotency.ErrInProgress)
						case 5:
							return reprise.Permanent(idempotency.ErrMismatch)
						}
						return next.Handle(ctx, m)
					})
				}
				s := newSystem(t, fails(2), repriselambda.RetryConfig{Mode: mode, Timeout: targetTimeout, Middleware: odd, Retry: retry.Policy{MaxAttempts: 3}})
				began := time.Now()
				s.lambda.invoke(order)
				s.run(24 * time.Hour)
				letters, _ := s.letters()
				if n != 5 || len(s.lambda.made()) != 1 || time.Since(began) < time.Hour {
					t.Errorf("%d runs of the middleware and %d of the function in %v", n, len(s.lambda.made()), time.Since(began))
				}
				if len(letters) != 1 || letters[0].Attributes["reprise-reason"] != "permanent" || letters[0].Attributes["reprise-attempts"] != "2" || letters[0].Body != order {
					t.Errorf("dead letters %+v", letters)
				}
				if origins[0] != "request-1" {
					t.Errorf("the message's origin is %q, want the request's id", origins[0])
				}
			})
		})
	}
}

// TestPolicyThatPanics is a mistake of the user's, which costs no message.
func TestPolicyThatPanics(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			odd := retry.Rule{Backoff: retry.Constant(time.Minute), Jitter: retry.None, Match: func(error) bool {
				if asked++; asked <= 3 {
					panic("as told")
				}
				return true
			}}
			s := newSystem(t, fails(1), repriselambda.RetryConfig{Mode: mode, Timeout: targetTimeout, Retry: retry.Policy{Rules: []retry.Rule{odd}}})
			began := time.Now()
			s.lambda.invoke(order)
			s.run(24 * time.Hour)
			if n := len(s.lambda.made()); n != 1 || time.Since(began) > time.Hour || len(s.queue.Messages())+len(s.dead.Messages()) > 0 {
				t.Errorf("%v: %d invocations in %v; %d messages and %d dead letters are left", mode, n, time.Since(began), len(s.queue.Messages()), len(s.dead.Messages()))
			}
		})
	}
}
