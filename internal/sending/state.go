package sending

import (
	"fmt"
	"slices"
	"time"
)

// State is the state of a [Message]. It changes only as permitted lists.
type State uint8

// The states.
const (
	Unknown   State = iota // not handed over
	Outside                // waits for room
	Behind                 // FIFO queues: behind the first of its group
	Ready                  // to be sent with the next request
	Requested              // in a request
	Deserted               // in a request, but its caller has gone
	Backoff                // waits to be sent again
	Telling                // answered, but its caller has not been told yet
	Gone
	states
)

var stateNames = [states]string{"unknown", "outside", "behind", "ready", "requested", "deserted", "backoff", "telling", "gone"}

func (s State) String() string { return stateNames[s] }

// hasRoom reports whether a message in state s takes up room.
func (s State) hasRoom() bool { return s >= Behind && s <= Backoff }

// permitted lists the states that may follow each state.
var permitted = [states][]State{
	Unknown:   {Outside, Behind, Ready},
	Outside:   {Behind, Ready, Gone},
	Behind:    {Ready, Telling, Gone},
	Ready:     {Requested, Telling, Gone},
	Requested: {Ready, Backoff, Deserted, Telling, Gone},
	Deserted:  {Gone},
	Backoff:   {Ready, Telling, Gone},
	Telling:   {Gone},
}

// move changes the state of a message, and updates the lists and counts. It panics if the move is
// not permitted.
func (m *Machine) move(msg *Message, to State) {
	from := msg.state
	if !slices.Contains(permitted[from], to) {
		panic(fmt.Sprintf("sending: message %d cannot move from %v to %v", msg.number, from, to))
	}
	if l := m.list(msg); l != nil {
		l.remove(msg)
	}
	if from == Ready && m.ready.first == nil {
		m.flushAt = time.Time{}
	}
	if from != Unknown {
		m.counts[from]--
	}
	switch {
	case to.hasRoom() && !from.hasRoom():
		m.bytes += msg.Size
	case from.hasRoom() && !to.hasRoom():
		m.bytes -= msg.Size
	}
	msg.state = to
	switch to {
	case Gone:
		m.passed(msg)
		return
	case Backoff:
		behind := m.backoff.last
		for behind != nil && behind.at.After(msg.at) {
			behind = behind.prev
		}
		m.backoff.insert(msg, behind)
	case Ready:
		m.ready.push(msg)
		m.linger(msg)
	default:
		if l := m.list(msg); l != nil {
			l.push(msg)
		}
	}
	m.counts[to]++
}

// list returns the list of a message's state; nil if it has none.
func (m *Machine) list(msg *Message) *list {
	switch msg.state {
	case Outside:
		return &m.outside
	case Behind:
		return msg.behind
	case Ready:
		return &m.ready
	case Backoff:
		return &m.backoff
	}
	return nil
}

// linger makes a ready message be sent when it has lingered, or at once if a Flush waits for it. A
// message that was in backoff or in a request does not linger again.
func (m *Machine) linger(msg *Message) {
	by := msg.at
	if msg.tries == 0 && !slices.ContainsFunc(m.flushes, func(f *Flush) bool { return msg.number <= f.upTo }) {
		by = by.Add(m.set.Linger)
	}
	if m.flushAt.IsZero() || by.Before(m.flushAt) {
		m.flushAt = by
	}
}

// passed counts an answered message for the Flushes that wait for it.
func (m *Machine) passed(msg *Message) {
	m.flushes = slices.DeleteFunc(m.flushes, func(f *Flush) bool {
		if msg.number > f.upTo {
			return false
		}
		if f.left--; f.left > 0 {
			return false
		}
		m.effects = append(m.effects, Effect{Kind: Flushed, Flush: f})
		return true
	})
}

// answer removes a message, and makes the next of its group the first.
func (m *Machine) answer(msg *Message, kind Kind) {
	from, to := msg.state, Gone
	if msg.Tell && from != Outside && from != Deserted {
		to = Telling
	}
	if from != Deserted {
		m.effect(kind, msg)
	}
	m.move(msg, to)
	if msg.behind == nil || from == Behind {
		return
	}
	if next := msg.behind.first; next != nil {
		m.move(next, Ready)
	} else {
		delete(m.groups, msg.Group)
	}
}

// follow carries out what an input makes possible: messages whose backoff has passed become ready,
// and messages that wait for room are admitted.
func (m *Machine) follow(now time.Time) {
	for msg := m.backoff.first; msg != nil && !msg.at.After(now) && !m.stopped; msg = m.backoff.first {
		m.move(msg, Ready)
	}
	for msg := m.outside.first; msg != nil && m.hasRoom(msg); msg = m.outside.first {
		m.effect(Admitted, msg)
		m.admit(msg)
	}
}

// admit gives a message its room.
func (m *Machine) admit(msg *Message) {
	if !m.set.FIFO {
		m.move(msg, Ready)
		return
	}
	if msg.behind = m.groups[msg.Group]; msg.behind != nil {
		m.move(msg, Behind)
		return
	}
	msg.behind = new(list)
	m.groups[msg.Group] = msg.behind
	m.move(msg, Ready)
}

func (m *Machine) hasRoom(msg *Message) bool {
	return (m.set.MaxWaiting < 0 || m.inside() < m.set.MaxWaiting) &&
		(m.set.MaxBytes < 0 || m.bytes+msg.Size <= m.set.MaxBytes)
}

// inside returns how many messages have room.
func (m *Machine) inside() int {
	return m.counts[Behind] + m.counts[Ready] + m.counts[Requested] + m.counts[Deserted] + m.counts[Backoff]
}

func (m *Machine) effect(kind Kind, msg *Message) {
	m.effects = append(m.effects, Effect{Kind: kind, From: msg.state, Message: msg})
}
