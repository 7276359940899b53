package giveups

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// TestTotalIsOfThisState: the total is what was given up since the state began, with what began it: not what was given
// up before, among successes or in a state that has ended.
func TestTotalIsOfThisState(t *testing.T) {
	var w Watch
	now, n := epoch, 0
	giveUp := func(times int) (begins bool) {
		for range times {
			n++
			now = now.Add(time.Second)
			begins = w.GaveUp(fmt.Sprint("m", n), retry.ReasonPermanent, "refused", now)
		}
		return begins
	}
	succeed := func(times int) {
		for range times {
			now = now.Add(time.Second)
			if w.Succeeded(now) {
				w.End()
			}
		}
	}
	for range 98 { // half of all, over some minutes
		giveUp(1)
		succeed(1)
	}
	now = now.Add(2 * remembered)
	for _, want := range []int{20, 20} { // the second time after a state that has ended
		if begins := giveUp(20); !begins {
			t.Fatal("20 that are given up in a row begin no state")
		}
		if got := w.Summary(now); got.Total != want || got.GivenUp != 20 || got.Since != now.Add(-19*time.Second) {
			t.Errorf("%d since %v, want %d since %v", got.Total, got.Since, want, now.Add(-19*time.Second))
		}
		giveUp(5)
		if got := w.Summary(now).Total; got != want+5 {
			t.Errorf("after 5 more %d since, want %d", got, want+5)
		}
		succeed(Window)
	}
}
