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
	stateScheduled              // for its time
	stateShelved                // behind a gate: an open breaker, or a paused key
	stateReady                  // for a worker
	stateAlone                  // until nothing else runs, to run alone

	stateRunning // in its handler

	// Finished, or not to be run: its settlement is not yet acknowledged.
	stateFinished   // its heartbeat is under way: settled when that has ended
	stateSettling   // between two requests: settled after a backoff
	stateHiding     // its visibility is to be changed: in the outbox, or in a request
	stateCopying    // its dead letter is to be sent
	stateRequeueing // the copy that takes its place is to be sent
	stateDeleting   // it is to be deleted

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

// move brings d into another state, and keeps the counts right. It panics if the move
// is not permitted.
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

// countOf is the number of the deliveries that are in a state like s; nil if they are
// not counted.
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
