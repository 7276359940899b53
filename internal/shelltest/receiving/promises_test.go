package receiving

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// These tests hold the promises of docs/promises.md that no test of one mechanism shows.

// TestOneSlowMessageHoldsUpNoOther: one message takes three hours; five hundred others, of which
// many more than ten run at once, take a second each.
func TestOneSlowMessageHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const concurrency, others = 50, 500
		q := reprisetest.NewQueue(t, nil)
		q.Send(append([]string{"slow"}, kit.Numbered(others)...)...)
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "slow" {
				time.Sleep(3 * time.Hour)
			} else {
				time.Sleep(time.Second)
			}
			return nil
		}), reprise.Config{Concurrency: concurrency})
		time.Sleep(time.Second / 2)
		if s := c.Status(); s.Running != concurrency {
			t.Errorf("%d handlers run at once, want %d", s.Running, concurrency)
		}
		// Forty-nine at once process the others in eleven rounds.
		time.Sleep(12 * time.Second)
		if s := c.Status(); s.Counts.Deleted != others || s.Running != 1 {
			t.Errorf("%d are deleted and %d run beside the slow one, want all %d done", s.Counts.Deleted, s.Running-1, others)
		}
		q.WaitEmpty(3 * time.Hour)
	})
}

// TestWaitingMessagesKeepTheirLeases: nine messages wait for the only worker, for up to nine hours.
// Another consumer receives none of them.
func TestWaitingMessagesKeepTheirLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		q.Send(kit.Numbered(10)...)
		q.Consume(j.Handler(func(context.Context, *reprise.Message) error {
			time.Sleep(time.Hour)
			return nil
		}), reprise.Config{Concurrency: 1, Prefetch: 10})
		time.Sleep(time.Second)
		idle := q.Consume(j.Handler(kit.Succeed), reprise.Config{})
		q.WaitEmpty(12 * time.Hour)
		if n := idle.Status().Counts.Received; n != 0 || len(j.All()) != 10 {
			t.Errorf("%d runs, %d messages received beside: want 10 runs by the consumer that held them all", len(j.All()), n)
		}
	})
}

// TestBacklogIsNotBuffered: thousands of messages wait in the queue, not in this process: it
// receives as many as can run, and one batch.
func TestBacklogIsNotBuffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const concurrency, prefetch = 20, 10
		q := reprisetest.NewQueue(t, nil)
		q.Send(kit.Numbered(3000)...)
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}), reprise.Config{Concurrency: concurrency})
		time.Sleep(3 * time.Hour)
		s := c.Status()
		if s.Running != concurrency || s.Waiting > prefetch || s.Counts.Received > concurrency+prefetch {
			t.Errorf("status %+v, want %d running, at most %d waiting, and no more received", s, concurrency, prefetch)
		}
	})
}

// TestLoneMessageIsHandledAtOnce: a single message is handled at once in an idle queue, and where
// all workers but one are busy for hours.
func TestLoneMessageIsHandledAtOnce(t *testing.T) {
	for _, busy := range []int{0, 9} {
		t.Run(fmt.Sprintf("%d of 10 busy", busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var waited []time.Duration
				var sent time.Time
				q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
					if m.Body != "lone" {
						<-ctx.Done()
						return ctx.Err()
					}
					waited = append(waited, time.Since(sent))
					return nil
				}), reprise.Config{})
				q.Send(kit.Numbered(busy)...)
				for range 100 {
					time.Sleep(37 * time.Second)
					sent = time.Now()
					q.Send("lone")
					synctest.Wait()
				}
				if len(waited) != 100 {
					t.Fatalf("%d of 100 lone messages were handled at once", len(waited))
				}
				for i, w := range waited {
					if w > 100*time.Millisecond {
						t.Errorf("message %d waited %v", i+1, w)
					}
				}
			})
		})
	}
}

// TestConsumerNeverStopsSilently: for six hours no receive succeeds, for any reason. The consumer
// reports it all the time, limits its calls, and resumes its work when receives succeed again.
// Problems that somebody has to fix, such as expired credentials, are retried like all others.
func TestConsumerNeverStopsSilently(t *testing.T) {
	refused := func(code string) func(context.Context) error {
		return func(context.Context) error { return &smithy.GenericAPIError{Code: code, Message: "not now"} }
	}
	for _, tt := range []struct {
		name string
		fail func(context.Context) error
		says string
	}{
		{"throttled", refused("RequestThrottled"), "RequestThrottled"},
		{"failure of SQS", refused("InternalFailure"), "InternalFailure"},
		{"access denied", refused("AccessDenied"), "AccessDenied"},
		{"expired credentials", refused("ExpiredToken"), "ExpiredToken"},
		{"missing queue", refused("AWS.SimpleQueueService.NonExistentQueue"), "NonExistentQueue"},
		{"no network", func(context.Context) error { return errors.New("no route to host") }, "no route"},
		{"no answer", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "deadline"},
		{"a panic of the client", func(context.Context) error { panic("nil map") }, "nil map"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				mended := time.Now().Add(6 * time.Hour)
				watch := &kit.Spy{Client: q.Direct()}
				watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
					if time.Now().Before(mended) {
						return nil, tt.fail(ctx)
					}
					return watch.Client.ReceiveMessage(ctx, in)
				}
				c := q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{})
				q.Send("order")
				time.Sleep(time.Minute)
				for range 5 {
					time.Sleep(time.Hour)
					if s := c.Status(); s.Health != reprise.HealthFailing || !strings.Contains(s.Problem, tt.says) {
						t.Fatalf("health %v (%q), want it failing and to say %q", s.Health, s.Problem, tt.says)
					}
				}
				if n := c.Status().Calls.Receives; n > 5*3600/10 {
					t.Errorf("%d receives in five hours, want at most one in ten seconds", n)
				}
				time.Sleep(time.Until(mended))
				q.WaitEmpty(90 * time.Second)
				if s := c.Status(); s.Health != reprise.HealthOK || s.Counts.Attempts != 1 {
					t.Errorf("health %v (%q), %d attempts: want it well, and the message handled", s.Health, s.Problem, s.Counts.Attempts)
				}
			})
		})
	}
}

