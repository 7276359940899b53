// Package groups decides on the order of the messages of a FIFO queue that a consumer holds: which
// message of a group is its head, which wait behind it, when the next may begin, and which are
// given back because they would overtake one that comes again.
//
// One message of a group is under way, its head. The next begins when SQS has
// acknowledged that the head is deleted or dead-lettered, so that nothing can come back
// behind it. If the head comes again instead, the messages behind it are given back. So are
// messages of the group that are received before that is done.
//
// A batch can take messages that wait behind a head along with the head. The messages that
// succeeded before the first failure are deleted ahead of the rest: the failed message, or the last
// one if none failed, is then the head. Until all messages ahead of it are gone, no message of the
// group begins. If one of those comes again, the rest of the group is given back.
//
// A [Machine] is plain data, and its methods are functions of their arguments: it has no clock and
// no timer, and does not read the messages.
package groups

import (
	"cmp"
	"slices"
	"time"
)

const (
	// MaxHold is the longest wait for which a group is held. For about this long, renewing leases
	// needs no more calls than hiding and receiving again.
	MaxHold = time.Minute
	// soon is how long messages are hidden that are given back because of another one. Messages
	// that are visible behind a hidden head cannot be received, and are not in flight.
	soon = time.Second
)

// Machine knows the groups of which messages are held. [New] makes one. Calls must not
// overlap.
type Machine[T any] struct {
	groups map[string]*group[T]
	counts Counts
}

// New returns a Machine without groups.
func New[T any]() *Machine[T] { return &Machine[T]{groups: make(map[string]*group[T])} }

// Member is a message in its group. The Member of a standard queue's message never joins; Begin
// reports true for it, and Busy, Hold and Ready do nothing.
type Member[T any] struct {
	Cargo    T      // by which the caller knows the message
	Sequence string // SQS's sequence number
	Size     int    // in bytes, for Counts

	group *group[T]
	state state
}

// group has the held messages of one message group.
type group[T any] struct {
	name   string
	head   *Member[T]   // nil: the last head is gone, and only messages ahead of it or being given back are left
	behind []*Member[T] // by sequence number
	// returning counts messages that are being given back. Until they are gone, no other
	// may join: it could overtake them.
	returning int
	ahead     int    // counts messages in state ahead
	broken    bool   // one of those comes again
	counted   Counts // the group's part of Machine.counts
}

// Counts is how many messages wait for others of their groups.
type Counts struct {
	Blocked           int // all of them, and heads that are held
	Held              int // heads that are held, and the messages behind them
	Along, AlongBytes int // the messages behind heads that are ready
}

// Answer is what follows from an input. Until applies to all messages that are given back.
type Answer[T any] struct {
	Begin  *Member[T]   // a head that may begin
	Recall *Member[T]   // a head to give back, unless it is being settled
	Return []*Member[T] // messages to give back
	Until  time.Time    // when they become visible again
}

// Counts returns how many messages wait for others of their groups.
func (m *Machine[T]) Counts() Counts { return m.counts }

// Join notes that msg, of the group with that name, was received.
func (m *Machine[T]) Join(msg *Member[T], name string, now time.Time) (a Answer[T]) {
	g := m.groups[name]
	if g == nil {
		g = &group[T]{name: name, head: msg}
		m.groups[name] = g
		msg.group = g
		msg.move(head)
		return Answer[T]{Begin: msg}
	}
	msg.group = g
	if g.returning > 0 {
		g.giveBack(msg)
		return Answer[T]{Return: []*Member[T]{msg}, Until: now.Add(soon)}
	}
	g.wait(msg)
	m.recount(g)
	return a
}

// Begin reports whether msg, a head, may begin. If not, a later Answer lets it begin.
func (m *Machine[T]) Begin(msg *Member[T]) bool {
	if g := msg.group; g != nil && g.ahead > 0 {
		m.turn(msg, stalled)
		return false
	}
	return true
}

// Busy notes that msg is no longer ready or held. It has no effect for messages that are not heads,
// and neither have Hold and Ready.
func (m *Machine[T]) Busy(msg *Member[T]) { m.turn(msg, head) }

// Hold notes that msg, a head, waits in this process until it is due.
func (m *Machine[T]) Hold(msg *Member[T]) { m.turn(msg, held) }

// Ready notes that msg, a head, waits for a batch, which may take messages behind it along.
func (m *Machine[T]) Ready(msg *Member[T]) { m.turn(msg, ready) }

// MayHold reports whether msg, a head, and the messages behind it may be held for that wait, if at
// most most messages may be held in all.
func (m *Machine[T]) MayHold(msg *Member[T], wait time.Duration, most int) bool {
	return wait <= MaxHold && m.counts.Held+1+len(msg.group.behind) <= most
}

// Behind returns the messages that wait behind msg, a head, in order. The result is valid until the
// next input.
func (m *Machine[T]) Behind(msg *Member[T]) []*Member[T] { return msg.group.behind }

