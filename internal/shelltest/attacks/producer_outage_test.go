package attacks

import (
	"context"
	"errors"
	"fmt"
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
)

// TestAttackForgedOutage: messages that always look like an outage of a dependency come before good
// ones, and open the breaker. The good ones are handled nevertheless, and so are later ones.
func TestAttackForgedOutage(t *testing.T) {
	all := []struct {
		bad          int
		first, later time.Duration // for a hundred good messages
		probes       int           // that run bad ones before a good one, at most; 0: as many as the time permits
	}{
		{20, 100 * time.Second, 100 * time.Second, 3}, // one of four probes runs one that has not failed; there are 24 s between them at most
		{40, 30 * time.Minute, 15 * time.Minute, 0},
		{400, 150 * time.Minute, 150 * time.Minute, 0}, // four are tried a minute
	}
	for _, tt := range all[:race.Fewer(len(all), 2)] {
		t.Run(fmt.Sprint(tt.bad), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.NewDeadLetterQueue(20)
				var mu sync.Mutex
				bad, before := 0, -1 // runs of bad messages since the last hundred were sent: in all, and before the first of these
				c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					mu.Lock()
					defer mu.Unlock()
					if strings.HasPrefix(m.Body, "bad") {
						bad++
						return reprise.Unavailable(kit.ErrUnavailable)
					}
					if before < 0 {
						before = bad
					}
					return nil
				}), reprise.Config{})
				for i := range tt.bad {
					q.Send(fmt.Sprint("bad", i))
				}
				time.Sleep(time.Minute)
				for wave, within := range []time.Duration{tt.first, tt.later, tt.later} {
					mu.Lock()
					bad, before = 0, -1
					mu.Unlock()
					q.Send(kit.Numbered(100)...)
					time.Sleep(within)
					mu.Lock()
					if before < 0 || tt.probes > 0 && before > tt.probes {
						t.Errorf("%d bad messages ran before the first of the %d. hundred, want %d at most", before, wave+1, tt.probes)
					}
					mu.Unlock()
					if s := c.Status(); s.Counts.Deleted != int64(100*(wave+1)) {
						t.Errorf("%d good messages worked off %v after the %d. hundred: %s", s.Counts.Deleted, within, wave+1, s.Problem)
					}
					time.Sleep(time.Hour)
				}
			})
		})
	}
}

// TestAttackForgedOutageThatAsksToWait: as many messages as can be held at once ask for a retry in
// twelve hours. Others are tried nevertheless.
func TestAttackForgedOutageThatAsksToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(20)
		var early atomic.Int64
		var mu sync.Mutex
		until := make(map[string]time.Time)
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if !strings.HasPrefix(m.Body, "bad") {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if time.Now().Before(until[m.Body]) {
				early.Add(1)
			}
			until[m.Body] = time.Now().Add(11 * time.Hour)
			return reprise.RetryAfter(11*time.Hour, reprise.Unavailable(kit.ErrUnavailable))
		}), reprise.Config{})
		for i := range 60 {
			q.Send(fmt.Sprint("bad", i))
		}
		time.Sleep(time.Minute)
		q.Send(kit.Numbered(100)...)
		time.Sleep(2 * time.Hour)
		if s := c.Status(); s.Counts.Deleted != 100 {
			t.Errorf("%d of 100 good messages worked off: %s", s.Counts.Deleted, s.Problem)
		}
		time.Sleep(20 * time.Hour)
		if n := early.Load(); n > 0 {
			t.Errorf("%d runs before the time that the handler has set", n)
		}
	})
}

// TestAttackLongOutageKeys: a key of any length takes 256 bytes at most in what the consumer keeps and shows; two that
// differ behind their first 256 bytes stay two, and both the whole key and the one that is shown name it.
func TestAttackLongOutageKeys(t *testing.T) {
	long := strings.Repeat("x", 900<<10)
	keyed := reprise.Config{Outage: reprise.Outage{Key: func(m *reprise.Message) string { return m.GroupID }}}
	c, err := reprise.New(kit.NewClient("http://127.0.0.1:1"), "http://127.0.0.1:1/1/orders", reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }), keyed)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{long + "1", long + "2"} {
		if err := c.PauseKey(key); err != nil {
			t.Fatal(err)
		}
	}
	breakers := c.Status().Breakers
	if len(breakers) != 2 || len(breakers[0].Key) > 256 || len(breakers[1].Key) > 256 {
		t.Fatalf("%d keys are shown, the first with %d bytes", len(breakers), len(breakers[0].Key))
	}
	if err := errors.Join(c.ResumeKey(long+"1"), c.ResumeKey(breakers[0].Key), c.ResumeKey(breakers[1].Key)); err != nil {
		t.Fatal(err)
	}
	if left := c.Status().Breakers; len(left) != 0 {
		t.Errorf("%d keys are still paused", len(left))
	}
}
