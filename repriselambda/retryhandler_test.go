package repriselambda_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// fails is a function that fails n times.
func fails(n int) func(call) *failed {
	var runs atomic.Int64
	return func(call) *failed {
		if runs.Add(1) > int64(n) {
			return nil
		}
		return &failed{"Timeout", "the database does not answer"}
	}
}

// always fails.
func always(call) *failed { return &failed{"Timeout", "the database does not answer"} }

const order = `{"order": "o-1",  "lines": [1, 2.50, "<&>"]}`

// TestRetriedUntilItSucceeds: each retry reaches the function in the article's
// envelope, when its policy says, within a second; and nothing is left behind.
func TestRetriedUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(417 * time.Millisecond)
		s := newSystem(t, fails(6), repriselambda.RetryConfig{})
		began := time.Now()
		s.lambda.invoke(order)
		s.run(time.Hour)
		made := s.lambda.made()
		if len(made) != 6 {
			t.Fatalf("%d retries, want 6", len(made))
		}
		p, failed := repriselambda.DefaultRetry(), began
		for i, c := range made {
			n := i + 1
			want := fmt.Sprintf(`{"_retry_metadata":{"attempt":%d,"initial_timestamp":%d},"_original_payload":%s}`, n, began.Unix(), order)
			if c.Payload != want || c.Type != "Event" || c.Function != flaky {
				t.Errorf("retry %d is %s of %s with\n%s, want an event with\n%s", n, c.Type, c.Function, c.Payload, want)
			}
			due := failed.Truncate(time.Millisecond).Add(p.Wait(fmt.Sprintf("request-%d", n), n))
			if late := c.At.Sub(due); late < 0 || late > time.Second {
				t.Errorf("retry %d comes %v after it is due, %v after the failure", n, late, due.Sub(failed))
			}
			failed = c.At
		}
		if n, d := len(s.queue.Messages()), len(s.dead.Messages()); n+d > 0 {
			t.Errorf("%d messages and %d dead letters are left", n, d)
		}
	})
}

// TestGivenUp: by attempts, by age, and by both; the dead letter has the payload to
// the byte, and says what happened. So does the log, once.
func TestGivenUp(t *testing.T) {
	exponential := retry.Exponential{Base: time.Minute}
	for name, c := range map[string]struct {
		policy   retry.Policy
		reason   string
		attempts int
		last     time.Duration
	}{
		"attempts":     {retry.Policy{Backoff: exponential, Jitter: retry.None, MaxAttempts: 4}, "attempts", 4, 7 * time.Minute},
		"first":        {retry.Policy{Backoff: exponential, Jitter: retry.None, MaxAttempts: 1}, "attempts", 1, 0},
		"age":          {retry.Policy{Backoff: exponential, Jitter: retry.None, MaxAttempts: -1, MaxAge: 20 * time.Minute}, "age", 6, 20 * time.Minute},
		"age comes up": {retry.Policy{Backoff: exponential, Jitter: retry.None, MaxAttempts: 4, MaxAge: time.Minute}, "age", 2, time.Minute},
	} {
		for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					s := newSystem(t, always, repriselambda.RetryConfig{Retry: c.policy, Mode: mode, Timeout: 20 * time.Second, Name: "retrier",
						Logger: slog.New(slog.NewTextHandler(&log, nil))})
					began := time.Now()
					s.lambda.invoke(order)
					s.run(24 * time.Hour)
					letters, stories := s.letters()
					want := []letter{{Body: order, Attributes: map[string]string{
						repriselambda.FunctionAttribute:     flaky,
						repriselambda.ReasonAttribute:       c.reason,
						repriselambda.AttemptsAttribute:     fmt.Sprint(c.attempts),
						repriselambda.FirstAttribute:        began.UTC().Format("2006-01-02T15:04:05.000Z"),
						repriselambda.LastAttribute:         began.Add(c.last).UTC().Format("2006-01-02T15:04:05.000Z"),
						repriselambda.ErrorTypeAttribute:    "Timeout",
						repriselambda.ErrorMessageAttribute: "the database does not answer",
					}}}
					if diff := cmp.Diff(want, letters); diff != "" {
						t.Fatalf("dead letters (-want +got):\n%s", diff)
					}
					for _, part := range []string{`"reason":"` + c.reason + `"`, fmt.Sprintf(`"attempts":%d,`, c.attempts), `"error":"Timeout: the database does not answer"`, `"consumer":"retrier"`, `"source":"` + s.queue.ARN() + `"`} {
						if len(stories) != 1 || !strings.Contains(stories[0], part) {
							t.Errorf("the stories %s do not say %s", stories, part)
						}
					}
					if line := fmt.Sprintf(`reason=%s attempts=%d error="Timeout: the database does not answer"`, c.reason, c.attempts); strings.Count(log.String(), line) != 1 {
						t.Errorf("the log does not say %q once:\n%s", line, &log)
					}
					if n := len(s.lambda.made()); n != c.attempts-1 || len(s.queue.Messages()) > 0 {
						t.Errorf("%d retries, want %d; %d messages are left", n, c.attempts-1, len(s.queue.Messages()))
					}
				})
			})
		}
	}
}

