package consumer

import (
	"fmt"
	"slices"
)

// state is where a delivery is between its receipt and the acknowledgement of its
// settlement. It changes by [Machine.move] alone.
type state uint8

const (
	// Leased, not started.
	stateWaiting   state = iota // just received, or behind the head of its FIFO group
	stateScheduled              // until it is due
	stateShelved                // behind a gate: an open breaker, or a paused key
	stateReady                  // for a worker
	stateAlone                  // until no other message runs, to run alone

	stateRunning // in its handler

	// Finished, or settled without a run: its settlement is not yet acknowledged.
	stateFinished // its heartbeat is under way: settled when that has ended
	stateSettling // between two requests: settled after a backoff
	// In an outbox, or in a request:
	stateHiding     // its visibility timeout is being changed
	stateCopying    // its dead letter is being sent
	stateRequeueing // the copy that replaces it is being sent
	stateDeleting   // it is being deleted

	stateGone // no longer held
	states    = iota
)

// permitted lists the states that may follow each state.
var permitted = [states][]state{
	stateWaiting:    {stateScheduled, stateShelved, stateReady, stateAlone, stateRunning, stateSettling, stateGone},
	stateScheduled:  {stateWaiting},
	stateShelved:    {stateWaiting},
	stateReady:      {stateWaiting, stateRunning},
	stateAlone:      {stateWaiting, stateRunning},
	stateRunning:    {stateWaiting, stateSettling, stateGone},
	stateFinished:   {stateSettling, stateGone},
	stateSettling:   {stateFinished, stateHiding, stateCopying, stateRequeueing, stateDeleting, stateWaiting, stateGone},
	stateHiding:     {stateSettling},
	stateCopying:    {stateSettling},
	stateRequeueing: {stateSettling},
	stateDeleting:   {stateSettling},
}

var stateNames = [states]string{
	"waiting", "scheduled", "shelved", "ready", "alone", "running",
	"finished", "settling", "hiding", "copying", "requeueing", "deleting", "gone",
}

func (s state) String() string { return stateNames[s] }

// waits reports whether the delivery is leased and not started.
func (s state) waits() bool { return s <= stateAlone }

// settles reports whether the delivery is finished, and its settlement not yet
// acknowledged.
func (s state) settles() bool { return stateFinished <= s && s <= stateDeleting }

// requested reports whether a request settles the delivery, or an outbox holds it for one.
func (s state) requested() bool { return stateHiding <= s && s <= stateDeleting }

// move changes d's state, and the counts with it. It panics if the move is not permitted.
func (c *Machine) move(d *Delivery, to state) {
	from := d.state
	if !slices.Contains(permitted[from], to) {
		panic(fmt.Sprintf("reprise: message %s cannot move from %v to %v", d.ID, from, to))
	}
	if from.settles() && !to.settles() {
		c.unstick(d)
	}
	if n := c.countOf(from); n != nil {
		*n--
	}
	if n := c.countOf(to); n != nil {
		*n++
	}
	d.state = to
}

// countOf returns the count of the deliveries that are in a state like s; nil if they are not
// counted.
func (c *Machine) countOf(s state) *int {
	switch {
	case s.waits():
		return &c.waiting
	case s == stateRunning:
		return &c.running
	case s.settles():
		return &c.settling
	}
	return nil
}

// superseded reports whether d has been received again since the latest request about it
// took its receipt handle.
func (d *Delivery) superseded() bool { return d.named != d.Handle }

// busy reports whether a request about d is under way, or about to go out: nothing else
// may be sent about it then.
func (d *Delivery) busy() bool { return d.state.requested() || d.lease.Renewing() }