// TestSickDependencyIsNotHammered: with the zero Config, hundreds of messages fail for an hour with
// errors that open no breaker, or are given back by their handlers. The waits grow, and there are
// no more runs than doubling waits permit.
func TestSickDependencyIsNotHammered(t *testing.T) {
	for name, fail := range map[string]func() error{
		"failing":    func() error { return kit.ErrUnavailable },
		"given back": func() error { return reprise.Release(0, kit.ErrUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const messages = 300
				q := reprisetest.NewQueue(t, nil)
				var j kit.Journal
				q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return fail() }), reprise.Config{Concurrency: 100})
				q.Send(kit.Numbered(messages)...)
				began := time.Now()
				time.Sleep(time.Hour)
				first, last := 0, 0
				for _, r := range j.All() {
					switch at := r.Started.Sub(began); {
					case at < time.Minute:
						first++
					case at >= 50*time.Minute:
						last++
					}
				}
				// Waits that double from 1 s permit six runs in a minute. With full
				// jitter the average is a wait of half that, and one run more.
				if first > 9*messages || last > 5*messages || last == 0 {
					t.Errorf("%d runs of %d messages in the first minute, %d in the last ten", first, messages, last)
				}
			})
		})
	}
}

// TestStaleHandlesStopNothing: SQS refuses every third receipt handle as stale. All messages are
// handled and leave the queue nevertheless.
func TestStaleHandlesStopNothing(t *testing.T) {
	for name, attributes := range map[string]map[string]string{"standard": nil, "FIFO": kit.FIFOQueue} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, attributes)
				q.Fault(sqsserver.Fault{Kind: sqsserver.FaultStaleHandle, Probability: 1. / 3}) // each third would keep step with a message that comes again
				var j kit.Journal
				q.Consume(j.Handler(func(context.Context, *reprise.Message) error {
					time.Sleep(time.Minute) // there are heartbeats, too
					return nil
				}), reprise.Config{Concurrency: 50})
				if attributes == nil {
					q.Send(kit.Numbered(200)...)
				} else {
					kit.Groups(q, "abcdefghij", 20)
				}
				q.WaitEmpty(24 * time.Hour)
				succeeded := make(map[string]bool)
				for _, r := range j.All() {
					succeeded[r.Body] = true
				}
				if len(succeeded) != 200 {
					t.Errorf("%d of 200 messages were handled", len(succeeded))
				}
			})
		})
	}
}

// TestFIFOGroupHoldsUpNoOther: the first of a hundred messages of a group takes an hour. The other
// group does not wait for it.
func TestFIFOGroupHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 100)
		kit.Groups(q, "b", 20)
		var mu sync.Mutex
		handled := make(map[string]int)
		q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "a01" {
				time.Sleep(time.Hour)
			}
			mu.Lock()
			defer mu.Unlock()
			handled[m.GroupID]++
			return nil
		}), reprise.Config{})
		time.Sleep(time.Minute)
		mu.Lock()
		if handled["a"] != 0 || handled["b"] != 20 {
			t.Errorf("handled in the first minute: %v, want the 20 of b", handled)
		}
		mu.Unlock()
		q.WaitEmpty(2 * time.Hour)
	})
}

// TestDeadLetterHasItsWholeRetentionAhead: a message that is given up after most of its own
// retention is a new message in the dead-letter queue. One that SQS moves there itself keeps its
// age, and is dropped before anybody reads it.
func TestDeadLetterHasItsWholeRetentionAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), reprise.Config{
			Retry: retry.Policy{Backoff: retry.Constant(6 * time.Hour), Jitter: retry.None, MaxAge: 84 * time.Hour},
		})
		q.Send("order")
		q.WaitEmpty(90 * time.Hour)
		time.Sleep(94 * time.Hour) // of the four days that queues keep messages by default
		if letters := dead.Messages(); len(letters) != 1 {
			t.Errorf("%d dead letters, want the message there until its own four days are over", len(letters))
		}
	})
}

// TestLeaseIsOursNotTheQueues: the queue hides messages for twelve hours, but the messages of a
// killed process are received again after Config.Lease.
func TestLeaseIsOursNotTheQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"VisibilityTimeout": "43200"})
		q.Send("order")
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}), reprise.Config{Lease: 30 * time.Second})
		time.Sleep(time.Second)
		c.Crash()
		q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{})
		q.WaitEmpty(time.Minute)
	})
}

// TestAgesAreOfTheServersClock: this machine's clock is three hours behind. A
// message's age, which counts from SQS's timestamps, is correct nevertheless.
func TestAgesAreOfTheServersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		if err := q.Server().Advance(3 * time.Hour); err != nil {
			t.Fatal(err)
		}
		q.ConsumeWith(q.Client(), reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), reprise.Config{
			Retry: retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAge: time.Hour},
		})
		began := time.Now()
		q.Send("order")
		q.WaitEmpty(5 * time.Hour)
		letters := dead.Messages()
		if len(letters) != 1 || kit.StoryOf(t, letters[0]).Reason != "age" {
			t.Fatalf("dead letters %+v, want one that is too old", letters)
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("given up after %v, want an hour", took)
		}
	})
}