// TestEarlyReceivesChangeNothing: a record that comes before it is due, by SQS's
// whims or because the handler died, is neither skipped nor put off once more.
func TestEarlyReceivesChangeNothing(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, fails(1), repriselambda.RetryConfig{Mode: mode, Timeout: 20 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None}})
				began := time.Now()
				s.lambda.invoke(order)
				for range 7 {
					s.invoke()
					time.Sleep(8 * time.Minute)
					for _, m := range s.queue.Messages() {
						s.queue.Release(m.ID)
					}
				}
				s.run(24 * time.Hour)
				made := s.lambda.made()
				if len(made) != 1 || made[0].At.Sub(began) < time.Hour || made[0].At.Sub(began) > time.Hour+2*time.Second { // a copy is delayed by whole seconds once more
					t.Errorf("invoked at %v, want once, an hour after the failure at %v", made, began)
				}
			})
		})
	}
}

// TestThrottling for hours: it burns no attempt, waits grow, and the queue's own
// limit of receives does not end it; the age does.
func TestThrottling(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		for name, throttle := range map[string]reply{
			"429": {status: 429, code: "TooManyRequestsException"},
			"500": {status: 500, code: "ServiceException"},
			"502": {status: 502, code: "EC2ThrottledException"},
			"403": {status: 403, code: "AccessDeniedException"},
			"409": {status: 409, code: "ResourceConflictException"},
		} {
			t.Run(mode.String()+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSystem(t, fails(1), repriselambda.RetryConfig{Mode: mode, Timeout: 20 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(10 * time.Second), Jitter: retry.None, MaxAttempts: 2}})
					began := time.Now()
					over := began.Add(8 * time.Hour)
					s.lambda.answers = func(c call) *reply {
						if c.At.Before(over) {
							return &throttle
						}
						return nil
					}
					s.lambda.invoke(order)
					s.run(24 * time.Hour)
					made := s.lambda.made()
					last := made[len(made)-1]
					if late := last.At.Sub(over); late < 0 || late > 6*time.Minute {
						t.Errorf("the last of %d invocations comes %v after the end of the throttling", len(made), late)
					}
					if first, second := made[1].At.Sub(made[0].At), made[2].At.Sub(made[1].At); first > 20*time.Second || second > 50*time.Second {
						t.Errorf("the first waits are %v and %v, want short ones", first, second)
					}
					if len(made) < 8*12 || len(made) > 8*30 {
						t.Errorf("%d invocations in 8 hours, want one in 2.5 to 5 minutes", len(made))
					}
					if n, d := len(s.queue.Messages()), len(s.dead.Messages()); n+d > 0 {
						t.Errorf("%d messages and %d dead letters are left", n, d)
					}
				})
			})
		}
	}
}

// TestThrottledLater: an event whose function has failed for minutes is throttled for the first time. It is tried again
// after seconds: the wait grows with the time since the last failure, not since the first.
func TestThrottledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, fails(45), repriselambda.RetryConfig{Retry: retry.Policy{Backoff: retry.Constant(3 * time.Second), Jitter: retry.None, MaxAttempts: 99}})
		calls := 0
		s.lambda.answers = func(call) *reply {
			if calls++; calls == 40 {
				return &reply{status: 429, code: "TooManyRequestsException"}
			}
			return nil
		}
		s.lambda.invoke(order)
		s.run(24 * time.Hour)
		made := s.lambda.made()
		if len(made) != 46 {
			t.Fatalf("%d invocations, want one throttled and 45 that run", len(made))
		}
		if wait, since := made[40].At.Sub(made[39].At), made[39].At.Sub(made[0].At); wait > 20*time.Second || since < 90*time.Second {
			t.Errorf("the throttled one is repeated after %v, %v after the first, want seconds", wait, since)
		}
	})
}

