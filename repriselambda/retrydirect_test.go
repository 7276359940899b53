package repriselambda_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// every10 retries after ten minutes.
var every10 = retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 4}

const targetTimeout = 25 * time.Second

// newDirect is a system in direct mode.
func newDirect(t *testing.T, runs func(c call) *failed, p retry.Policy) *system {
	t.Helper()
	return newSystem(t, runs, repriselambda.RetryConfig{Mode: repriselambda.ModeDirect, Timeout: targetTimeout, Retry: p})
}

// TestDirect: the function gets its payload as it was, and its attempts are counted
// on the message, over copies of it.
func TestDirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDirect(t, fails(3), every10)
		s.lambda.takes = 3 * time.Second
		began := time.Now()
		s.lambda.invoke(order)
		s.run(24 * time.Hour)
		made := s.lambda.made()
		if len(made) != 3 || len(s.queue.Messages())+len(s.dead.Messages()) > 0 {
			t.Fatalf("%d retries, want 3; %d messages are left", len(made), len(s.queue.Messages())+len(s.dead.Messages()))
		}
		for i, c := range made {
			due := began.Add(time.Duration(i+1)*10*time.Minute + time.Duration(i)*3*time.Second)
			if late := c.At.Sub(due); c.Payload != order || c.Type != "RequestResponse" || late < 0 || late > time.Duration(i+1)*2*time.Second {
				t.Errorf("retry %d is %+v, %v late", i+1, c, late)
			}
		}
	})
}

// TestDirectTakesEnvelopesOff: records that were on their way when the mode was
// changed keep their attempts.
func TestDirectTakesEnvelopesOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDirect(t, always, every10)
		began := time.Now()
		time.Sleep(time.Hour)
		s.queue.Send(s.lambda.record(fmt.Sprintf(`{"_retry_metadata":{"attempt":2,"initial_timestamp":%d},"_original_payload":%s}`, began.Unix(), order), "RetriesExhausted", "{}"))
		s.run(24 * time.Hour)
		made := s.lambda.made()
		letters, _ := s.letters()
		if len(made) != 1 || made[0].Payload != order || len(letters) != 1 || letters[0].Attributes["reprise-attempts"] != "4" || letters[0].Attributes["reprise-first"] != began.UTC().Format("2006-01-02T15:04:05.000Z") {
			t.Errorf("invoked %+v, dead letters %+v", made, letters)
		}
	})
}

// TestUnknownOutcome: where nobody knows whether the function has run, or still
// runs, that counts as an attempt, and the next comes no sooner than its timeout.
func TestUnknownOutcome(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	for name, err := range map[string]error{
		"a cut connection":   reset,
		"an early end":       io.ErrUnexpectedEOF,
		"a deadline of ours": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newDirect(t, always, retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None, MaxAttempts: 4})
				s.lambda.answers = func(call) *reply { return &reply{err: err} }
				s.lambda.invoke(order)
				s.run(time.Hour)
				made := s.lambda.made()
				if len(made) != 3 {
					t.Fatalf("%d invocations, want 3", len(made))
				}
				for i, c := range made[1:] {
					if wait := c.At.Sub(made[i].At); wait < targetTimeout {
						t.Errorf("invoked again after %v, while the function may run for %v", wait, targetTimeout)
					}
				}
				letters, _ := s.letters()
				if len(letters) != 1 || letters[0].Attributes["reprise-error-type"] != "UnknownOutcome" || letters[0].Attributes["reprise-attempts"] != "4" {
					t.Errorf("dead letters %+v", letters)
				}
			})
		})
	}
}

// TestUnknownOutcomeOfALongRun: a function that takes longer than the retry handler waits for it, so
// that the call's own context ends, may still be running too.
func TestUnknownOutcomeOfALongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDirect(t, always, retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None, MaxAttempts: 4})
		s.lambda.takes = 5 * time.Minute
		s.lambda.invoke(order)
		s.run(time.Hour)
		made := s.lambda.made()
		if len(made) != 3 {
			t.Fatalf("%d invocations, want 3", len(made))
		}
		for i, c := range made[1:] {
			if wait := c.At.Sub(made[i].At); wait < 2*targetTimeout {
				t.Errorf("invoked again after %v, while the function may run for %v more than the %v waited", wait, targetTimeout, targetTimeout)
			}
		}
		letters, _ := s.letters()
		if len(letters) != 1 || letters[0].Attributes["reprise-error-type"] != "UnknownOutcome" || letters[0].Attributes["reprise-attempts"] != "4" {
			t.Errorf("dead letters %+v", letters)
		}
	})
}