// Head returns the head of the group that msg is in; nil if there is none at the moment.
func (m *Machine[T]) Head(msg *Member[T]) *Member[T] {
	if msg.group == nil {
		return nil
	}
	return msg.group.head
}

// Along notes that a batch takes the first n messages behind msg, the head, along.
func (m *Machine[T]) Along(msg *Member[T], n int) {
	g := msg.group
	for _, next := range g.behind[:n] {
		next.move(along)
	}
	g.behind = slices.Delete(g.behind, 0, n)
	m.recount(g)
}

// Done notes that msg, the first of its group in a batch or the next after one that is done, has
// succeeded, and that others of its group follow it in the batch.
func (m *Machine[T]) Done(msg *Member[T]) {
	g := msg.group
	if g.head == msg {
		g.head = nil
	}
	msg.move(ahead)
	g.ahead++
}

// Lead notes that msg is the first message of its group in a batch that is not done: it becomes the
// head.
func (m *Machine[T]) Lead(msg *Member[T]) {
	msg.group.head = msg
	m.turn(msg, head)
}

// Again notes that msg, which followed the head in a batch, waits behind it again.
func (m *Machine[T]) Again(msg *Member[T]) {
	msg.group.wait(msg)
	m.recount(msg.group)
}

// GiveBack returns the messages to give back with msg, which waits: msg and the messages behind it,
// if it waits behind the head of its group. They are hidden until that time. A head is given back
// by the caller alone: the messages behind it follow when it is gone.
func (m *Machine[T]) GiveBack(msg *Member[T], until time.Time) (a Answer[T]) {
	if msg.state == behind {
		g := msg.group
		a = g.giveBackFrom(slices.Index(g.behind, msg), until)
		m.recount(g)
	}
	return a
}

// Gone notes that msg is no longer held: done reports that it was deleted or dead-lettered;
// otherwise it comes again. The messages behind it are then hidden until that time, or briefly if
// that has passed.
func (m *Machine[T]) Gone(msg *Member[T], done bool, again, now time.Time) (a Answer[T]) {
	g, was := msg.group, msg.state
	msg.move(outside)
	briefly := now.Add(soon)
	switch was {
	case returning:
		g.returning--
	case behind: // lost: the messages behind it would overtake it
		at := slices.Index(g.behind, msg)
		g.behind = slices.Delete(g.behind, at, at+1)
		a = g.giveBackFrom(at, briefly)
	case ahead:
		g.ahead--
		g.broken = g.broken || !done
		a = g.goneAhead(briefly)
	default:
		g.head = nil
		switch {
		case done && !g.broken:
			a.Begin = g.next()
		case again.Before(now):
			a = g.giveBackFrom(0, briefly)
		default:
			a = g.giveBackFrom(0, again)
		}
	}
	m.recount(g)
	if g.head == nil && g.returning+g.ahead+len(g.behind) == 0 {
		delete(m.groups, g.name)
	}
	return a
}

// goneAhead returns what follows when a message in state ahead is gone.
func (g *group[T]) goneAhead(briefly time.Time) (a Answer[T]) {
	switch {
	case g.broken && g.head == nil:
		return g.giveBackFrom(0, briefly)
	case g.broken:
		a.Recall, a.Until = g.head, briefly // the messages behind it follow when it is gone
	case g.ahead > 0:
	case g.head == nil:
		a.Begin = g.next()
	case g.head.state == stalled:
		g.head.move(head)
		a.Begin = g.head
	}
	return a
}

// next makes the first message behind the head, which is gone, the head. It returns it if
// it may begin.
func (g *group[T]) next() *Member[T] {
	if len(g.behind) == 0 {
		return nil
	}
	g.head = g.behind[0]
	g.behind = slices.Delete(g.behind, 0, 1)
	if g.ahead > 0 {
		g.head.move(stalled)
		return nil
	}
	g.head.move(head)
	return g.head
}

// wait puts msg behind the head, and behind the messages that were sent before it.
func (g *group[T]) wait(msg *Member[T]) {
	at := len(g.behind)
	for at > 0 && Compare(msg.Sequence, g.behind[at-1].Sequence) < 0 {
		at--
	}
	g.behind = slices.Insert(g.behind, at, msg)
	msg.move(behind)
}

// giveBackFrom gives back the messages behind the head, from index at on.
func (g *group[T]) giveBackFrom(at int, until time.Time) Answer[T] {
	back := slices.Clone(g.behind[at:])
	g.behind = slices.Delete(g.behind, at, len(g.behind))
	for _, msg := range back {
		g.giveBack(msg)
	}
	return Answer[T]{Return: back, Until: until}
}

func (g *group[T]) giveBack(msg *Member[T]) {
	msg.move(returning)
	g.returning++
}

// Compare compares sequence numbers: decimal numbers too long for an integer.
func Compare(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