// TestThrottledTogether: messages that are received again and again because Lambda is
// throttled do not pass for ones that crash the handler, which are run one by one.
func TestThrottledTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, always, repriselambda.RetryConfig{Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None}})
		s.lambda.answers = func(call) *reply { return &reply{status: 429, code: "TooManyRequestsException"} }
		for range 10 {
			s.lambda.invoke(order)
		}
		for i := range 9 {
			time.Sleep(6 * time.Minute)
			s.invoke()
			if n := len(s.lambda.made()); n != 10*(i+1) {
				t.Fatalf("%d invocations of Lambda at receive %d of ten messages", n, i+1)
			}
		}
		if got := s.client.calls(); got.Visibilities != 9 || got.Sends > 0 {
			t.Errorf("calls %+v, want 9 changes of visibility", got)
		}
	})
}

// TestThrottledBeyondItsAge is given up, for its age and with the attempts it had.
func TestThrottledBeyondItsAge(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, always, repriselambda.RetryConfig{Mode: mode, Timeout: 20 * time.Second, Retry: retry.Policy{MaxAge: time.Hour}})
				s.lambda.answers = func(call) *reply { return &reply{status: 429, code: "TooManyRequestsException", retryAfter: "120"} }
				began := time.Now()
				s.lambda.invoke(order)
				s.run(24 * time.Hour)
				letters, _ := s.letters()
				if len(letters) != 1 || letters[0].Attributes[repriselambda.ReasonAttribute] != "age" || letters[0].Attributes[repriselambda.AttemptsAttribute] != "1" {
					t.Errorf("dead letters %+v, want one for its age after 1 attempt", letters)
				}
				if took := time.Since(began); took < time.Hour || took > 67*time.Minute {
					t.Errorf("given up after %v, want after an hour", took)
				}
				for i, c := range s.lambda.made()[1:] {
					if wait := c.At.Sub(s.lambda.made()[i].At); wait < 120*time.Second {
						t.Errorf("asked again after %v, and Lambda wanted 2 minutes", wait)
					}
				}
			})
		})
	}
}

// TestEventAgeExceeded: what Lambda could not run has used up no attempt, and its age
// goes on.
func TestEventAgeExceeded(t *testing.T) {
	for _, condition := range []string{"EventAgeExceeded", "ZeroReservedConcurrency"} {
		t.Run(condition, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, func(call) *failed { return nil }, repriselambda.RetryConfig{Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 1, MaxAge: 5 * time.Minute}})
				began := time.Now()
				s.lambda.answers = func(c call) *reply {
					s.queue.Send(s.lambda.record(c.Payload, condition, ""))
					return &reply{status: 202}
				}
				s.queue.Send(s.lambda.record(order, condition, ""))
				s.run(time.Hour)
				for i, c := range s.lambda.made() {
					want := fmt.Sprintf(`{"_retry_metadata":{"attempt":0,"initial_timestamp":%d},"_original_payload":%s}`, began.Unix(), order)
					if c.Payload != want {
						t.Errorf("invocation %d has %s, want %s", i+1, c.Payload, want)
					}
				}
				letters, _ := s.letters()
				if len(letters) != 1 || len(s.lambda.made()) != 5 {
					t.Fatalf("%d invocations and dead letters %v, want 5 and one", len(s.lambda.made()), letters)
				}
				want := map[string]string{"reprise-reason": "age", "reprise-attempts": "0", "reprise-error-type": condition}
				for name, value := range want {
					if letters[0].Attributes[name] != value {
						t.Errorf("%s is %q, want %q", name, letters[0].Attributes[name], value)
					}
				}
			})
		})
	}
}

// TestOnlyAcceptedCounts: an answer that is no error, and not the one to an
// asynchronous invocation, does not pass for it.
func TestOnlyAcceptedCounts(t *testing.T) {
	for _, status := range []int{200, 204} {
		synctest.Test(t, func(t *testing.T) {
			s := newSystem(t, fails(1), repriselambda.RetryConfig{})
			s.lambda.answers = func(c call) *reply {
				if c.Number <= 2 {
					return &reply{status: status}
				}
				return nil
			}
			s.lambda.invoke(order)
			s.run(time.Hour)
			if n := len(s.lambda.made()); n != 3 || len(s.queue.Messages()) > 0 {
				t.Errorf("%d invocations with status %d, want 3; %d messages are left", n, status, len(s.queue.Messages()))
			}
		})
	}
}
