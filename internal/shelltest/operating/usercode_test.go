package operating

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// The consumer calls code of the user: handlers, the methods of their errors, a policy's functions,
// observers, loggers. A mistake of such code may cost an attempt, but neither the process nor the
// consumer. None of it is called under the consumer's mutex: if it were, a panic or a call of
// Status would block the test, whose timeout then shows the goroutine that holds the mutex.

// goesOn fails the test unless c handles one more message and then stops without an error. Its
// handler has to succeed for the body "one more".
func goesOn(t *testing.T, q *reprisetest.Queue, c *reprisetest.Consumer) {
	t.Helper()
	q.Send("one more")
	q.WaitEmpty(time.Hour)
	time.Sleep(time.Minute) // a delete that nobody heard the end of is repeated
	synctest.Wait()
	if s := c.Status(); s.Running+s.Waiting+s.Settling != 0 || s.Pollers == 0 {
		t.Errorf("status %+v, want nothing held, and a poller", s)
	}
	if report := c.Stop(); c.Err() != nil || !report.Drained() {
		t.Errorf("stop: %v, %v", c.Err(), report)
	}
}

// TestPanicCostsOneAttempt: a panic costs only one attempt: other messages are handled, the message
// is retried by the policy, and the same holds for a handler that ends its goroutine, as t.FailNow
// does. In both cases the observer is told of the attempt, and its context ends.
func TestPanicCostsOneAttempt(t *testing.T) {
	for name, burst := range map[string]func(){
		"panic":  func() { panic("index out of range") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var j kit.Journal
				var mu sync.Mutex
				var failed []error
				var burstCtx context.Context
				c := q.Consume(j.Handler(func(ctx context.Context, m *reprise.Message) error {
					if m.Body == "3" && m.Attempt == 1 {
						burstCtx = ctx
						burst()
					}
					return nil
				}), reprise.Config{
					Concurrency:    2,
					HandlerTimeout: time.Hour,
					Retry:          retry.Policy{Backoff: retry.Constant(10 * time.Second), Jitter: retry.None},
					Observer: reprise.Observer{Attempt: func(_ context.Context, e reprise.Attempt) {
						mu.Lock()
						defer mu.Unlock()
						if e.Err != nil {
							failed = append(failed, e.Err)
						}
					}},
				})
				q.Send(kit.Numbered(20)...)
				q.WaitEmpty(time.Minute)
				synctest.Wait()
				if n := len(j.All()); n != 21 {
					t.Errorf("%d runs of 20 messages, want 21", n)
				}
				if runs := j.Of("3"); len(runs) != 2 || runs[1].Attempt != 2 || runs[1].Started.Sub(runs[0].Started) < 10*time.Second {
					t.Errorf("the message whose handler burst ran %+v", runs)
				}
				if burstCtx.Err() == nil {
					t.Error("the context of the attempt has not ended with it")
				}
				if len(failed) != 1 || !strings.Contains(failed[0].Error(), name) {
					t.Fatalf("failures told: %v, want one that says %q", failed, name)
				}
				if panicked, ok := errors.AsType[*reprise.PanicError](failed[0]); ok != (name == "panic") || ok && len(panicked.Stack) == 0 {
					t.Errorf("failure %#v, want a PanicError with its stack for a panic only", failed[0])
				}
				goesOn(t, q, c)
			})
		})
	}
}

// trap is an error with one method that misbehaves as set; the others work.
type trap struct{ message, is, as, unwrap func() }

func (e *trap) Error() string { spring(e.message); return "trap" }

func (e *trap) Is(error) bool { spring(e.is); return false }

func (e *trap) As(any) bool { spring(e.as); return false }

func (e *trap) Unwrap() error { spring(e.unwrap); return nil }

func spring(f func()) {
	if f != nil {
		f()
	}
}

