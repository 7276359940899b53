package engine

import "time"

// Lease is a receiver's hold on a message, until its visibility timeout ends.
type Lease struct {
	Receipt Receipt
	Until   time.Time
}

// Replay returns the messages of an earlier receive again, for a receiver whose reply was lost: the
// same receipts, with new leases of the given time (negative: the queue's). It appends to dst and
// does not count as a receive. If any of the messages is gone, or its lease has ended or was
// changed, it does nothing and reports false.
func (e *Engine) Replay(now time.Time, q *Queue, leases []Lease, visibility time.Duration, dst []Delivery) ([]Delivery, bool) {
	t := e.tick(now)
	for _, lease := range leases {
		slot := q.find(lease.Receipt, t)
		if slot == 0 || !q.leased(slot) || q.messages.at(slot).receives != lease.Receipt.Generation ||
			q.hidden.key(slot) != lease.Until.UnixNano() {
			return dst, false
		}
	}
	if visibility < 0 {
		visibility = q.settings.Visibility
	}
	for _, lease := range leases {
		slot := slotOf(lease.Receipt)
		if visibility > 0 {
			q.hide(slot, t+int64(visibility))
		} else {
			q.exposeEarly(slot)
		}
		dst = append(dst, q.delivery(slot, t))
	}
	return dst, true
}
