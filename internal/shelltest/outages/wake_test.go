package outages

import (
	"context"
	"net/http"
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

// TestRecoveryWakesParkedMessages: messages that failed before the breaker opened
// wait for six hours by policy. When the dependency is back they are made visible,
// at a rate, and their next attempts are numbered as if they had waited.
func TestRecoveryWakesParkedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := newOutage(t, time.Second, 50)
		c := q.Consume(p, reprise.Config{
			Outage: reprise.Outage{Threshold: 45},
			Retry:  retry.Policy{Backoff: retry.Constant(6 * time.Hour), Jitter: retry.None},
		})
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(time.Hour)
		parked := c.Status().InBackoff
		if parked < 40 {
			t.Fatalf("%d messages are parked, want at least 40", parked)
		}
		p.Set("", false)
		began := time.Now()
		q.WaitEmpty(5 * time.Minute)
		if s := c.Status(); s.Counts.Woken != int64(parked) {
			t.Errorf("%d messages woken, want %d", s.Counts.Woken, parked)
		}
		second := make(map[time.Time]int)
		for _, r := range p.All() {
			if r.Started.After(began) {
				second[r.Started.Truncate(time.Second)]++
			}
			if r.Attempt > 2 {
				t.Errorf("run %+v, want no third attempt", r)
			}
		}
		for at, n := range second {
			if n > 20 {
				t.Errorf("%d handlers started within a second, %v after recovery", n, at.Sub(began))
			}
		}
	})
}

// TestWakeByHand: an operator's Wake wakes all messages in backoff, whatever the cause of their
// failure.
func TestWakeByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		var mu sync.Mutex
		mended := false
		c := q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			defer mu.Unlock()
			return kit.FailBut(mended, kit.ErrUnavailable)
		}), reprise.Config{
			Outage: reprise.Outage{Key: kit.Tenant},
			Retry:  retry.Policy{Backoff: retry.Constant(20 * time.Hour), Jitter: retry.None},
		})
		for i := range 30 {
			q.Send("acme:"+kit.Numbered(30)[i], "bolt:"+kit.Numbered(30)[i])
		}
		time.Sleep(time.Minute)
		mu.Lock()
		mended = true
		mu.Unlock()
		if n := c.Wake("acme"); n != 30 {
			t.Errorf("Wake(acme) = %d, want 30", n)
		}
		if n := c.Wake("acme"); n != 0 {
			t.Errorf("Wake(acme) again = %d, want 0", n)
		}
		time.Sleep(2 * time.Minute)
		if n := len(q.Messages()); n != 30 {
			t.Errorf("%d messages left, want bolt's 30", n)
		}
		if n := c.Wake(); n != 30 {
			t.Errorf("Wake() = %d, want 30", n)
		}
		q.WaitEmpty(2 * time.Minute)
		for _, r := range j.All() {
			if r.Attempt > 2 {
				t.Errorf("run %+v, want no third attempt", r)
			}
		}
	})
}

// TestWakeMessage: one message in backoff runs now, with the number that its attempt would have had;
// the others stay hidden until they are due.
func TestWakeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), reprise.Config{
			Outage: reprise.Outage{Off: true},
			Retry:  retry.Policy{Backoff: retry.Constant(2 * time.Hour), Jitter: retry.None},
		})
		q.Send("a", "b", "c")
		time.Sleep(time.Minute)
		messages := q.Messages()
		if len(messages) != 3 {
			t.Fatalf("the queue has %d messages, want 3", len(messages))
		}
		if c.WakeMessage("00000000-0000-4000-8000-000000000000") {
			t.Error("a message that nobody knows is said to be woken")
		}
		if !c.WakeMessage(messages[1].ID) {
			t.Fatal("the message is not woken")
		}
		time.Sleep(time.Minute)
		again := 0
		for _, r := range j.All() {
			if r.Attempt == 2 {
				again++
				if r.Body != messages[1].Body {
					t.Errorf("attempt 2 is of %q, want %q", r.Body, messages[1].Body)
				}
			}
		}
		if s := c.Status(); again != 1 || s.Counts.Woken != 1 || s.InBackoff != 3 || s.BackoffProblem != kit.ErrUnavailable.Error() {
			t.Errorf("%d second attempts, %d woken, %d in backoff (%s); want 1, 1 and 3 (%v)", again, s.Counts.Woken, s.InBackoff, s.BackoffProblem, kit.ErrUnavailable)
		}
	})
}