// TestErrorsThatPanic: a method of the handler's error panics, for example that of a typed nil. The
// attempt has failed as after a panic of the handler, and the dead letter's story has the type of
// the error.
func TestErrorsThatPanic(t *testing.T) {
	burst := func() { panic("the error is broken") }
	for name, err := range map[string]error{
		"a typed nil": (*trap)(nil),
		"its Error":   &trap{message: burst},
		"its Is":      &trap{is: burst},
		"its As":      &trap{as: burst},
		"its Unwrap":  &trap{unwrap: burst},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(5)
				c := q.Consume(kit.FailsFirst(err), reprise.Config{Retry: retry.Policy{MaxAttempts: 1}})
				q.Send("order")
				q.WaitEmpty(time.Minute)
				letters := dead.Messages()
				if len(letters) != 1 {
					t.Fatalf("%d dead letters, want 1", len(letters))
				}
				if s := kit.StoryOf(t, letters[0]); s.Reason != "attempts" || !strings.Contains(s.Error, "(*operating.trap) panicked") {
					t.Errorf("story %+v, want it to name the error's type", s)
				}
				synctest.Wait()
				if n := c.Status().Counts; n.Attempts != 1 || n.Panics != 1 {
					t.Errorf("counts %+v, want the one attempt counted as a panic", n)
				}
				goesOn(t, q, c)
			})
		})
	}
}

// TestPolicyFunctions: a rule's Match that panics matches nothing, and a Backoff that panics has
// the longest wait. The check of the plan at the start also calls Backoff for retries far ahead,
// and survives a panic too.
func TestPolicyFunctions(t *testing.T) {
	const rule, usual = time.Minute, time.Second
	for _, tt := range []struct {
		name    string
		match   func(status func() reprise.Status) bool
		backoff func(n int, status func() reprise.Status) time.Duration
		want    time.Duration
	}{
		{name: "Match panics", match: func(func() reprise.Status) bool { panic("no match") }, want: usual},
		{name: "Match asks for Status", match: func(status func() reprise.Status) bool { return status().Health == reprise.HealthOK }, want: rule},
		{name: "Backoff panics", backoff: func(int, func() reprise.Status) time.Duration { panic("no backoff") }, want: retry.DefaultMax},
		{name: "Backoff panics beyond its table", backoff: func(n int, _ func() reprise.Status) time.Duration {
			return []time.Duration{0, 5 * time.Second, 10 * time.Second}[n]
		}, want: 5 * time.Second},
		{name: "Backoff asks for Status", backoff: func(_ int, status func() reprise.Status) time.Duration {
			return time.Duration(status().Counts.Attempts) * rule
		}, want: rule},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var mu sync.Mutex
				var c *reprisetest.Consumer
				status := func() reprise.Status {
					mu.Lock()
					defer mu.Unlock()
					if c == nil {
						return reprise.Status{} // the plan is being checked
					}
					return c.Status()
				}
				policy := retry.Policy{Backoff: retry.Constant(usual), Jitter: retry.None}
				if tt.match != nil {
					policy.Rules = []retry.Rule{{Match: func(error) bool { return tt.match(status) }, Backoff: retry.Constant(rule), Jitter: retry.None}}
				}
				if tt.backoff != nil {
					policy.Backoff = retry.Func(func(n int) time.Duration { return tt.backoff(n, status) })
				}
				var due time.Duration
				mu.Lock()
				c = q.Consume(kit.FailsFirst(kit.ErrUnavailable), reprise.Config{Retry: policy, Observer: reprise.Observer{Attempt: func(_ context.Context, e reprise.Attempt) {
					if e.Err != nil {
						due = e.Due.Sub(e.Started)
					}
				}}})
				mu.Unlock()
				q.Send("order")
				q.WaitEmpty(13 * time.Hour)
				synctest.Wait()
				if due != tt.want {
					t.Errorf("the retry was due after %v, want %v", due, tt.want)
				}
				goesOn(t, q, c)
			})
		})
	}
}

