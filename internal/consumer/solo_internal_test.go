package consumer

import (
	"testing"
	"time"
)

// TestFewSuspects: 50 suspects are run alone in a quarter of an hour at most, since each keeps
// all other messages waiting; and in the next quarter 50 again.
func TestFewSuspects(t *testing.T) {
	var s soloTurn
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for quarter := range 3 {
		alone := 0
		for range 2 * suspectsMany {
			if s.countSuspect(now) {
				alone++
			}
			now = now.Add(suspectsFor / (2 * suspectsMany))
		}
		if alone != suspectsMany {
			t.Errorf("in quarter %d of an hour %d suspects run alone, want %d", quarter+1, alone, suspectsMany)
		}
		now = now.Add(time.Second)
	}
}