// TestRuleForUnknownOutcomes has a schedule for them.
func TestRuleForUnknownOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDirect(t, fails(2), retry.Policy{
			Backoff: retry.Constant(time.Minute), Jitter: retry.None,
			Rules: []retry.Rule{retry.On(repriselambda.ErrUnknownOutcome, retry.Constant(3*time.Hour), retry.None)},
		})
		s.lambda.answers = func(c call) *reply {
			if c.Number == 1 {
				return &reply{err: io.ErrUnexpectedEOF}
			}
			return nil
		}
		s.lambda.invoke(order)
		s.run(24 * time.Hour)
		made := s.lambda.made()
		if len(made) != 3 {
			t.Fatalf("%d invocations, want 3", len(made))
		}
		if first, second := made[1].At.Sub(made[0].At), made[2].At.Sub(made[1].At); first < 3*time.Hour || second > 2*time.Minute {
			t.Errorf("the waits are %v and %v, want 3 h after the unknown outcome and a minute after the failure", first, second)
		}
	})
}

// TestMiddlewareJudgesErrors: what a middleware makes of a function's error counts, not
// only what it returns instead.
func TestMiddlewareJudgesErrors(t *testing.T) {
	for reason, judge := range map[string]func(error) error{
		"permanent": reprise.Permanent,
		"age":       func(err error) error { return reprise.RetryAfter(30*24*time.Hour, err) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSystem(t, always, repriselambda.RetryConfig{Mode: repriselambda.ModeDirect, Timeout: targetTimeout, Middleware: func(next reprise.Handler) reprise.Handler {
				return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error { return judge(next.Handle(ctx, m)) })
			}})
			s.lambda.invoke(order)
			s.run(24 * time.Hour)
			letters, _ := s.letters()
			if n := len(s.lambda.made()); n != 1 || len(letters) != 1 || letters[0].Attributes["reprise-reason"] != reason || letters[0].Attributes["reprise-attempts"] != "2" || letters[0].Attributes["reprise-error-type"] != "Timeout" {
				t.Errorf("%d invocations, dead letters %+v, want one for %s after the first retry", n, letters, reason)
			}
		})
	}
}

// TestFunctionThatDoesNotReply: the retry handler stops waiting when the function
// can no longer be running.
func TestFunctionThatDoesNotReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDirect(t, fails(1), every10)
		s.lambda.takes = time.Hour
		s.lambda.invoke(order)
		time.Sleep(10 * time.Minute)
		began := time.Now()
		s.invoke()
		if took := time.Since(began); took < targetTimeout || took > targetTimeout+6*time.Second {
			t.Errorf("it waited for %v, and the function's timeout is %v", took, targetTimeout)
		}
		if n := len(s.lambda.made()); n != 1 || len(s.queue.Messages()) != 1 {
			t.Errorf("%d invocations, %d messages", n, len(s.queue.Messages()))
		}
	})
}

// TestUnreachableLambda: what was never sent is no attempt.
func TestUnreachableLambda(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, fails(1), repriselambda.RetryConfig{Mode: mode, Timeout: targetTimeout, Retry: retry.Policy{MaxAttempts: 2}})
				s.lambda.answers = func(c call) *reply {
					if c.Number <= 12 {
						return &reply{err: &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}}
					}
					return nil
				}
				s.lambda.invoke(order)
				s.run(24 * time.Hour)
				if n, d := len(s.lambda.made()), len(s.dead.Messages()); n != 13 || d > 0 || len(s.queue.Messages()) > 0 {
					t.Errorf("%d invocations and %d dead letters, want 13 and none", n, d)
				}
			})
		})
	}
}

// TestCutReplyToAnEvent: in envelope mode it counts as no attempt, for there will be
// a record if the function ran.
func TestCutReplyToAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, fails(1), repriselambda.RetryConfig{Retry: retry.Policy{MaxAttempts: 2}})
		s.lambda.answers = func(c call) *reply {
			if c.Number <= 3 {
				return &reply{err: io.ErrUnexpectedEOF}
			}
			return nil
		}
		s.lambda.invoke(order)
		s.run(24 * time.Hour)
		if n, d := len(s.lambda.made()), len(s.dead.Messages()); n != 4 || d > 0 {
			t.Errorf("%d invocations and %d dead letters, want 4 and none", n, d)
		}
	})
}

