package journal

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCommitDuringALateSync: it may miss that sync, and so gets one of its own, an
// interval after itself at the latest. Without commits nothing is synced.
func TestCommitDuringALateSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, takes = time.Second, 100 * time.Millisecond
		var l lateSync
		var began []time.Time
		l.init(interval, func() {
			began = append(began, time.Now())
			if len(began) == 1 {
				time.Sleep(takes / 2)
				l.schedule() // as a Commit does
				time.Sleep(takes / 2)
			}
		})
		committed := time.Now()
		l.schedule()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(began) != 2 {
			t.Fatalf("%d syncs, want one for each of two commits", len(began))
		}
		if waited := began[0].Sub(committed); waited != interval {
			t.Errorf("the first commit was synced after %v, want %v", waited, interval)
		}
		if waited := began[1].Sub(began[0].Add(takes / 2)); waited != interval {
			t.Errorf("the commit during that was synced after %v, want %v", waited, interval)
		}
	})
}
