package batches

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestCanaryOfABatchConsumer: a batch's dependency becomes unavailable. The breaker opens, a canary
// runs alone and at once, and batches grow again after the outage. Held messages count no attempt.
func TestCanaryOfABatchConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send(kit.Numbered(400)...)
		var p kit.Dependency
		p.Set("", true)
		var mu sync.Mutex
		down, most := true, make(map[string]int) // attempts
		var whileDown, after []int
		c := q.ConsumeBatch(reprise.BatchHandlerFunc(func(_ context.Context, ms []*reprise.Message) []error {
			time.Sleep(50 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			errs := make([]error, len(ms))
			for i, m := range ms {
				most[m.Body] = max(most[m.Body], m.Attempt)
				if down {
					errs[i] = reprise.Unavailable(kit.ErrUnavailable)
				}
			}
			if down {
				whileDown = append(whileDown, len(ms))
			} else {
				after = append(after, len(ms))
			}
			return errs
		}), reprise.BatchConfig{Size: 10, Linger: time.Hour, Config: reprise.Config{Concurrency: 2}})
		time.Sleep(10 * time.Minute)
		mu.Lock()
		if canaries := whileDown[min(4, len(whileDown)):]; len(canaries) < 5 || slices.Max(canaries) != 1 {
			t.Errorf("batches during the outage: %v, want canaries alone after a few", whileDown)
		}
		down = false
		mu.Unlock()
		kit.WaitFor(t, "what has come back is not lingered for", 10*time.Minute, func() bool { return c.Status().Counts.Deleted >= 350 })
		q.WaitEmpty(3 * time.Hour)
		n := c.Stop().Counts
		if after[0] != 1 || slices.Max(after) != 10 || len(after) > 120 {
			t.Errorf("batches after the outage: %v, want one alone, then larger ones", after)
		}
		if worst := slices.Max(slices.Collect(maps.Values(most))); worst > 2 || n.DeadLettered != 0 {
			t.Errorf("attempt %d of a message, counts %+v: an outage counts no attempts", worst, n)
		}
	})
}

// TestOperatingABatchConsumer: concurrency counts batches, the rate messages, and a
// paused key keeps its messages out of batches.
func TestOperatingABatchConsumer(t *testing.T) {
	t.Run("concurrency", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			q.Send(kit.Numbered(100)...)
			var l batchLog
			c := q.ConsumeBatch(l.handler(func(context.Context, []*reprise.Message) []error {
				time.Sleep(15 * time.Second)
				return nil
			}), reprise.BatchConfig{Config: reprise.Config{Concurrency: 2}})
			time.Sleep(time.Second)
			if s := c.Status(); s.Running != 20 || s.Waiting != 10 || s.Concurrency != 2 {
				t.Errorf("%d running, %d waiting: want two batches, and one waiting", s.Running, s.Waiting)
			}
			if err := c.SetConcurrency(4); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if s := c.Status(); s.Running != 40 || s.Waiting != 10 {
				t.Errorf("%d running, %d waiting: want four batches, and one waiting", s.Running, s.Waiting)
			}
		})
	})
	t.Run("rate", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			q.Send(kit.Numbered(120)...)
			var l batchLog
			q.ConsumeBatch(l.handler(nil), reprise.BatchConfig{Config: reprise.Config{Rate: 2}})
			time.Sleep(30500 * time.Millisecond)
			if n := len(l.all()); n != 70 { // a batch at once, and one each 5 s
				t.Errorf("%d messages in 30 s in batches of %v, want 2 a second after the first batch", n, l.sizes())
			}
		})
	})
	t.Run("paused key", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			var l batchLog
			c := q.ConsumeBatch(l.handler(nil), reprise.BatchConfig{
				Size: 5, Linger: 10 * time.Second,
				Config: reprise.Config{
					Concurrency: 4,
					Outage:      reprise.Outage{Key: kit.Tenant},
				},
			})
			if err := c.PauseKey("red"); err != nil {
				t.Fatal(err)
			}
			q.Send("red:1", "blue:1", "red:2", "blue:2", "blue:3", "blue:4", "blue:5")
			time.Sleep(time.Second)
			if got := l.all(); len(got) != 5 || slices.ContainsFunc(got, func(s string) bool { return s[:3] == "red" }) {
				t.Errorf("run while red is paused: %v, want a batch of blue ones", got)
			}
			if err := c.ResumeKey("red"); err != nil {
				t.Fatal(err)
			}
			q.WaitEmpty(time.Minute)
		})
	})
	t.Run("paused key in a group", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			// The delay ends for all four at once, so that one receive takes them.
			q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true", "DelaySeconds": "1"})
			var l batchLog
			c := q.ConsumeBatch(l.handler(nil), reprise.BatchConfig{Size: 5, Config: reprise.Config{Outage: reprise.Outage{Key: kit.Tenant}}})
			if err := c.PauseKey("red"); err != nil {
				t.Fatal(err)
			}
			q.Send("blue:1", "blue:2", "red:1", "blue:3")
			time.Sleep(5 * time.Second)
			if diff := cmp.Diff([]string{"blue:1", "blue:2"}, l.all()); diff != "" {
				t.Errorf("run while red is paused (-want +got):\n%s", diff)
			}
			if err := c.ResumeKey("red"); err != nil {
				t.Fatal(err)
			}
			q.WaitEmpty(time.Minute)
			if diff := cmp.Diff([]string{"blue:1", "blue:2", "red:1", "blue:3"}, l.all()); diff != "" {
				t.Errorf("run in all (-want +got):\n%s", diff)
			}
		})
	})
}