// TestLoggerThatPanics: the logger panics when it gets a panic of the handler in the worker, a
// failing receive in the poller, and failing settlements.
func TestLoggerThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "ReceiveMessage", Limit: 3},
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch", Limit: 3},
		)
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Body != "one more" && m.Attempt == 1 {
				panic("handler")
			}
			return nil
		}), reprise.Config{Logger: slog.New(burstingLog{})})
		q.Send(kit.Numbered(5)...)
		q.WaitEmpty(time.Minute)
		synctest.Wait()
		if n := c.Status().Counts; n.Panics != 5 || n.Deleted != 5 {
			t.Errorf("counts %+v, want 5 panics and 5 deleted", n)
		}
		goesOn(t, q, c)
	})
}

// burstingLog panics at every error.
type burstingLog struct{}

func (burstingLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (burstingLog) Handle(context.Context, slog.Record) error { panic("the log is full") }

func (b burstingLog) WithAttrs([]slog.Attr) slog.Handler { return b }

func (b burstingLog) WithGroup(string) slog.Handler { return b }

// observing is an Observer that calls f at each event of a message or a request.
func observing(f func()) reprise.Observer {
	return reprise.Observer{
		Received: func(context.Context, reprise.Received) { f() },
		Starting: func(ctx context.Context, _ *reprise.Message) (context.Context, string) { f(); return ctx, "left" },
		Attempt:  func(context.Context, reprise.Attempt) { f() },
		Settled:  func(context.Context, reprise.Settled) { f() },
		Call:     func(context.Context, reprise.Call) { f() },
	}
}

// TestObserverThatPanics: the observer panics at every event.
func TestObserverThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		observer := observing(func() { panic("observer") })
		observer.Finding = func(context.Context, plan.Finding) { panic("finding") }
		observer.Stopped = func(reprise.Report) { panic("stopped") }
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{Observer: observer})
		q.Send(kit.Numbered(50)...)
		q.WaitEmpty(time.Minute)
		goesOn(t, q, c)
	})
}

// TestObserverThatAsksForStatus: the observer calls Status at every event.
func TestObserverThatAsksForStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		var c *reprisetest.Consumer
		mu.Lock()
		c = q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{Observer: observing(func() {
			mu.Lock()
			defer mu.Unlock()
			if c != nil {
				c.Status()
			}
		})})
		mu.Unlock()
		q.Send(kit.Numbered(50)...)
		q.WaitEmpty(time.Minute)
		goesOn(t, q, c)
	})
}

// TestProbeErrorThatPanics: Error of a probe's error is called once, in a place where a panic does
// no harm, and not by Status.
func TestProbeErrorThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var back atomic.Bool
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			if back.Load() {
				return nil
			}
			return reprise.Unavailable(kit.ErrUnavailable)
		}), reprise.Config{Outage: reprise.Outage{Probe: func(context.Context, string) error {
			if back.Load() {
				return nil
			}
			return (*trap)(nil) // the oldest of broken errors
		}}})
		q.Send(kit.Numbered(40)...)
		time.Sleep(5 * time.Minute)
		if s := c.Status(); kit.StateOf(c, "") != reprise.BreakerOpen || !strings.Contains(s.Problem, "panicked") {
			t.Errorf("status %+v, want the breaker open, and to say that the error panicked", s)
		}
		back.Store(true)
		goesOn(t, q, c)
	})
}

// TestHandlerThatChangesItsMessage: a handler may change its message, for example to reuse it. The
// consumer settles and orders by the values that it received.
func TestHandlerThatChangesItsMessage(t *testing.T) {
	for name, attributes := range map[string]map[string]string{"standard": nil, "FIFO": kit.FIFOQueue} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, attributes)
				var told []string
				c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					*m = reprise.Message{}
					return nil
				}), reprise.Config{Concurrency: 1, Observer: reprise.Observer{Settled: func(_ context.Context, e reprise.Settled) {
					told = append(told, e.Message.ID)
				}}})
				ids := q.Send("one", "two")
				q.WaitEmpty(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(ids, told, cmpopts.SortSlices(strings.Compare)); diff != "" {
					t.Errorf("settled messages told (-want +got):\n%s", diff)
				}
				time.Sleep(time.Minute)
				if n := c.Status().Calls.Heartbeats; n != 0 {
					t.Errorf("%d heartbeats for messages that are deleted", n)
				}
				goesOn(t, q, c)
			})
		})
	}
}
