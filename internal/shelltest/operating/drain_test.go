package operating

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestStopInMidPollStrandsNothing: a message arrives in the long poll that was under way when the
// stop began. It is released, not left hidden for the length of a lease.
func TestStopInMidPollStrandsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{})
		time.Sleep(5 * time.Second)
		time.AfterFunc(4*time.Second, func() { q.Send("late") })
		report := c.Stop()
		if c.Err() != nil || !report.Drained() || report.Stranded {
			t.Fatalf("stop: %v, %v", c.Err(), report)
		}
		if report.Counts.Received != 1 || report.Counts.Released != 1 {
			t.Errorf("report %v, want the late message released", report)
		}
		if m := q.Messages(); len(m) != 1 || m[0].State == sqsserver.InFlight {
			t.Errorf("messages %+v, want one, visible at once", m)
		}
		if report.Took > 20*time.Second {
			t.Errorf("the stop took %v", report.Took)
		}
	})
}

// TestReceiveThatHangsIsReported: a receive that is not answered is cancelled when only
// the grace is left of the budget, and the report says that SQS may have sent it messages.
func TestReceiveThatHangsIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		hangs := &kit.Spy{Client: q.Direct()}
		hangs.Receive = func(ctx context.Context, _ *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		c := q.ConsumeWith(hangs, reprise.HandlerFunc(kit.Succeed), reprise.Config{StopBudget: 10 * time.Second})
		time.Sleep(5 * time.Second)
		if report := c.Stop(); !report.Stranded || report.Took > 10*time.Second {
			t.Errorf("report %+v, want a stranded receive within ten seconds", report)
		}
	})
}

// TestLateArrivalsRunIfTimeAllows: if handlers are known to be quick, messages that arrive during
// the stop are run rather than released, because a release uses up a receive.
func TestLateArrivalsRunIfTimeAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			time.Sleep(50 * time.Millisecond)
			return nil
		}), reprise.Config{})
		q.Send("first")
		q.WaitEmpty(time.Minute)
		time.AfterFunc(time.Second, func() { q.Send("second") })
		if report := c.Stop(); report.Counts.Deleted != 2 || report.Counts.Released != 0 {
			t.Errorf("report %v, want both handled", report)
		}
	})
}

// TestStopReleasesWhatHasNotStarted: a stop releases messages that have not started, while running
// handlers end.
func TestStopReleasesWhatHasNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send(kit.Numbered(10)...)
		var j kit.Journal
		c := q.Consume(j.Handler(func(context.Context, *reprise.Message) error {
			time.Sleep(15 * time.Second)
			return nil
		}), reprise.Config{Concurrency: 2})
		time.Sleep(time.Second)
		report := c.Stop()
		if c.Err() != nil || report.Counts.Deleted != 2 || report.Counts.Released != 8 {
			t.Errorf("%v, %v: want 2 handled and 8 released", c.Err(), report)
		}
		for _, m := range q.Messages() {
			if m.State == sqsserver.InFlight {
				t.Errorf("message %s is still in flight after the drain", m.ID)
			}
		}
	})
}

// TestStoppingHandlerIsReleased: a handler that returns because of the stop uses up no attempt, and
// its message is visible at once.
func TestStoppingHandlerIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var cause error
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}), reprise.Config{})
		q.Send("order")
		time.Sleep(time.Second)
		report := c.Stop()
		if !errors.Is(cause, reprise.ErrStopping) {
			t.Errorf("cause %v, want ErrStopping", cause)
		}
		if c.Err() != nil || report.Counts.Released != 1 || report.Took > 23*time.Second {
			t.Errorf("%v, %v", c.Err(), report)
		}
		if m := q.Messages(); len(m) != 1 || m[0].State == sqsserver.InFlight {
			t.Errorf("messages %+v, want one, visible", m)
		}
	})
}