// TestCanaryOfAKeyRunsAlone: the messages of one tenant fail because their dependency is
// unavailable. They no longer share batches with another tenant's messages.
func TestCanaryOfAKeyRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		for i := range 40 {
			q.Send(fmt.Sprintf("red:%d", i))
		}
		var l batchLog
		var c *reprisetest.Consumer
		var canaries atomic.Int64
		h := l.handler(func(_ context.Context, ms []*reprise.Message) []error {
			errs := make([]error, len(ms))
			for i, m := range ms {
				if kit.Tenant(m) != "red" {
					continue
				}
				errs[i] = reprise.Unavailable(kit.ErrUnavailable)
				if kit.StateOf(c, "red") != reprise.BreakerClosed {
					canaries.Add(1)
					if len(ms) != 1 {
						t.Errorf("a canary ran in a batch of %d", len(ms))
					}
				}
			}
			return errs
		})
		begin := make(chan struct{})
		c = q.ConsumeBatch(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			<-begin
			return h.HandleBatch(ctx, ms)
		}), reprise.BatchConfig{Linger: 20 * time.Second, Config: reprise.Config{Concurrency: 1, Outage: reprise.Outage{Key: kit.Tenant}}})
		close(begin)
		for i := range 300 {
			q.Send(fmt.Sprintf("blue:%d", i))
			time.Sleep(time.Second)
		}
		c.Stop()
		blue := slices.DeleteFunc(l.all(), func(s string) bool { return strings.HasPrefix(s, "red") })
		if canaries.Load() < 4 || len(blue) < 290 {
			t.Errorf("%d canaries, %d blue messages: want some, and all", canaries.Load(), len(blue))
		}
	})
}

// TestPausedBytesLeaveRoomForOthers: a backlog of large messages of a paused key takes no more than
// half of the memory.
func TestPausedBytesLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100 << 10
		q := reprisetest.NewQueue(t, nil)
		var l batchLog
		c := q.ConsumeBatch(l.handler(nil), reprise.BatchConfig{
			Size: 1000, Bytes: 10 * size,
			Config: reprise.Config{
				Concurrency: 1,
				Outage:      reprise.Outage{Key: kit.Tenant},
			},
		})
		if err := c.PauseKey("red"); err != nil {
			t.Fatal(err)
		}
		q.Send(slices.Repeat([]string{"red:" + strings.Repeat("x", size)}, 100)...)
		time.Sleep(time.Minute)
		if held := c.Status().Waiting; held != 10 {
			t.Errorf("%d large messages held, want 10: those of half the bytes", held)
		}
		for i := range 20 {
			q.Send(fmt.Sprintf("blue:%d", i))
		}
		time.Sleep(time.Minute)
		if got := len(l.all()); got != 20 {
			t.Errorf("%d of 20 other messages were run", got)
		}
	})
}

// TestRunningBytesLeaveRoomToHold: a batch of large messages runs for long. A message of a paused
// key is held meanwhile, because hiding it would use up a receive.
func TestRunningBytesLeaveRoomToHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100 << 10
		q := reprisetest.NewQueue(t, nil)
		c := q.ConsumeBatch(reprise.BatchHandlerFunc(func(context.Context, []*reprise.Message) []error {
			time.Sleep(15 * time.Second)
			return nil
		}), reprise.BatchConfig{
			Size: 1000, Bytes: 10 * size,
			Config: reprise.Config{
				Concurrency: 1,
				Outage:      reprise.Outage{Key: kit.Tenant},
			},
		})
		if err := c.PauseKey("red"); err != nil {
			t.Fatal(err)
		}
		q.Send(slices.Repeat([]string{"blue:" + strings.Repeat("x", size-5)}, 10)...)
		time.Sleep(time.Second)
		q.Send("red:1")
		time.Sleep(time.Second)
		if s := c.Status(); s.Running != 10 || s.Waiting != 1 || s.Counts.Released != 0 {
			t.Errorf("%d running, %d waiting, %d released: want the paused one held", s.Running, s.Waiting, s.Counts.Released)
		}
	})
}

// TestSuspectHasABatchOfItsOwn: a message was received four times without an outcome. It runs in a
// batch of its own, although others are ready.
func TestSuspectHasABatchOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("suspect")
		url := q.URL()
		for range 4 {
			if _, err := q.Direct().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 60}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(61 * time.Second)
		}
		q.Send(kit.Numbered(9)...)
		var l batchLog
		q.ConsumeBatch(l.handler(nil), reprise.BatchConfig{Config: reprise.Config{Via: reprise.ViaVisibility, Retry: retry.Policy{Backoff: retry.Constant(time.Hour)}}})
		q.WaitEmpty(time.Minute)
		if i := slices.IndexFunc(l.bodies, func(b []string) bool { return b[0] == "suspect" }); i < 0 || len(l.bodies[i]) != 1 || len(l.bodies) != 2 {
			t.Errorf("batches %v, want one of the suspect alone", l.bodies)
		}
	})
}
