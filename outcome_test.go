package reprise_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// storyOf reads the story that a dead letter carries.
func storyOf(t *testing.T, m sqsserver.MessageInfo) reprise.Story {
	t.Helper()
	for _, a := range m.Attributes {
		if a.Name != reprise.StoryAttribute {
			continue
		}
		var s reprise.Story
		if err := json.Unmarshal([]byte(a.StringValue), &s); err != nil {
			t.Fatalf("the story %q is not JSON: %v", a.StringValue, err)
		}
		return s
	}
	t.Fatalf("dead letter %s has no story", m.ID)
	return reprise.Story{}
}

// TestPermanentIsDeadLetteredAtOnce, with everything the sender sent and the
// story of what happened.
func TestPermanentIsDeadLetteredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		var j journal
		q.ConsumeWith(q.Client(), j.handler(func(context.Context, *reprise.Message) error {
			return reprise.Permanent(errors.New("no such customer \uFFFF 💥"))
		}), reprise.Config{Name: "worker-1"})
		id := q.SendMessage(sqsserver.SendMessageEntry{
			MessageBody: "Zażółć gęślą jaźń",
			MessageAttributes: []sqsserver.MessageAttribute{
				{Name: "digest", DataType: "Binary", BinaryValue: []byte{0, 255, 7}},
				{Name: "tenant", DataType: "String.name", StringValue: "acme"},
			},
		})
		q.WaitEmpty(time.Minute)

		if n := len(j.all()); n != 1 {
			t.Errorf("%d runs of a permanent failure, want 1", n)
		}
		letters := dead.Messages()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		if letters[0].Body != "Zażółć gęślą jaźń" || len(letters[0].Attributes) != 3 {
			t.Errorf("dead letter %+v: the sender's body and attributes are not all there", letters[0])
		}
		s := storyOf(t, letters[0])
		if s.Reason != "permanent" || s.Attempts != 1 || s.Receives != 1 || s.Error != "permanent: no such customer  💥" ||
			s.Message != id || s.Source != q.ARN() || s.Consumer != "worker-1" || s.Last.IsZero() || s.First.IsZero() {
			t.Errorf("story %+v", s)
		}
	})
}

// TestExhaustedIsDeadLettered by attempts and by age, with the reason, and never
// by a hot loop.
func TestExhaustedIsDeadLettered(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policy   retry.Policy
		receives int // the queue's maxReceiveCount
		attempts int
		reason   string
	}{
		{"attempts", retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: 4, Jitter: retry.None}, 100, 4, "attempts"},
		{"the queue's maxReceiveCount, where the policy says nothing", retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None}, 3, 3, "attempts"},
		{"the queue's maxReceiveCount, below the policy's", retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: 9, Jitter: retry.None}, 3, 3, "attempts"},
		{"age", retry.Policy{Backoff: retry.Constant(time.Hour), MaxAge: 150 * time.Minute, Jitter: retry.None}, 100, 4, "age"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(tt.receives)
				var j journal
				q.Consume(j.handler(func(context.Context, *reprise.Message) error { return errUnavailable }), reprise.Config{Retry: tt.policy})
				q.Send("order")
				q.WaitEmpty(24 * time.Hour)
				if n := len(j.all()); n != tt.attempts {
					t.Errorf("%d attempts, want %d", n, tt.attempts)
				}
				letters := dead.Messages()
				if len(letters) != 1 {
					t.Fatalf("%d dead letters, want 1", len(letters))
				}
				if s := storyOf(t, letters[0]); s.Reason != tt.reason || s.Attempts != tt.attempts || s.Error != errUnavailable.Error() {
					t.Errorf("story %+v, want reason %s after %d attempts", s, tt.reason, tt.attempts)
				}
			})
		})
	}
}

