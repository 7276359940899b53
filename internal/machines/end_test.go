package machines_test

import (
	"github.com/reprise-sqs/reprise/internal/world"
)

// workedOff reports whether nothing is in the queues but what cannot go.
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

// expired reports whether the queue has kept p for its retention: it may drop p any time.
func (f *fleet) expired(p *part) bool { return f.sqs.Now().Sub(p.enqueued) >= f.retention }

// mustGo reports whether p cannot stay in its queue for ever: what is given up can where no
// dead-letter queue takes it, or not this message, and a forged history delays its message.
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

// checkEnd checks what has become of the messages.
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
