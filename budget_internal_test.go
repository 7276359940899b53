package reprise

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestCopiesDoNotHideThatTheCountGrows: sixty messages a minute failed, and as many
// copies relieved the queue of them. Its count has not grown, but would without.
func TestCopiesDoNotHideThatTheCountGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Consumer{}
		c.cfg.InFlightQuota = 10_000
		for minute, hidden := range []int{1000, 1060, 1060, 1060} {
			if minute >= 2 {
				c.budget.spilled = 60
			}
			c.countInFlight(map[string]string{"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(hidden)}, time.Now())
			if want := float64(min(minute, 1)); c.budget.rate != want {
				t.Errorf("minute %d: the count would grow by %v a second, want %v", minute, c.budget.rate, want)
			}
			if c.budget.spilled != 0 {
				t.Errorf("minute %d: %d copies are counted for the next too", minute, c.budget.spilled)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestGrowthIsForgottenSlowly: when the count has stopped to grow, perhaps for the
// copies of other consumers, it is expected to go on, less with each reading.
func TestGrowthIsForgottenSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Consumer{}
		c.cfg.InFlightQuota = 10_000
		want := []float64{0, 1, rateDecay, rateDecay * rateDecay}
		for minute, hidden := range []int{1000, 1060, 1060, 1060} {
			c.countInFlight(map[string]string{"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(hidden)}, time.Now())
			if c.budget.rate != want[minute] {
				t.Errorf("minute %d: the count would grow by %v a second, want %v", minute, c.budget.rate, want[minute])
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestQuotaThatIsUsedUp: the queue is full where its messages in flight reach the quota
// and others wait, by a count that is not old; nothing relieves it by an old one.
func TestQuotaThatIsUsedUp(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		name            string
		hidden, visible int
		age             time.Duration
		full, spills    bool
	}{
		{"nearly", 9400, 100, time.Minute, false, true},
		{"used up", 9600, 100, time.Minute, true, true},
		{"used up, and none waits", 9600, 0, time.Minute, false, true},
		{"used up five minutes ago", 9600, 100, budgetStale, true, true},
		{"used up once", 9600, 100, budgetStale + 1, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := budget{last: InFlight{Queue: test.hidden, Visible: test.visible, AsOf: now.Add(-test.age), Quota: 10_000}}
			if full, spills := b.full(now), b.spills(time.Hour, now); full != test.full || spills != test.spills {
				t.Errorf("full %v, spills %v; want %v and %v", full, spills, test.full, test.spills)
			}
		})
	}
}
