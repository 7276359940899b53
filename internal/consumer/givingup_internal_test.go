package consumer

import (
	"strconv"
	"testing"
	"time"

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

// TestNoEndOfGivingUpAfterTheStop: an alarm that rings after the stop adds no report.
func TestNoEndOfGivingUpAfterTheStop(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	for n := range 30 {
		id := strconv.Itoa(n)
		c.watchGivingUp(&Delivery{ID: id, OriginID: id, ran: true, verdict: Verdict{Outcome: OutcomeDeadLetter, Reason: retry.ReasonAttempts}}, c.now)
	}
	if r, ok := c.NextReport().(GivingUp); !ok || r.Over {
		t.Fatalf("of 30 messages that are given up the report is %v", r)
	}
	c.Close()
	at(c, time.Hour).Ring()
	if r := c.NextReport(); r != nil {
		t.Errorf("after the stop it reports %v", r)
	}
}
