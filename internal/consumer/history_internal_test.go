package consumer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/retry"
)

// TestHistoryFits whatever the error and the message's attributes are like.
func TestHistoryFits(t *testing.T) {
	now := time.Now()
	queue := Queue{Name: strings.Repeat("q", 80)}
	c := New(Settings{Queue: queue, CopyTo: queue})
	for _, text := range []string{"", strings.Repeat("x", 5000), strings.Repeat("\x00", 5000), strings.Repeat("\"", 5000), strings.Repeat("💥", 5000), strings.Repeat("\xff", 5000), "\uFFFE\uFFFF"} {
		d := &Delivery{verdict: Verdict{Outcome: OutcomeRetry, Due: now.Add(time.Hour), Err: errors.New(text), alone: true, unavailable: true}}
		d.ID, d.OriginID, d.Trail = "id", strings.Repeat(`"`, history.MaxOrigin), strings.Repeat(`"`, history.MaxTrail)
		d.Attempt, d.Sent, d.FirstReceived = history.MaxCount, now.Add(-time.Hour), now.Add(time.Hour)
		h, err := history.Read(c.historyFor(d, now), queue.Name, now)
		if err != nil {
			t.Fatalf("the history of a message that failed with %.20q does not read: %v", text, err)
		}
		if h.Attempt != history.MaxCount || h.Alone != 1 || len(h.Trail) != history.MaxTrail || !h.Unavailable || time.UnixMilli(h.NotBefore).Before(now.Add(time.Hour)) {
			t.Errorf("history %+v", h)
		}
	}
}

// TestPossibleAttempts: which receives of a copy, whose history counts two attempts, can have been
// attempts too. Each attempt takes half a second at least.
func TestPossibleAttempts(t *testing.T) {
	policy := retry.Policy{Backoff: retry.Constant(500 * time.Millisecond), Jitter: retry.None}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		arrived, due time.Duration // before now
		receives     int
		want         int
	}{
		"the first receive":                           {0, 0, 1, 3},
		"the first, long before it is due":            {0, -time.Hour, 1, 3},
		"receives before it is due":                   {9 * time.Hour, -2*time.Second - 1, 7, 3},
		"when it is due, hidden once":                 {9 * time.Hour, 0, 2, 3},
		"when it is due, received once more":          {9 * time.Hour, 0, 3, 4},
		"two seconds before, by the clock of another": {9 * time.Hour, -2 * time.Second, 3, 4},
		"as many receives as fit into the time":       {time.Minute, 45 * time.Second, 9, 10},
		"more than fit":                               {time.Minute, time.Second, 9, 7},
		"held until it was due":                       {time.Minute, 58 * time.Second, 2, 4},
		"hidden until it was due":                     {time.Minute, 58*time.Second - 1, 2, 3},
	} {
		d := &Delivery{Receives: tt.receives, History: &Past{History: history.History{Attempt: 2}, Arrived: now.Add(-tt.arrived), Due: now.Add(-tt.due)}}
		if d.CountPossibleAttempts(policy, 0, now); d.PossibleAttempts != tt.want {
			t.Errorf("%s: it can be attempt %d, want %d", name, d.PossibleAttempts, tt.want)
		}
	}
}