// TestNoDeadLetterQueue: a message that is given up and has nowhere to go stays
// hidden as long as SQS permits, is not run again, and is not silently there.
func TestNoDeadLetterQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var log strings.Builder
		var codes []string
		var j journal
		c := q.Consume(j.handler(func(context.Context, *reprise.Message) error { return reprise.Permanent(errUnavailable) }), reprise.Config{
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			Observer: reprise.Observer{Finding: func(_ context.Context, f plan.Finding) { codes = append(codes, f.Code) }},
		})
		q.Send("order")
		time.Sleep(90 * time.Hour)
		status := c.Status()
		c.Stop()
		if n := len(j.all()); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
		if len(q.Messages()) != 1 {
			t.Error("the message is gone: it must stay until the queue's retention ends")
		}
		if status.Counts.Kept < 7 || status.Counts.Kept > 9 || status.Health != reprise.HealthDegraded {
			t.Errorf("status %+v: want it hidden 12 hours at a time, and degraded health", status)
		}
		if len(codes) != 1 || codes[0] != plan.CodeNoDeadLetterQueue {
			t.Errorf("findings %v, want %s", codes, plan.CodeNoDeadLetterQueue)
		}
		if !strings.Contains(log.String(), "no dead-letter queue takes them") || !strings.Contains(log.String(), "expires=") {
			t.Errorf("the log does not say that a message is kept, and until when:\n%s", log.String())
		}
	})
}

// TestDeadLetterQueueRefuses: without the permission to send there the message is
// kept, and goes when the queue takes messages again.
func TestDeadLetterQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("order")
		var j journal
		c := q.Consume(j.handler(func(context.Context, *reprise.Message) error { return reprise.Permanent(errUnavailable) }), reprise.Config{
			DeadLetterURL: strings.Replace(q.URL(), q.Name(), "absent", 1),
		})
		time.Sleep(time.Hour)
		if len(q.Messages()) != 1 || len(j.all()) != 1 {
			t.Errorf("%d messages and %d runs, want 1 and 1", len(q.Messages()), len(j.all()))
		}
		if s := c.Status(); s.Health != reprise.HealthDegraded || s.Problem == "" {
			t.Errorf("health %v, %q", s.Health, s.Problem)
		}
	})
}

// TestDeadLetterOfTheLargestMessage: a message as large as SQS takes leaves no
// room for a story. It goes without, and the story goes to the log.
func TestDeadLetterOfTheLargestMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		var log strings.Builder
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Permanent(errUnavailable) }), reprise.Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		body := strings.Repeat("x", 1<<20)
		q.Send(body, "small", body)
		q.WaitEmpty(time.Minute)
		letters := dead.Messages()
		if len(letters) != 3 {
			t.Fatalf("%d dead letters, want 3", len(letters))
		}
		for _, m := range letters {
			if m.Body == "small" {
				storyOf(t, m)
			} else if len(m.Attributes) != 0 || len(m.Body) != 1<<20 {
				t.Errorf("a dead letter of %d bytes with %d attributes", len(m.Body), len(m.Attributes))
			}
		}
		if !strings.Contains(log.String(), "no room for its story") {
			t.Error("the log does not tell the story")
		}
	})
}

// TestTenAttributesLeaveNoRoomForAStory.
func TestTenAttributesLeaveNoRoomForAStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Permanent(errUnavailable) }), reprise.Config{})
		var attributes []sqsserver.MessageAttribute
		for i := range 10 {
			attributes = append(attributes, sqsserver.MessageAttribute{Name: fmt.Sprintf("a%d", i), DataType: "Number", StringValue: "7"})
		}
		q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "order", MessageAttributes: attributes})
		q.WaitEmpty(time.Minute)
		if letters := dead.Messages(); len(letters) != 1 || len(letters[0].Attributes) != 10 {
			t.Errorf("dead letters %+v, want the message with its ten attributes", letters)
		}
	})
}

// TestRetryAfter: the handler's wait stands instead of the policy's.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j journal
		q.Consume(j.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				return fmt.Errorf("shipping: %w", reprise.RetryAfter(90*time.Second, errUnavailable))
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Hour)}})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		runs := j.all()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2", len(runs))
		}
		if waited := runs[1].started.Sub(runs[0].started); waited < 90*time.Second || waited > 92*time.Second {
			t.Errorf("waited %v, want 90s", waited)
		}
	})
}

