package reprise_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestAttackForgedOutage: messages that always look like an outage of a dependency come before good
// ones, and open the breaker. The good ones are handled nevertheless, and so are later ones.
func TestAttackForgedOutage(t *testing.T) {
	all := []struct {
		bad          int
		first, later time.Duration // for a hundred good messages
	}{
		{20, time.Minute, time.Minute},
		{40, 30 * time.Minute, 15 * time.Minute},
		{400, 150 * time.Minute, 150 * time.Minute}, // four are tried a minute
	}
	for _, tt := range all[:race.Fewer(len(all), 2)] {
		t.Run(fmt.Sprint(tt.bad), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.NewDeadLetterQueue(20)
				c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					if strings.HasPrefix(m.Body, "bad") {
						return reprise.Unavailable(errUnavailable)
					}
					return nil
				}), reprise.Config{})
				for i := range tt.bad {
					q.Send(fmt.Sprint("bad", i))
				}
				time.Sleep(time.Minute)
				for wave, within := range []time.Duration{tt.first, tt.later, tt.later} {
					q.Send(numbered(100)...)
					time.Sleep(within)
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
			return reprise.RetryAfter(11*time.Hour, reprise.Unavailable(errUnavailable))
		}), reprise.Config{})
		for i := range 60 {
			q.Send(fmt.Sprint("bad", i))
		}
		time.Sleep(time.Minute)
		q.Send(numbered(100)...)
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
