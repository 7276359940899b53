package repriselambda_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/repriselambda"
)

// pause has the function's reserved concurrency be 0 until then, as Lambda answers
// that: an asynchronous invocation is accepted, and at once recorded as a failure; a
// synchronous one is throttled.
func (s *system) pause(until time.Time) {
	s.lambda.answers = func(c call) *reply {
		switch {
		case !c.At.Before(until):
			return nil
		case c.Type == "Event":
			s.queue.Send(s.lambda.record(c.Payload, "ZeroReservedConcurrency", ""))
			return &reply{status: 202}
		}
		return &reply{status: 429, code: "TooManyRequestsException"}
	}
}

// TestPausedFunction: while the function's reserved concurrency is 0, the waits
// between tries grow to minutes under the default policy, whether it has run before
// or not. No attempt is used up, and soon after the end of the pause it runs.
func TestPausedFunction(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		for _, before := range []int{0, 3} {
			t.Run(fmt.Sprintf("%v, %d runs before", mode, before), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSystem(t, fails(before), repriselambda.RetryConfig{Mode: mode, Timeout: targetTimeout})
					began := time.Now()
					if before > 0 {
						s.lambda.invoke(order)
						s.runUntil(func() bool { return len(s.lambda.made()) == before-1 })
					} else {
						s.queue.Send(s.lambda.record(order, "ZeroReservedConcurrency", ""))
					}
					runs := len(s.lambda.made())
					paused := time.Now()
					const pause = 8 * time.Hour
					s.pause(paused.Add(pause))
					s.run(24 * time.Hour)
					tries := s.lambda.made()[runs:]
					// Eleven while the waits double, then one in 2.5 to 5 minutes.
					if len(tries) < 8*12 || len(tries) > 11+8*24+1 {
						t.Errorf("%d tries in a pause of %v", len(tries), pause)
					}
					last := tries[len(tries)-1]
					if late := last.At.Sub(paused.Add(pause)); late < 0 || late > 5*time.Minute+2*time.Second {
						t.Errorf("it runs %v after the end of the pause", late)
					}
					if mode == repriselambda.ModeEnvelope {
						want := fmt.Sprintf(`{"_retry_metadata":{"attempt":%d,"initial_timestamp":%d}`, before, began.Unix())
						if !strings.HasPrefix(last.Payload, want) {
							t.Errorf("it runs with %s, want %s", last.Payload, want)
						}
					}
					for i := 1; i < len(tries); i++ {
						waited, elapsed := tries[i].At.Sub(tries[i-1].At), tries[i-1].At.Sub(paused)
						if least := min(elapsed/2, 150*time.Second) - time.Second; waited < least {
							t.Errorf("try %d comes %v after the one before, at %v of the pause", i+1, waited, elapsed)
						}
					}
					if n, d := len(s.queue.Messages()), len(s.dead.Messages()); n+d > 0 {
						t.Errorf("%d messages and %d dead letters are left", n, d)
					}
				})
			})
		}
	}
}

// TestPausedBeyondItsAge: an event whose function stays paused is given up for its
// age, not before, with the attempts that it had.
func TestPausedBeyondItsAge(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, always, repriselambda.RetryConfig{Mode: mode, Timeout: targetTimeout})
				began := time.Now()
				s.pause(began.Add(48 * time.Hour))
				s.queue.Send(s.lambda.record(order, "ZeroReservedConcurrency", ""))
				s.run(48 * time.Hour)
				letters, _ := s.letters()
				if len(letters) != 1 || letters[0].Body != order || letters[0].Attributes[repriselambda.ReasonAttribute] != "age" || letters[0].Attributes[repriselambda.AttemptsAttribute] != "0" {
					t.Errorf("dead letters %+v, want one for its age without an attempt", letters)
				}
				if took := time.Since(began); took < 24*time.Hour-6*time.Minute || took > 24*time.Hour+6*time.Minute {
					t.Errorf("given up after %v, want at the end of 24 hours", took)
				}
			})
		})
	}
}

// TestPauseThatEndsShortlyBeforeTheAge: the last part of the age, in which a run that fails is the last, is no
// reason to give up an event that has not run in it.
func TestPauseThatEndsShortlyBeforeTheAge(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, fails(0), repriselambda.RetryConfig{Mode: mode, Timeout: targetTimeout})
				resumed := time.Now().Add(23*time.Hour + 30*time.Minute)
				s.pause(resumed)
				s.queue.Send(s.lambda.record(order, "ZeroReservedConcurrency", ""))
				s.run(48 * time.Hour)
				if letters, _ := s.letters(); len(letters) != 0 {
					t.Fatalf("dead letters %+v", letters)
				}
				made := s.lambda.made()
				if late := made[len(made)-1].At.Sub(resumed); late < 0 || late > 5*time.Minute+2*time.Second {
					t.Errorf("it runs %v after the end of the pause", late)
				}
			})
		})
	}
}

// runUntil is run until something holds.
func (s *system) runUntil(done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(24 * time.Hour); !done() && s.awaitMessage(end); {
		s.invoke()
	}
}
