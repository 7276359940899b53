package consumer

import (
	"slices"
	"testing"
)

// TestStates moves a delivery from every state into every other: what is permitted
// keeps the counts, and what is not panics.
func TestStates(t *testing.T) {
	for from := range state(states) {
		for to := range state(states) {
			c, d := new(Machine), &Delivery{state: from}
			if n := c.countOf(from); n != nil {
				*n = 1
			}
			moved := moves(c, d, to)
			if want := slices.Contains(permitted[from], to); moved != want {
				t.Errorf("from %v to %v: moved %t, want %t", from, to, moved, want)
			}
			in := from
			if moved {
				in = to
			}
			waiting, running, settling := 0, 0, 0
			switch {
			case in <= stateAlone:
				waiting = 1
			case in == stateRunning:
				running = 1
			case in != stateGone:
				settling = 1
			}
			if d.state != in || c.waiting != waiting || c.running != running || c.settling != settling {
				t.Errorf("from %v to %v: it is in %v, and %d wait, %d run, %d settle", from, to, d.state, c.waiting, c.running, c.settling)
			}
		}
	}
}

// moves reports whether d moves.
func moves(c *Machine, d *Delivery, to state) (moved bool) {
	defer func() { moved = recover() == nil }()
	c.move(d, to)
	return
}

// TestEveryStateIsLeftAndEntered finds states that nothing enters or leaves.
func TestEveryStateIsLeftAndEntered(t *testing.T) {
	for s := range state(states) {
		entered := s == stateWaiting // on receipt
		for _, to := range permitted {
			entered = entered || slices.Contains(to, s)
		}
		if left := len(permitted[s]) > 0; !entered || left == (s == stateGone) {
			t.Errorf("%v: entered %t, left %t", s, entered, left)
		}
	}
}
