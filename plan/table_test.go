package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// TestLongSchedule: the middle of a long schedule is left out, and counted.
func TestLongSchedule(t *testing.T) {
	for _, tt := range []struct{ attempts, lines int }{{1, 1}, {43, 43}, {44, 44}, {45, 44}, {5000, 44}} {
		p := retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None, MaxAttempts: tt.attempts}
		text := plan.NewSchedule(p, plan.Queue{}, plan.Settings{}).String()
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if got := len(lines) - 1 - 3; got != tt.lines { // the header, the ends
			t.Errorf("%d attempts are shown on %d lines, want %d:\n%s", tt.attempts, got, tt.lines, text)
		}
		listed := min(tt.attempts, plan.MaxListed)
		left := listed - 43
		if got := strings.Contains(text, fmt.Sprintf("... %d more ...", left)); got != (left > 0) {
			t.Errorf("%d attempts: it says how many are left out: %v\n%s", tt.attempts, got, text)
		}
		if left > 0 && strings.Index(lines[41], "...") != strings.Index(lines[2], "hide") {
			t.Errorf("the number left out is not in the last column:\n%s", text)
		}
		if tt.attempts > plan.MaxListed && !strings.Contains(text, "1000 attempts, and more") {
			t.Errorf("the list ends without saying so:\n%s", text)
		}
		for _, line := range lines {
			if strings.TrimRight(line, " ") != line {
				t.Errorf("line %q ends in spaces", line)
			}
		}
	}
}

func TestRow(t *testing.T) {
	second := time.Second
	for _, tt := range []struct {
		attempt plan.ScheduledAttempt
		want    []string
	}{
		{plan.ScheduledAttempt{N: 1}, []string{"1", "", "", "", "0s", "0s", "0s", ""}},
		{
			plan.ScheduledAttempt{
				N:     2,
				Wait:  plan.Span{Least: 250 * time.Microsecond, Expected: 1234567 * time.Nanosecond, Most: 12345 * time.Millisecond},
				Since: plan.Span{Least: 61 * second, Expected: 3661 * second, Most: 47 * time.Hour},
				Leg:   plan.Leg{Carry: plan.CarryPark, Receives: 4},
			},
			[]string{"2", "250µs", "1ms", "12.35s", "1m1s", "1h1m", "1d 23h", "park, 4 receives"},
		},
		{
			plan.ScheduledAttempt{
				N:     3,
				Wait:  plan.Span{Least: time.Hour, Expected: 24*time.Hour - second, Most: 24 * time.Hour},
				Since: plan.Span{Least: 59*time.Minute + 59900*time.Millisecond, Expected: 71*time.Hour + 50*time.Minute, Most: 30 * 24 * time.Hour},
				Leg:   plan.Leg{Carry: plan.CarryRequeue, Receives: 9, Copies: 3},
			},
			[]string{"3", "1h", "1d", "1d", "1h", "3d", "30d", "requeue, 3 copies"},
		},
	} {
		got := tt.attempt.Row()
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if len(got) != len(plan.Header()) {
			t.Errorf("%d cells under %d names", len(got), len(plan.Header()))
		}
	}
}

// TestNames: names are stable, and what is none says so.
func TestNames(t *testing.T) {
	for want, value := range map[string]fmt.Stringer{
		"info": plan.Info, "warning": plan.Warning, "error": plan.Error, "Severity(3)": plan.Error + 1,
		"auto": plan.ViaAuto, "visibility": plan.ViaVisibility, "requeue": plan.ViaRequeue, "Via(3)": plan.ViaRequeue + 1,
		"": plan.CarryNone, "hide": plan.CarryHide, "park": plan.CarryPark, "Carry(4)": plan.CarryRequeue + 1,
		"attempts": plan.StopAttempts, "age": plan.StopAge, "receives": plan.StopReceives,
		"retention": plan.StopRetention, "unlisted": plan.StopUnlisted, "Stop(0)": plan.Stop(0), "Stop(6)": plan.StopUnlisted + 1,
	} {
		if got := value.String(); got != want {
			t.Errorf("%#v is %q, want %q", value, got, want)
		}
	}
}
