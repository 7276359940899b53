package consumer

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/lease"
)

// TestHeartbeatOfTheOlderHandle: a message is received again while a heartbeat with its older
// receipt handle is under way. Whatever its result is, the newer lease stands.
func TestHeartbeatOfTheOlderHandle(t *testing.T) {
	for name, f := range map[string]Failure{
		"succeeds":      {},
		"is refused":    {Err: errFails, Kinds: OfEntry | BySender},
		"is unanswered": {Err: ErrUnanswered},
	} {
		c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
		older, newer := "older", "newer"
		d := &Delivery{ID: "a", Handle: &older}
		received(c, d)
		c.Arrive()
		d.lease.BeginRenewal()
		var entries [MaxBatch]Entry
		batch := at(c, 30*time.Second).Renew([]*Delivery{d}, &entries)
		received(at(c, 50*time.Second), &Delivery{ID: "a", Handle: &newer})
		want := d.lease
		want.EndRenewal()
		at(c, 55*time.Second).Renewed(batch, &entries, &[MaxBatch]Failure{f}, noon.Add(30*time.Second))
		if d.lease != want || d.lease.End() != noon.Add(110*time.Second-lease.Slack(time.Minute)) {
			t.Errorf("the older heartbeat %s: the lease is %+v, want %+v", name, d.lease, want)
		}
	}
}