// TestNoHandlerStartsWhenHandlersAreStopped: the messages that wait are given back before the contexts of handlers end,
// or they would take the places of those that return, and start with a context that has ended.
func TestNoHandlerStartsWhenHandlersAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 100
		q := reprisetest.NewQueue(t, nil)
		var blocking, late atomic.Bool
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			if ctx.Err() != nil {
				late.Store(true)
			}
			time.Sleep(10 * time.Millisecond)
			if blocking.Load() {
				for range 1000 { // so that it takes a while to end the contexts of all handlers
					_, cancel := context.WithCancel(ctx)
					defer cancel()
				}
				<-ctx.Done()
			}
			return ctx.Err()
		}), reprise.Config{Concurrency: places, Prefetch: places})
		q.Send(kit.Numbered(places)...)
		q.WaitEmpty(time.Minute) // now handlers are known to be quick
		blocking.Store(true)
		q.Send(kit.Numbered(2 * places)...)
		time.Sleep(time.Minute)
		if s := c.Status(); s.Running != places || s.Waiting < places/2 {
			t.Fatalf("%d messages run and %d wait, want %d, and about as many", s.Running, s.Waiting, places)
		}
		report := c.Stop()
		if late.Load() || report.Counts.Attempts != 2*places {
			t.Errorf("%v: a handler has started when handlers were stopped: %t; want %d attempts", report, late.Load(), 2*places)
		}
	})
}

// TestReleasedMessageComesBack: the long poll that outlasts the beginning of a stop
// brings a message that was just released, and then the reply to the release is lost.
// The message is held by its newer receipt, and is released again.
func TestReleasedMessageComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		lossy := &kit.Spy{Client: q.Direct()}
		lost := 0
		lossy.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			out, err := lossy.Client.ChangeMessageVisibilityBatch(ctx, in)
			if lost++; lost > 1 {
				return out, err
			}
			time.Sleep(50 * time.Millisecond)
			return nil, errors.New("connection reset by peer")
		}
		c := q.ConsumeWith(lossy, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			time.Sleep(10 * time.Second)
			return nil
		}), reprise.Config{Concurrency: 1})
		q.Send("running", "waiting")
		time.Sleep(time.Second)
		report := c.Stop()
		if c.Err() != nil || report.Counts.Duplicates != 1 || report.Counts.Deleted != 1 || report.Counts.Released != 1 || report.Counts.Lost != 0 {
			t.Errorf("Run returned %v, report %v: want one message deleted, and the other received twice and released", c.Err(), report)
		}
		if m := q.Messages(); len(m) != 1 || m[0].State == sqsserver.InFlight {
			t.Errorf("messages %+v, want one, visible at once", m)
		}
	})
}

// TestReleaseCutByTheBudgetIsUnsettled: a release that is under way when the budget ends was not
// acknowledged: the message counts as unsettled, not as lost, and the drain is not clean.
func TestReleaseCutByTheBudgetIsUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		hangs := &kit.Spy{Client: q.Direct()}
		hangs.Hide = func(ctx context.Context, _ *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		c := q.ConsumeWith(hangs, reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}), reprise.Config{StopBudget: 10 * time.Second})
		id := q.Send("order")[0]
		time.Sleep(time.Second)
		report := c.Stop()
		if !errors.Is(c.Err(), reprise.ErrDrainTimeout) || len(report.Unsettled) != 1 || report.Unsettled[0] != id || report.Counts.Lost != 0 {
			t.Errorf("Run returned %v, report %+v: want ErrDrainTimeout and %s unsettled", c.Err(), report, id)
		}
	})
}

// TestLastMillisecondsSettle: when the stop budget is nearly over, settlements do not wait for
// others. A copy whose original is not deleted in time would be a second message.
func TestLastMillisecondsSettle(t *testing.T) {
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		err  error
		via  reprise.Via
		left int
	}{
		"a delete":                 {nil, reprise.ViaAuto, 0},
		"a copy and then a delete": {failed, reprise.ViaRequeue, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				const budget = 10 * time.Second
				c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					time.Sleep(time.Second + budget - 2*time.Millisecond)
					return test.err
				}), reprise.Config{StopBudget: budget, Via: test.via})
				q.Send("order")
				time.Sleep(time.Second)
				report := c.Stop()
				if c.Err() != nil || !report.Drained() || len(q.Messages()) != test.left {
					t.Errorf("Run returned %v, report %+v, messages %+v: want a clean drain and %d messages", c.Err(), report, q.Messages(), test.left)
				}
			})
		})
	}
}

// TestAbandonedHandlerIsNamed: a handler that ignores its context cannot be ended. Run returns in
// time nevertheless, and reports the message.
func TestAbandonedHandlerIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			time.Sleep(3 * time.Hour)
			return nil
		}), reprise.Config{StopBudget: 10 * time.Second})
		id := q.Send("order")[0]
		time.Sleep(time.Second)
		report := c.Stop()
		if !errors.Is(c.Err(), reprise.ErrDrainTimeout) {
			t.Errorf("Run returned %v, want ErrDrainTimeout", c.Err())
		}
		if len(report.Abandoned) != 1 || report.Abandoned[0] != id || report.Took > 11*time.Second {
			t.Errorf("report %+v, want %s abandoned within the budget", report, id)
		}
		time.Sleep(4 * time.Hour) // the handler ends; nothing may come of it
		if len(q.Messages()) != 1 {
			t.Error("a handler that ended after Run has deleted its message")
		}
	})
}