// TestWakeLetsBeWhatIsDueSoon: a wake leaves out messages that are due soon, that were received
// again, or that wait on a FIFO queue: an old handle could take a message from another consumer.
func TestWakeLetsBeWhatIsDueSoon(t *testing.T) {
	for name, test := range map[string]struct {
		attributes map[string]string
		backoff    time.Duration
		wait       time.Duration
	}{
		"due soon":           {nil, time.Minute, 50 * time.Second},
		"a FIFO queue":       {kit.FIFOQueue, time.Hour, time.Minute},
		"with somebody else": {nil, time.Minute, 70 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, test.attributes)
				c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
					if m.Receives > 1 {
						<-ctx.Done()
					}
					return kit.ErrUnavailable
				}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(test.backoff), Jitter: retry.None}})
				q.Send("order")
				time.Sleep(test.wait)
				if n := c.Wake(); n != 0 {
					t.Errorf("%d messages to be woken, want none", n)
				}
				time.Sleep(time.Minute)
				if n := c.Status().Counts.Woken; n != 0 {
					t.Errorf("%d messages woken, want none", n)
				}
			})
		})
	}
}

// TestWakeLetsBeWhatHasComeByItself: a message is received by itself and runs before its turn to be
// woken. It does not become visible to other consumers.
func TestWakeLetsBeWhatHasComeByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Receives == 1 {
				return kit.ErrUnavailable
			}
			time.Sleep(10 * time.Minute)
			return nil
		}), reprise.Config{Concurrency: 100, Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None}})
		q.Send(kit.Numbered(100)...)
		time.Sleep(time.Minute)
		if n := c.Wake(); n != 100 {
			t.Errorf("Wake() = %d, want 100", n)
		}
		time.Sleep(time.Millisecond) // the first ten are on their way
		for _, m := range q.Messages() {
			if m.Receives == 1 {
				q.Release(m.ID)
			}
		}
		q.WaitEmpty(20 * time.Minute)
		if s := c.Status(); s.Counts.Duplicates != 0 || s.Counts.Woken > 20 || s.Counts.Received != 200 {
			t.Errorf("status %+v, want each message delivered twice, and few woken", s)
		}
	})
}

// TestWakeStopsWhenTheOutageIsNotOver: the dependency answers once and is unavailable again, and no
// message is woken, since that uses up receives. Later it answers eight times, and few are woken.
// The others stay hidden.
func TestWakeStopsWhenTheOutageIsNotOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		answers := 200
		q.Send(kit.Numbered(500)...)
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			answers--
			return kit.FailBut(answers >= 0, reprise.Unavailable(kit.ErrUnavailable))
		}), reprise.Config{
			Outage: reprise.Outage{Threshold: 280},
			Retry:  retry.Policy{Backoff: retry.Constant(10 * time.Hour), Jitter: retry.None},
		})
		kit.WaitFor(t, "the breaker opens", 5*time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		time.Sleep(1100 * time.Millisecond) // until what was running has ended
		for _, test := range []struct{ answers, least, most int }{{1, 0, 0}, {8, 1, 40}} {
			mu.Lock()
			answers = test.answers
			mu.Unlock()
			before := c.Status().Counts
			time.Sleep(time.Hour)
			now := c.Status().Counts
			if n := int(now.Deleted - before.Deleted); n != test.answers {
				t.Errorf("%d deleted, want %d", n, test.answers)
			}
			if n := int(now.Woken - before.Woken); n < test.least || n > test.most {
				t.Errorf("%d of 280 woken by %d answers, want %d to %d", n, test.answers, test.least, test.most)
			}
		}
		mu.Lock()
		answers = 1000
		mu.Unlock()
		q.WaitEmpty(10 * time.Minute)
	})
}

// TestWakeKeepsToTheRate: woken messages are not received sooner than Config.Rate permits them to
// run.
func TestWakeKeepsToTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(kit.FailsFirst(kit.ErrUnavailable), reprise.Config{
			Rate:  0.5,
			Retry: retry.Policy{Backoff: retry.Constant(6 * time.Hour), Jitter: retry.None},
		})
		q.Send(kit.Numbered(40)...)
		kit.WaitFor(t, "all wait", 10*time.Minute, func() bool { return c.Status().InBackoff == 40 })
		time.Sleep(time.Minute)
		c.Wake()
		began := time.Now()
		kit.WaitFor(t, "all are woken", 10*time.Minute, func() bool { return c.Status().Counts.Woken == 40 })
		if took := time.Since(began); took < 30*time.Second { // a minute for the first thirty, or half of that by chance
			t.Errorf("40 messages were woken within %v, want 30 s at least", took)
		}
		q.WaitEmpty(10 * time.Minute)
	})
}

