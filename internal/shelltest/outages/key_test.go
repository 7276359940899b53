package outages

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestOneKeyDownHarmsNoOther: the dead webhooks of one tenant or several delay their own messages.
// Those of other tenants are still handled at once, and held messages do not fill the consumer.
func TestOneKeyDownHarmsNoOther(t *testing.T) {
	for _, down := range [][]string{{"acme"}, {"acme", "coil", "dyne", "echo"}} {
		t.Run(strings.Join(down, " "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { keysDown(t, down) })
		})
	}
}

func keysDown(t *testing.T, down []string) {
	q := reprisetest.NewQueue(t, nil)
	dead := q.NewDeadLetterQueue(30)
	p := &kit.Dependency{Takes: 100 * time.Millisecond}
	for _, key := range down {
		p.Set(key, true)
	}
	var mu sync.Mutex
	sent := make(map[string]time.Time)
	var slowest time.Duration
	c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		mu.Lock()
		if at, ok := sent[m.Body]; ok {
			slowest = max(slowest, time.Since(at))
		}
		mu.Unlock()
		return p.Handle(ctx, m)
	}), reprise.Config{
		Outage: reprise.Outage{Key: kit.Tenant},
		Retry:  retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: -1},
	})
	for i := range 400 {
		for _, key := range down {
			q.Send(fmt.Sprintf("%s:%d", key, i))
		}
		if i > 40 {
			body := fmt.Sprintf("bolt:%d", i)
			mu.Lock()
			sent[body] = time.Now()
			mu.Unlock()
			q.Send(body)
		}
		time.Sleep(time.Second)
	}
	if failed := p.Failures(); failed > 150*len(down) {
		t.Errorf("%d runs for the tenants that are down", failed)
	}
	mu.Lock()
	if slowest > 2*time.Second {
		t.Errorf("a message of another tenant waited %v", slowest)
	}
	mu.Unlock()
	s := c.Status()
	if len(s.Breakers) != len(down) {
		t.Errorf("breakers %+v, want those of %v", s.Breakers, down)
	}
	for _, b := range s.Breakers {
		if b.State == reprise.BreakerClosed || b.Held > 10 || len(down) == 1 && b.Held == 0 {
			t.Errorf("breaker %+v, want it open, and at most half of the consumer's 20 places held", b)
		}
	}
	for _, key := range down {
		p.Set(key, false)
	}
	q.WaitEmpty(15 * time.Minute) // a copy that was just sent away is not woken
	if n := len(dead.Messages()); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestCanaryThatIsPausedBeforeItRuns: a canary whose key is paused before it runs does not count as
// under way for ever.
func TestCanaryThatIsPausedBeforeItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		up := time.Now().Add(time.Minute)
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if kit.Tenant(m) == "bolt" {
				time.Sleep(time.Minute) // it has the only worker
			}
			return kit.FailBut(time.Now().After(up), reprise.Unavailable(kit.ErrUnavailable))
		}), reprise.Config{Concurrency: 1, Outage: reprise.Outage{Key: kit.Tenant, Threshold: 1}})
		q.Send("acme:1")
		kit.WaitFor(t, "the breaker opens", time.Minute, kit.StateIs(c, "acme", reprise.BreakerOpen))
		q.Send("bolt:1")
		kit.WaitFor(t, "the canary is ready", time.Minute, kit.StateIs(c, "acme", reprise.BreakerHalfOpen))
		if err := errors.Join(c.PauseKey("acme"), c.ResumeKey("acme")); err != nil {
			t.Fatal(err)
		}
		q.WaitEmpty(10 * time.Minute)
	})
}

// TestSentAwayForLongerEachTime: there is room to hold a few messages of a paused key. The others
// are hidden, for longer each time, since each time uses up a receive.
func TestSentAwayForLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{Via: reprise.ViaVisibility, Outage: reprise.Outage{Key: kit.Tenant}})
		if err := c.PauseKey("acme"); err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			q.Send("acme:" + strconv.Itoa(i))
		}
		time.Sleep(4 * time.Hour)
		// 1, 2, 4, 8 and then ten minutes, or a quarter more.
		if n := c.Status().Counts.Received; n < 10+20*20 || n > 10+20*28 {
			t.Errorf("%d receives, want one each of the 10 messages that are held, and 20 to 28 of the others", n)
		}
	})
}

// TestMessagesOfAKeyThatIsDownAreNoSuspects: messages of an unavailable key are received and hidden
// again for hours by several consumers, since there is no room to hold them. None of them is
// treated as one that kills its process, or seems exhausted.
func TestMessagesOfAKeyThatIsDownAreNoSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(3)
		p := &kit.Dependency{Takes: 10 * time.Millisecond}
		p.Set("acme", true)
		var log suspicions
		for range 3 {
			q.Consume(p, reprise.Config{
				Concurrency: 4, Prefetch: 4,
				Outage: reprise.Outage{Key: kit.Tenant},
				Retry:  retry.Policy{MaxAttempts: 10},
				Logger: slog.New(&log),
			})
		}
		for i := range 200 {
			q.Send("acme:" + strconv.Itoa(i))
		}
		time.Sleep(time.Duration(race.Fewer(4, 1)) * time.Hour)
		p.Set("acme", false)
		q.WaitEmpty(20 * time.Minute)
		if n := log.count.Load(); n != 0 {
			t.Errorf("%d messages were suspected of crashing the worker", n)
		}
		if n := len(dead.Messages()); n != 0 {
			t.Errorf("%d dead letters", n)
		}
		most := 0
		for _, r := range p.All() {
			most = max(most, r.Attempt)
		}
		if most > 4 { // each consumer has to find out for itself
			t.Errorf("the highest attempt was %d", most)
		}
	})
}

// suspicions is a log that counts one kind of line.
type suspicions struct {
	slog.Handler
	count atomic.Int64
}

func (s *suspicions) Enabled(context.Context, slog.Level) bool { return true }

func (s *suspicions) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s *suspicions) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "crash") {
		s.count.Add(1)
	}
	return nil
}
