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