// TestReleaseCountsNoAttempt, and each release in a row waits longer, since SQS
// counts the receives (rule 9).
func TestReleaseCountsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j journal
		q.Consume(j.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Receives <= 12 {
				return reprise.Release(0, errUnavailable)
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{MaxAttempts: 3}})
		q.Send("order")
		q.WaitEmpty(2 * time.Hour)
		runs := j.all()
		if len(runs) != 13 {
			t.Fatalf("%d runs, want 13", len(runs))
		}
		for i, r := range runs {
			if r.attempt != 1 {
				t.Errorf("run %d was called attempt %d: a release counts none", i+1, r.attempt)
			}
			if i == 0 {
				continue
			}
			least := min(5*time.Minute, time.Second<<(i-1))
			if waited := r.started.Sub(runs[i-1].started); waited < least || waited > least+2*time.Second {
				t.Errorf("release %d waited %v, want %v", i, waited, least)
			}
		}
	})
}

// TestPanicCostsOneAttempt and nothing else: neighbours are handled, the message
// is retried by policy, and so with a handler that ends its goroutine.
func TestPanicCostsOneAttempt(t *testing.T) {
	for name, burst := range map[string]func(){
		"panic":  func() { panic("index out of range") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var j journal
				var failed []error
				var mu sync.Mutex
				c := q.Consume(j.handler(func(_ context.Context, m *reprise.Message) error {
					if m.Body == "3" && m.Attempt == 1 {
						burst()
					}
					return nil
				}), reprise.Config{
					Concurrency: 2,
					Retry:       retry.Policy{Backoff: retry.Constant(10 * time.Second), Jitter: retry.None},
					Observer: reprise.Observer{Attempt: func(_ context.Context, e reprise.Attempt) {
						mu.Lock()
						defer mu.Unlock()
						if e.Err != nil {
							failed = append(failed, e.Err)
						}
					}},
				})
				q.Send(numbered(20)...)
				q.WaitEmpty(time.Minute)
				if n := len(j.all()); n != 21 {
					t.Errorf("%d runs of 20 messages, want 21", n)
				}
				if runs := j.of("3"); len(runs) != 2 || runs[1].attempt != 2 || runs[1].started.Sub(runs[0].started) < 10*time.Second {
					t.Errorf("the message whose handler burst ran %+v", runs)
				}
				if c.Status().Running != 0 {
					t.Error("a worker is lost")
				}
				if name == "panic" {
					var panicked *reprise.PanicError
					if len(failed) != 1 || !errors.As(failed[0], &panicked) || len(panicked.Stack) == 0 {
						t.Errorf("failures %v, want one PanicError with its stack", failed)
					}
				}
			})
		})
	}
}

// TestHandlerTimeoutIsAnAttempt.
func TestHandlerTimeoutIsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j journal
		q.Consume(j.handler(func(ctx context.Context, m *reprise.Message) error {
			if m.Attempt == 3 {
				return nil
			}
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != 7*time.Second {
				t.Errorf("the context's deadline is in %v", time.Until(deadline))
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return ctx.Err()
		}), reprise.Config{HandlerTimeout: 7 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None}})
		q.Send("order")
		q.WaitEmpty(time.Minute)
		if runs := j.all(); len(runs) != 3 || runs[2].attempt != 3 {
			t.Errorf("runs %+v, want three attempts", runs)
		}
	})
}

