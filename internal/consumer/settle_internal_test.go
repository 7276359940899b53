package consumer

import (
	"errors"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

var errFails = errors.New("it fails")

// retryIn is the opinion that an attempt has failed, and is to be made again after the wait.
func retryIn(c *Machine, wait time.Duration) Opinion {
	return Opinion{Err: errFails, Decision: retry.Decision{Action: retry.ActionRetry, At: c.now.Add(wait), Reason: retry.ReasonPolicy}}
}

// TestSettlementGoesOutUnderTheNewerLease: a message is received again while its settlement waits.
// The settlement still goes out after the end of the first lease, with the newer receipt handle.
func TestSettlementGoesOutUnderTheNewerLease(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	older, newer := "older", "newer"
	d := &Delivery{ID: "a", Handle: &older}
	received(c, d)
	c.Ended(c.Arrive(), retryIn(c, time.Hour), "", time.Second, c.now)
	received(at(c, 50*time.Second), &Delivery{ID: "a", Handle: &newer})

	var entries [MaxBatch]Entry
	batch := at(c, 70*time.Second).Prepare(&c.hides, []*Delivery{d}, &entries)
	if len(batch) != 1 || entries[0].Handle != &newer {
		t.Errorf("of the settlement are left %d messages, the first with the entry %+v; want one, with the newer handle", len(batch), entries[0])
	}
}

// TestDoneWithoutALease: SQS no longer knows the receipt handle of a message whose handler then
// succeeds, though its lease would last. The delete may have had no effect: when the message is
// received again, it is deleted and not run.
func TestDoneWithoutALease(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	handle := "handle"
	d := &Delivery{ID: "a", Handle: &handle}
	received(c, d)
	c.Arrive()
	d.lease.Lose()
	c.Ended(d, Opinion{}, "", time.Second, c.now)
	var entries [MaxBatch]Entry
	batch := c.Prepare(&c.deletes, []*Delivery{d}, &entries)
	c.Acknowledge(&c.deletes, batch, new([MaxBatch]Failure))

	again := &Delivery{ID: "a", Handle: &handle, Receives: 2}
	received(at(c, time.Second), again)
	if again.state != stateDeleting {
		t.Errorf("when it is received again it is %v, want deleting", again.state)
	}
}

// TestHeartbeatBetweenSettlements: no lease is renewed while a settlement is under way. If it is
// refused and a heartbeat is due by then, that goes out before the settlement is sent again.
func TestHeartbeatBetweenSettlements(t *testing.T) {
	for took, due := range map[time.Duration]bool{20 * time.Second: false, 40 * time.Second: true} {
		c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
		handle := "handle"
		d := &Delivery{ID: "a", Handle: &handle}
		received(c, d)
		c.Ended(c.Arrive(), Opinion{}, "", 0, c.now)
		var entries [MaxBatch]Entry
		batch := c.Prepare(&c.deletes, []*Delivery{d}, &entries)
		at(c, took).Ring() // which has looked at the leases meanwhile
		c.Acknowledge(&c.deletes, batch, &[MaxBatch]Failure{{Err: errFails}})
		c.Ring()
		if got := len(effects(c, Heartbeat)); (got == 1) != due {
			t.Errorf("when a request of %v is refused, %d heartbeats go out", took, got)
		}
	}
}
