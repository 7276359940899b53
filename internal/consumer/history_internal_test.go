package consumer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/history"
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