// TestWakeThroughThrottles: a wake request that SQS throttles is repeated; one whose reply is lost
// is not, since it may have been carried out.
func TestWakeThroughThrottles(t *testing.T) {
	for kind, want := range map[sqsserver.FaultKind]int{sqsserver.FaultThrottle: 3, sqsserver.FaultLoseReply: 1} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			watch := &kit.Spy{Client: q.Direct()}
			c := q.ConsumeWith(watch, kit.FailsFirst(kit.ErrUnavailable), reprise.Config{
				Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None},
			})
			q.Send(kit.Numbered(10)...)
			time.Sleep(time.Minute)
			c.Pause() // or they would come here as soon as they are visible
			time.Sleep(time.Minute)
			before := watch.HideCount()
			q.Fault(sqsserver.Fault{Kind: kind, Action: "ChangeMessageVisibilityBatch", Limit: 2})
			c.Wake()
			time.Sleep(time.Minute)
			c.Resume()
			q.WaitEmpty(5 * time.Minute)
			if n := watch.HideCount() - before; n != want {
				t.Errorf("%s: %d requests to wake ten messages, want %d", kind, n, want)
			}
		})
	}
}

// TestWakeIsNotRepeatedByTheSDK: nor does the SDK repeat it, which knows nothing of what it does: by then another
// process may run the message.
func TestWakeIsNotRepeatedByTheSDK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var sent hideRequests
		client := sqs.New(q.Client().Options(), func(o *sqs.Options) { sent.HTTPClient, o.HTTPClient = o.HTTPClient, &sent })
		c := q.ConsumeWith(client, kit.FailsFirst(kit.ErrUnavailable), reprise.Config{
			Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None},
		})
		q.Send(kit.Numbered(10)...)
		time.Sleep(time.Minute)
		c.Pause()
		time.Sleep(time.Minute)
		before := sent.n.Load()
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "ChangeMessageVisibilityBatch", Limit: 2})
		c.Wake()
		time.Sleep(time.Minute)
		c.Resume()
		q.WaitEmpty(5 * time.Minute)
		if n := sent.n.Load() - before; n != 1 {
			t.Errorf("%d requests to wake ten messages were sent, want 1", n)
		}
	})
}

// hideRequests counts the requests to hide messages that its HTTPClient sends.
type hideRequests struct {
	sqs.HTTPClient
	n atomic.Int64
}

func (h *hideRequests) Do(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Amz-Target") == "AmazonSQS.ChangeMessageVisibilityBatch" {
		h.n.Add(1)
	}
	return h.HTTPClient.Do(r)
}

// TestVisibilityIsZeroedOnlyToDrainOrToWake: during an outage and its recovery no message is made
// visible at once, which would use up its receives one after the other.
func TestVisibilityIsZeroedOnlyToDrainOrToWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		p := &kit.Dependency{Takes: 100 * time.Millisecond}
		p.Set("", true)
		watch := &kit.Spy{Client: q.Direct()}
		c := q.ConsumeWith(watch, p, reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None}})
		q.Send(kit.Numbered(100)...)
		time.Sleep(30 * time.Minute)
		p.Set("", false)
		q.WaitEmpty(30 * time.Minute)
		watch.Mu.Lock()
		defer watch.Mu.Unlock()
		zeroed := 0
		for _, in := range watch.Hides {
			for _, e := range in.Entries {
				if e.VisibilityTimeout == 0 {
					zeroed++
				}
			}
		}
		if woken := c.Status().Counts.Woken; int64(zeroed) != woken {
			t.Errorf("%d messages exposed at once, %d of them woken", zeroed, woken)
		}
	})
}

// TestRecoveryLetsBeWhatWasAskedToWait: a message whose handler asked for a wait of twenty hours is
// received after twelve, SQS's limit, and is hidden again. The end of an outage an hour later does
// not wake it.
func TestRecoveryLetsBeWhatWasAskedToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 20 * time.Hour
		q := reprisetest.NewQueue(t, nil)
		p := &kit.Dependency{Takes: 10 * time.Millisecond}
		p.Set("", true)
		var asked kit.Journal
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if m.Body != "asked" {
				return p.Handle(ctx, m)
			}
			asked.Add(m)
			if m.Attempt == 1 {
				return reprise.RetryAfter(wait, reprise.Unavailable(kit.ErrUnavailable))
			}
			return nil
		}), reprise.Config{Via: reprise.ViaVisibility, Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: -1}})
		q.Send("asked")
		time.Sleep(13 * time.Hour)
		if n := c.Status().Counts.Parked; n != 1 {
			t.Errorf("the message was parked %d times, want once", n)
		}
		q.Send(kit.Numbered(60)...)
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
		p.Set("", false)
		q.WaitEmpty(10 * time.Hour)
		runs := asked.All()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2", len(runs))
		}
		if waited := runs[1].Started.Sub(runs[0].Started); waited < wait {
			t.Errorf("it ran again after %v, want %v", waited, wait)
		}
		if n := c.Status().Counts.Woken; n == 0 {
			t.Error("nothing was woken: the outage has no such end")
		}
	})
}
