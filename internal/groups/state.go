package groups

import (
	"fmt"
	"slices"
)

// state is the state of a [Member] in its group. It changes only as permitted lists.
type state uint8

const (
	outside   state = iota // not held
	behind                 // waits behind the head of its group
	head                   // the head: it begins, waits for a worker, runs or settles
	held                   // the head: it waits in this process until it is due
	ready                  // the head: it waits for a batch
	stalled                // the head: it waits until the messages ahead are gone
	along                  // in a batch, behind the head
	ahead                  // done in a batch, ahead of the head, but not yet deleted
	returning              // being given back
	states
)

var stateNames = [states]string{"outside", "behind", "head", "held", "ready", "stalled", "along", "ahead", "returning"}

func (s state) String() string { return stateNames[s] }

// permitted lists the states that may follow each state.
var permitted = [states][]state{
	outside:   {behind, head, returning},
	behind:    {head, stalled, along, returning, outside},
	head:      {held, ready, stalled, ahead, outside},
	held:      {head, outside},
	ready:     {head, outside},
	stalled:   {head, outside},
	along:     {ahead, head, behind},
	ahead:     {outside},
	returning: {outside},
}

// move changes the state of msg. It panics if the move is not permitted.
func (msg *Member[T]) move(to state) {
	if !slices.Contains(permitted[msg.state], to) {
		panic(fmt.Sprintf("groups: message %s cannot move from %v to %v", msg.Sequence, msg.state, to))
	}
	msg.state = to
}

// turn changes the state of msg if it is the head of its group.
func (m *Machine[T]) turn(msg *Member[T], to state) {
	g := msg.group
	if g == nil || g.head != msg || msg.state == to {
		return
	}
	msg.move(to)
	m.recount(g)
}

// recount brings Machine.counts up to date with g. The number of heads limits Blocked: SQS returns
// no more messages of a group while those that it has returned together, at most ten, are in
// flight.
func (m *Machine[T]) recount(g *group[T]) {
	n := Counts{Blocked: len(g.behind)}
	switch {
	case g.head == nil:
	case g.head.state == held:
		n.Blocked++
		n.Held = n.Blocked
	case g.head.state == ready:
		n.Along = len(g.behind)
		for _, msg := range g.behind {
			n.AlongBytes += msg.Size
		}
	}
	m.counts.Blocked += n.Blocked - g.counted.Blocked
	m.counts.Held += n.Held - g.counted.Held
	m.counts.Along += n.Along - g.counted.Along
	m.counts.AlongBytes += n.AlongBytes - g.counted.AlongBytes
	g.counted = n
}
