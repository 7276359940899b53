package terminal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// TestLimitTellsEachTime: what is left out is counted, and told a second after the first byte of it; what is left out later
// is told again.
func TestLimitTellsEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int64
		l := terminal.NewLimit(func(omitted int64) { told = append(told, omitted) })
		permit := func(n int, want bool) {
			t.Helper()
			if got := l.Permit(n); got != want {
				t.Errorf("%d bytes are permitted: %t, want %t", n, got, want)
			}
		}
		permit(terminal.LimitBurst, true)
		permit(100, false)
		permit(23, false)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(told) != 1 || told[0] != 123 {
			t.Errorf("after the first second %d were told, want 123", told)
		}
		permit(terminal.LimitRate, true) // of the second that has passed
		permit(7, false)
		time.Sleep(time.Hour)
		synctest.Wait()
		permit(terminal.LimitBurst, true) // and no more
		permit(1, false)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(told) != 3 || told[1] != 7 || told[2] != 1 {
			t.Errorf("told were %d, want 123, 7 and 1", told)
		}
	})
}
