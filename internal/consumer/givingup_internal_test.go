package consumer

import (
	"strconv"
	"testing"

	"github.com/reprise-sqs/reprise/retry"
)

// TestDeletesWithoutARunEndNoGivingUp: what is deleted without a run, because its work was done
// before, says nothing about the handler.
func TestDeletesWithoutARunEndNoGivingUp(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	settle := func(outcome Outcome, ran bool) {
		for n := range 30 {
			id := outcome.String() + strconv.Itoa(n)
			c.watchGivingUp(&Delivery{ID: id, OriginID: id, ran: ran, verdict: Verdict{Outcome: outcome, Reason: retry.ReasonAttempts}}, c.now)
		}
	}
	if settle(OutcomeDeadLetter, true); !c.giveUps.Begun() {
		t.Fatal("30 messages are given up, and none succeeds: it does not notice")
	}
	if settle(OutcomeDelete, false); !c.giveUps.Begun() {
		t.Error("it ends with deletes of messages that were not run")
	}
	if settle(OutcomeDelete, true); c.giveUps.Begun() {
		t.Error("it does not end with successes")
	}
}
