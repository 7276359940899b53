package machines_test

import (
	"github.com/reprise-sqs/reprise/internal/world"
)

// workedOff reports whether the queues contain only messages that cannot be removed.
func (f *fleet) workedOff() bool {
	for _, q := range f.all() {
		for d := range q.All() {
			if f.mustGo(partOf(d.Payload)) {
				return false
			}
		}
	}
	return true
}

// expired reports whether the queue has kept p for its retention, so that it may drop p at any time.
func (f *fleet) expired(p *part) bool { return f.sqs.Now().Sub(p.enqueued) >= f.retention }

// mustGo reports whether p must leave its queue in the end. A message that is given up may stay if
// no dead-letter queue accepts it, and so may one that a forged history delays.
func (f *fleet) mustGo(p *part) bool {
	if p.kind == forged && !f.signed {
		return false
	}
	if f.noDeadLetters && f.fifo {
		for _, other := range f.parts { // which are kept keep their groups waiting
			if other.kept && other.group == p.group {
				return false
			}
		}
	}
	givenUp := f.mayEnd || p.permanent || p.kept || p.kind == deadly || p.kind != plain && f.receives < 1000
	return !givenUp || !f.noDeadLetters && p.kind != large && p.kind != cursed
}

// checkEnd checks the outcome of every message.
func (f *fleet) checkEnd() {
	left := make(map[*part]bool)
	if f.dead != nil {
		for d := range f.dead.All() {
			left[partOf(d.Payload)] = true
		}
	}
	for _, q := range f.all() {
		for d := range q.All() {
			p := partOf(d.Payload)
			left[p] = true
			if f.mustGo(p) {
				f.broken(world.NothingIsLeft, "%s is still in %s, visible at %v", p.body, q.Name(), d.VisibleAt)
			}
		}
	}
	for _, p := range f.parts {
		switch expired := f.expired(p); {
		case p.handled || left[p]:
		case p.refused:
		case expired && !f.calm:
			f.loop.Note("the queue", "drops message", int64(p.number))
		case expired:
			f.loop.Note("the queue", "drops message in calm", int64(p.number))
		default:
			f.broken(world.NothingIsLost, "%s is gone", p.body)
		}
	}
}
