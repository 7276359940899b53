package reprise

import (
	"testing"
	"time"
)

// TestSoftBudget: handlers may run for three quarters of a short stop budget, and for all but three
// seconds of a longer one.
func TestSoftBudget(t *testing.T) {
	for budget, want := range map[time.Duration]time.Duration{
		time.Second:      750 * time.Millisecond,
		4 * time.Second:  3 * time.Second,
		12 * time.Second: 9 * time.Second,
		25 * time.Second: 22 * time.Second,
		time.Hour:        time.Hour - 3*time.Second,
	} {
		c := &Consumer{cfg: Config{StopBudget: budget}}
		if got := c.softBudget(); got != want {
			t.Errorf("of %v handlers have %v, want %v", budget, got, want)
		}
	}
}