// TestDeletesSurviveTheStop: deletes are throttled when the stop begins. The stop does not cancel
// their context, and they are repeated until they succeed.
func TestDeletesSurviveTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch", Limit: 5})
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{})
		q.Send(kit.Numbered(5)...)
		time.Sleep(100 * time.Millisecond)
		if report := c.Stop(); c.Err() != nil || report.Counts.Deleted != 5 {
			t.Errorf("%v, %v: want 5 deleted", c.Err(), report)
		}
	})
}

// TestReceiveErrors: passing errors are retried with backoff; lasting ones are reported at once and
// retried rarely. Both show in the health, which recovers.
func TestReceiveErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "ReceiveMessage", Limit: 6})
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{})
		time.Sleep(time.Second)
		if s := c.Status(); s.Health != reprise.HealthFailing || s.Problem == "" {
			t.Errorf("health %v (%q) while receives fail", s.Health, s.Problem)
		}
		time.Sleep(time.Minute)
		if s := c.Status(); s.Health != reprise.HealthOK || s.Problem != "" {
			t.Errorf("health %v (%q) after receives succeed again", s.Health, s.Problem)
		}
		if calls := c.Status().Calls.Receives; calls > 14 {
			t.Errorf("%d receives in a minute: no backoff", calls)
		}
	})
}

// TestAttemptsAreNotReceives: twelve consumers start and stop, and each stop uses up a receive of a
// message in backoff. Only its runs count as attempts, although no copy carries their number: the
// time that has passed limits it.
func TestAttemptsAreNotReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		cfg := reprise.Config{Concurrency: 1, Via: reprise.ViaVisibility, Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: 3}}
		block := j.Handler(func(ctx context.Context, m *reprise.Message) error {
			<-ctx.Done()
			return ctx.Err()
		})
		q.Send("order")
		for range 12 {
			c := q.Consume(block, cfg)
			time.Sleep(time.Second)
			c.Stop()
		}
		q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 3 {
				return kit.ErrUnavailable
			}
			return nil
		}), cfg)
		q.WaitEmpty(4 * time.Hour)
		runs := j.All()
		if len(runs) != 15 {
			t.Fatalf("%d runs, want 12 that were stopped and 3 attempts", len(runs))
		}
		last := runs[len(runs)-1]
		if last.Attempt != 3 || last.Receives != 15 {
			t.Errorf("last run %+v, want attempt 3 at the 15th receive", last)
		}
	})
}

// TestStopNoticesALoss: the last message that a stop waits for is lost by the end of its lease.
// That ends the stop, since no message is held any more.
func TestStopNoticesALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch"},
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch"},
			sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ReceiveMessage", Skip: 1},
		)
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{Lease: 8 * time.Second, StopBudget: 10 * time.Minute})
		q.Send("order")
		time.Sleep(6 * time.Second)
		if report := c.Stop(); c.Err() != nil || report.Counts.Lost != 1 || report.Took > 20*time.Second {
			t.Errorf("%v, %v: want a message lost, and a stop that ends with its lease", c.Err(), report)
		}
	})
}

// TestStopUsesUpNoAttempt: a stop gives a message back that has not started, and its own last poll may bring it
// again. Neither is an attempt, so that a later process runs the message even if its policy allows one.
func TestStopUsesUpNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		ran, attempt := make(map[string]int), 0
		cfg := reprise.Config{Concurrency: 1, Retry: retry.Policy{MaxAttempts: 1}}
		slow := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			ran[m.Body]++
			mu.Unlock()
			time.Sleep(5 * time.Second)
			return nil
		})
		first := q.Consume(slow, cfg)
		q.Send("runs")
		time.Sleep(10 * time.Millisecond)
		q.Send("waits")
		time.Sleep(10 * time.Millisecond)
		first.Stop()
		q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			defer mu.Unlock()
			ran[m.Body]++
			attempt = m.Attempt
			return nil
		}), cfg)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if ran["waits"] != 1 || attempt != 1 {
			t.Errorf("the message that the stop gave back ran %d times, as attempt %d; want one run, attempt 1; left in the queue: %+v", ran["waits"], attempt, q.Messages())
		}
	})
}
