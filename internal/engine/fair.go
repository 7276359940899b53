package engine

import "time"

// A standard queue is fair among its message groups, the tenants: while many of the messages in
// flight belong to one of them, the messages of the others go first.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
//
// A tenant is noisy from the moment when at least 30 of its messages, and more than a tenth
// of all, are in flight, until none of its messages waits or no message has been sent to it for
// five minutes. Quiet tenants are served before noisy ones, and noisy ones with fewer messages in
// flight before those with more. A message without a group is a tenant of its own, and always
// quiet. AWS also weighs the processing time of messages, by a rule that it does not publish; the
// engine does not.
//
// A change costs the logarithm of the number of groups, never a look at the
// backlog: each group keeps its visible messages in a list of its own, so that a group which
// becomes noisy moves as a whole.
const (
	noisyCount = 30
	noisyPart  = 10 // noisy: more than one in noisyPart
	noisyFor   = int64(5 * time.Minute)
)

// addVisible adds a visible message of a standard queue at the end of its list.
func (q *Queue) addVisible(slot uint32) {
	m := q.messages.at(slot)
	if m.group == 0 {
		q.visible.append(&q.messages, slot)
		return
	}
	waiting := &q.groups.at(m.group).messages
	waiting.append(&q.messages, slot)
	if waiting.length == 1 {
		q.updateNoisy(m.group)
	}
}

// removeVisible removes a message of a standard queue from its list of visible ones.
func (q *Queue) removeVisible(slot uint32) {
	m := q.messages.at(slot)
	if m.group == 0 {
		q.visible.remove(&q.messages, slot)
		return
	}
	q.groups.at(m.group).messages.remove(&q.messages, slot)
	q.updateRank(m.group)
}

// next returns the message of a standard queue that a receive gives first, or 0.
func (q *Queue) next() uint32 {
	slot := q.visible.first
	if quiet, ok := q.groups.quiet.first(); ok {
		if first := q.groups.at(quiet.item).messages.first; slot == 0 || q.before(first, slot) {
			return first
		}
	}
	if tenant, ok := q.groups.noisy.first(); ok && slot == 0 {
		return q.groups.at(tenant.item).messages.first
	}
	return slot
}

func (q *Queue) before(a, b uint32) bool {
	if turnA, turnB := q.turn(a), q.turn(b); turnA != turnB {
		return turnA < turnB
	}
	return q.messages.at(a).sequence < q.messages.at(b).sequence
}

// turn orders the first messages of a standard queue's lists: by the time when they were
// sent or last received. The time when they became visible would be more exact, but would cost
// eight more bytes for every waiting message.
func (q *Queue) turn(slot uint32) int64 {
	return max(q.ages.key(slot), q.messages.at(slot).received)
}

// countInFlight changes the number of messages that a tenant has in flight.
func (q *Queue) countInFlight(group uint32, change int) {
	if group == 0 || q.settings.FIFO {
		return
	}
	q.groups.at(group).inFlight += change
	if change > 0 {
		q.updateNoisy(group)
	} else {
		q.updateRank(group)
	}
}

// updateNoisy marks a tenant as noisy if it has become so.
func (q *Queue) updateNoisy(group uint32) {
	g := q.groups.at(group)
	if !g.noisy && g.messages.length > 0 && q.engine.now-g.newestArrival < noisyFor &&
		g.inFlight >= noisyCount && g.inFlight*noisyPart > q.inFlight {
		g.noisy = true
		q.groups.byArrival.set(group, g.newestArrival)
		q.groups.quiet.remove(group)
	}
	q.updateRank(group)
}

// updateRank puts a tenant in its place among those that have visible messages.
func (q *Queue) updateRank(group uint32) {
	g := q.groups.at(group)
	switch {
	case g.messages.length == 0 && g.noisy:
		q.groups.markQuiet(group)
	case g.messages.length == 0:
		q.groups.quiet.remove(group)
	case g.noisy:
		q.groups.noisy.set(group, int64(g.inFlight))
	default:
		q.groups.quiet.set(group, q.turn(g.messages.first))
	}
}

// expireNoisy marks up to limit noisy tenants as quiet for whom no message has come in five
// minutes.
func (q *Queue) expireNoisy(t int64, limit int) {
	for range limit {
		oldest, ok := q.groups.byArrival.first()
		if !ok || t-oldest.key < noisyFor {
			return
		}
		q.groups.markQuiet(oldest.item)
		q.updateRank(oldest.item)
	}
}

// markQuiet makes a noisy group quiet.
func (g *groups) markQuiet(i uint32) {
	g.slots[i].noisy = false
	g.byArrival.remove(i)
	g.noisy.remove(i)
}

// noteArrival records that a message came for the group.
func (g *groups) noteArrival(i uint32, t int64) {
	this := &g.slots[i]
	this.newestArrival = t
	if this.noisy {
		g.byArrival.set(i, t)
	}
}
