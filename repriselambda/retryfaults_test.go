package repriselambda_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestFaults: whatever SQS refuses, or carries out without a reply, no event is lost. In
// envelope mode, where the record says all, none is invoked early or once more either;
// in direct mode that takes copies, and what no copy tells of is not counted.
func TestFaults(t *testing.T) {
	const events, attempts = 25, 4
	// A reply that is lost leaves a message and its copy, which may have copies in their
	// turn.
	limits := map[sqsserver.FaultKind]int{sqsserver.FaultLoseReply: 10}
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		for _, kind := range []sqsserver.FaultKind{sqsserver.FaultServerError, sqsserver.FaultDropConnection, sqsserver.FaultLoseReply, sqsserver.FaultFailEntry} {
			t.Run(fmt.Sprintf("%v/%s", mode, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSystem(t, always, repriselambda.RetryConfig{
						Mode: mode, Timeout: targetTimeout, Logger: slog.New(slog.DiscardHandler),
						Retry: retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: attempts, MaxAge: -1},
					})
					var faults []sqsserver.Fault
					for _, action := range []string{"ChangeMessageVisibilityBatch", "SendMessageBatch", "GetQueueAttributes"} {
						if kind != sqsserver.FaultFailEntry || action != "GetQueueAttributes" {
							faults = append(faults, sqsserver.Fault{Kind: kind, Action: action, Probability: 0.6, Limit: limits[kind]})
						}
					}
					s.queue.Fault(faults...)
					s.dead.Fault(faults...)
					for i := range events {
						s.lambda.invoke(fmt.Sprint(i))
					}
					s.run(24 * time.Hour)

					letters, _ := s.letters()
					dead := make(map[string]int)
					for _, l := range letters {
						dead[l.Body]++
						reason := l.Attributes[repriselambda.ReasonAttribute]
						if mode == repriselambda.ModeDirect && reason == "crash" {
							continue // too often nothing became of it
						}
						if reason != "attempts" || l.Attributes[repriselambda.AttemptsAttribute] != fmt.Sprint(attempts) {
							t.Errorf("the dead letter of event %s says %v", l.Body, l.Attributes)
						}
					}
					if len(dead) != events || len(s.queue.Messages()) > 0 {
						t.Errorf("%d of %d events are dead letters, %d messages are left", len(dead), events, len(s.queue.Messages()))
					}
					if kind != sqsserver.FaultLoseReply && len(letters) != events {
						t.Errorf("%d dead letters of %d events", len(letters), events)
					}
					made := s.lambda.made()
					if want := events * (attempts - 1); len(made) < want/2 || mode == repriselambda.ModeEnvelope && len(made) != want {
						t.Errorf("%d retries of %d events, want %d", len(made), events, want)
					}
					if mode != repriselambda.ModeEnvelope {
						return
					}
					last := make(map[string]time.Time)
					for _, c := range made {
						if before, again := last[c.event()]; again && c.At.Sub(before) < 10*time.Minute {
							t.Errorf("event %s is invoked again after %v", c.event(), c.At.Sub(before))
						}
						last[c.event()] = c.At
					}
				})
			})
		}
	}
}

// TestCopyThatCannotBeSent: in direct mode a failed attempt that no copy could tell of
// is not counted; but the next comes no sooner for that.
func TestCopyThatCannotBeSent(t *testing.T) {
	for _, kind := range []sqsserver.FaultKind{sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultDropConnection, sqsserver.FaultFailEntry} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newDirect(t, always, retry.Policy{Backoff: retry.Constant(20 * time.Minute), Jitter: retry.None, MaxAttempts: 3})
				const events = 12
				for i := range events {
					s.lambda.invoke(fmt.Sprint(i))
				}
				s.invoke()
				s.invoke()
				time.Sleep(20 * time.Minute)
				s.queue.Fault(sqsserver.Fault{Kind: kind, Action: "SendMessageBatch"})
				began := time.Now()
				s.invokeWith(s.event(events))
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the function took %v", took)
				}
				s.queue.Fault()
				for _, m := range s.queue.Messages() {
					if wait := m.Due.Sub(began); wait < 20*time.Minute || wait > 20*time.Minute+3*time.Second {
						t.Errorf("a message comes again after %v, want 20 minutes", wait)
					}
				}
				s.run(24 * time.Hour)
				if n, d := len(s.lambda.made()), len(s.dead.Messages()); n != 3*events || d != events {
					t.Errorf("%d retries and %d dead letters, want %d and %d", n, d, 3*events, events)
				}
			})
		})
	}
}