// TestLeaseLostCancelsTheHandler: the server takes the message back; the handler
// is told why, and what it returns is not settled.
func TestLeaseLostCancelsTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultLoseLease, Action: "ChangeMessageVisibilityBatch", Limit: 1},
			// Keeps the redelivery away until the handler has returned.
			sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "ReceiveMessage", Skip: 1, Limit: 10},
		)
		var j journal
		var cause error
		c := q.Consume(j.handler(func(ctx context.Context, m *reprise.Message) error {
			if m.Receives > 1 {
				return nil
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(5 * time.Minute)
		if !errors.Is(cause, reprise.ErrLeaseLost) {
			t.Errorf("the handler's context ended by %v, want ErrLeaseLost", cause)
		}
		if n := c.Status().Counts; n.Lost != 1 || n.Retried != 0 {
			t.Errorf("counts %+v, want 1 lost and nothing settled for it", n)
		}
	})
}

// TestLeaseLostAndRegained: the message comes back to the consumer whose handler
// has just been interrupted. It is given back once more: the interrupted run was
// no attempt.
func TestLeaseLostAndRegained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultLoseLease, Action: "ChangeMessageVisibilityBatch", Limit: 1})
		var j journal
		c := q.Consume(j.handler(func(ctx context.Context, m *reprise.Message) error {
			if m.Receives > 1 {
				return nil
			}
			<-ctx.Done()
			time.Sleep(time.Second) // the redelivery arrives
			return ctx.Err()
		}), reprise.Config{})
		q.Send("order")
		q.WaitEmpty(5 * time.Minute)
		runs := j.all()
		if n := c.Status().Counts; len(runs) != 2 || runs[1].attempt != 1 || n.Released != 1 || n.Retried != 0 {
			t.Errorf("runs %+v, counts %+v: want a release and a second first attempt", runs, n)
		}
	})
}

// TestLeaseRunsOutLocally: when no heartbeat gets through, the lease ends by our
// own clock, the handler is told, and no visibility change is sent any more: on a
// standard queue SQS would obey it against whoever holds the message (rule 2).
func TestLeaseRunsOutLocally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch"})
		watch := &spy{Client: q.Direct()}
		began := time.Now()
		var told time.Duration
		var requests int
		q.ConsumeWith(watch, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if m.Receives > 1 {
				return nil
			}
			<-ctx.Done()
			told = time.Since(began)
			watch.mu.Lock()
			requests = len(watch.hides)
			watch.mu.Unlock()
			return errUnavailable
		}), reprise.Config{Lease: time.Minute})
		q.Send("order")
		q.WaitEmpty(5 * time.Minute)
		if told < 50*time.Second || told > time.Minute {
			t.Errorf("the handler was told after %v, want just before the minute is over", told)
		}
		if n := len(watch.hides); n != requests {
			t.Errorf("%d visibility requests after the lease had ended", n-requests)
		}
	})
}

// TestThousandMessagesThroughEightConsumers: 30 % of attempts fail; every message
// ends handled or in the dead-letter queue with its story.
func TestThousandMessagesThroughEightConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(1000)
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(1, 2))
		done := make(map[string]int)
		h := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			fails := rng.Float64() < 0.3
			mu.Unlock()
			time.Sleep(time.Duration(len(m.Body)) * 10 * time.Millisecond)
			if fails {
				return errUnavailable
			}
			mu.Lock()
			defer mu.Unlock()
			done[m.ID]++
			return nil
		})
		policy := retry.Policy{Backoff: retry.Exponential{Base: time.Second}, MaxAttempts: 3}
		var consumers []*reprisetest.Consumer
		for range 8 {
			consumers = append(consumers, q.Consume(h, reprise.Config{Retry: policy}))
		}
		ids := q.Send(numbered(1000)...)
		q.WaitEmpty(time.Hour)
		for _, c := range consumers {
			if r := c.Stop(); !r.Drained() || c.Err() != nil {
				t.Errorf("a consumer did not drain: %v, %v", r, c.Err())
			}
		}

		letters := make(map[string]bool)
		for _, m := range dead.Messages() {
			s := storyOf(t, m)
			letters[s.Message] = true
			if s.Reason != "attempts" || s.Attempts != 3 {
				t.Errorf("story %+v, want 3 attempts", s)
			}
		}
		for _, id := range ids {
			if handled := done[id] > 0; handled == letters[id] {
				t.Errorf("message %s: handled %v, dead-lettered %v; want exactly one", id, handled, letters[id])
			}
		}
		if len(letters) == 0 || len(done) < 900 {
			t.Errorf("%d handled, %d dead-lettered: the failures did not happen", len(done), len(letters))
		}
	})
}