// TestTimeLimitTooShort: a retry handler that could not wait for its functions says
// so instead of starting what it cannot see the end of.
func TestTimeLimitTooShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, always, repriselambda.RetryConfig{Mode: repriselambda.ModeDirect, Timeout: functionTimeout - 20*time.Second})
		s.lambda.invoke(order)
		ctx, cancel := context.WithTimeout(context.Background(), functionTimeout)
		defer cancel()
		_, err := s.function(ctx, s.event(10))
		if err == nil || !strings.Contains(err.Error(), "give the retry handler a timeout of 1m10s") {
			t.Errorf("the error is %v", err)
		}
		if n := len(s.lambda.made()); n > 0 {
			t.Errorf("%d invocations", n)
		}
	})
}

// TestNothingIsBegunThatCannotEnd: when too little of the time is left for a run as
// long as a function may take, the rest of a batch comes again, and that counts as no
// attempt.
func TestNothingIsBegunThatCannotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, always, repriselambda.RetryConfig{Mode: repriselambda.ModeDirect, Timeout: targetTimeout, Concurrency: 1,
			Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 2}})
		s.lambda.takes = 20 * time.Second
		for range 6 {
			s.lambda.invoke(order)
		}
		time.Sleep(time.Minute)
		if failed := s.invoke(); len(failed) != 4 || len(s.lambda.made()) != 2 {
			t.Errorf("%d messages came back after %d runs of 20 s in a minute, want 4 after 2", len(failed), len(s.lambda.made()))
		}
		s.run(time.Hour)
		if n, d := len(s.lambda.made()), len(s.dead.Messages()); n != 6 || d != 6 {
			t.Errorf("%d invocations, want 6; %d dead letters", n, d)
		}
	})
}

// TestDirectJitter belongs to the request that failed first, and to the attempt.
func TestDirectJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := retry.Policy{Backoff: retry.Exponential{Base: time.Minute}, Jitter: retry.FromBase}
		s := newDirect(t, fails(6), p)
		failed := time.Now()
		s.lambda.invoke(order)
		s.run(24 * time.Hour)
		for i, c := range s.lambda.made() {
			due := failed.Add(p.Wait("request-1", i+1))
			if late := c.At.Sub(due); late < 0 || late > 2*time.Second {
				t.Errorf("retry %d comes %v after it is due, %v after the failure", i+1, late, due.Sub(failed))
			}
			failed = c.At
		}
	})
}

// TestMiddlewareThatReleases an event after its function has failed, as package idempotency does if another run
// has the event by then: it is no attempt, and comes back, but not while the function may be running.
func TestMiddlewareThatReleases(t *testing.T) {
	for name, c := range map[string]struct {
		first *reply
		fails int // runs, Lambda's own included
		least time.Duration
	}{
		"failed":             {nil, 2, time.Second},
		"an unknown outcome": {&reply{err: io.ErrUnexpectedEOF}, 1, targetTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			lost := func(next reprise.Handler) reprise.Handler {
				return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
					err := next.Handle(ctx, m)
					if err != nil {
						return reprise.Release(time.Second, fmt.Errorf("%w: %w", idempotency.ErrLost, err))
					}
					return nil
				})
			}
			s := newSystem(t, fails(c.fails), repriselambda.RetryConfig{
				Mode: repriselambda.ModeDirect, Timeout: targetTimeout, Middleware: lost,
				Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 2},
			})
			s.lambda.invoke(order)
			s.lambda.answers = func(made call) *reply {
				if made.Number == 1 {
					return c.first
				}
				return nil
			}
			s.run(time.Hour)
			made := s.lambda.made()
			if letters, _ := s.letters(); len(letters) > 0 || len(made) != 2 {
				t.Fatalf("%s: %d invocations, dead letters %+v", name, len(made), letters)
			}
			if waited := made[1].At.Sub(made[0].At); waited < c.least || waited > c.least+10*time.Second {
				t.Errorf("%s: invoked again after %v, want %v", name, waited, c.least)
			}
		})
	}
}
