package sqsserver

import (
	"testing"
	"testing/synctest"
	"time"
)

// A group was kept open in vain only if a request waited for it: after a pause in which none
// waited, the next requests are gathered again.
func TestGatheringAfterPause(t *testing.T) {
	for _, test := range []struct {
		name    string
		waiting int // when the pause begins
		again   bool
	}{
		{"nobody waited", 0, true},
		{"somebody waited", 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const took, clients = 2 * time.Millisecond, 8
				var g gathering
				g.begin(took, clients)
				if test.waiting > 0 && g.timeLeft(test.waiting) <= 0 {
					t.Fatal("the group was not kept open")
				}
				time.Sleep(time.Second)
				if left := g.timeLeft(1); left > 0 {
					t.Errorf("a second later the group is to be kept open for %v", left)
				}
				g.begin(took, clients)
				if again := g.timeLeft(1) > 0; again != test.again {
					t.Errorf("the next group is kept open: %v, want %v", again, test.again)
				}
			})
		})
	}
}
