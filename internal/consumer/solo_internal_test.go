package consumer

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/plan"
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

// TestOneSuspectCountsOnce: a suspect that no copy replaces begins again and again in an outage, or while its key is paused
// and resumed. It counts as one of the suspects that may run alone.
func TestOneSuspectCountsOnce(t *testing.T) {
	c := at(New(Settings{Queue: standard, CopyTo: standard, Concurrency: 2, Keyed: true, Settings: plan.Settings{Lease: time.Minute, Via: plan.ViaVisibility}}), 0)
	d := &Delivery{ID: "a", OriginID: "a", Key: "k", Sent: c.now, FirstReceived: c.now.Add(-time.Hour), Receives: unexplainedMany + 1, PossibleAttempts: 1}
	received(c, d)
	for range suspectsMany {
		c.SetKeyPaused("k", true)
		c.SetKeyPaused("k", false)
		if d.state != stateAlone {
			t.Fatalf("after %d suspects have been counted it is %v, want %v", c.solo.suspects, d.state, stateAlone)
		}
	}
}

// TestMarkedMessageDoesNotWaitForLong: while it waits to run alone, each death of the process would
// count against it. If others may start for longer than a minute, it is given back.
func TestMarkedMessageDoesNotWaitForLong(t *testing.T) {
	for others, want := range map[time.Duration]state{
		0:                stateAlone,
		queueAlone:       stateAlone,
		queueAlone + 1:   stateRequeueing,
		10 * time.Minute: stateRequeueing,
	} {
		queue := Queue{URL: "https://sqs.eu-west-1.amazonaws.com/1/q", Name: "q"}
		c := at(New(Settings{Queue: queue, CopyTo: queue, Concurrency: 1, Settings: leased}), 0)
		c.solo.rest = c.now.Add(others)
		d := &Delivery{ID: "a", OriginID: "a", Sent: c.now, FirstReceived: c.now, Receives: 1}
		d.Adopt(history.History{Origin: "a", Alone: 1, Sent: c.now.UnixMilli(), First: c.now.UnixMilli()}, 0)
		if received(c, d); d.state != want && !(want == stateRequeueing && d.state == stateHiding) {
			t.Errorf("where others may start for %v, it is %v, want %v", others, d.state, want)
		}
	}
}
