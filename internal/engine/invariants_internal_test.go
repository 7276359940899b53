package engine

import "fmt"

// Invariants says which of the queue's own bookkeeping contradicts itself. The
// comparison with the model sees only what can be observed, perhaps much later.
func Invariants(q *Queue) error {
	var live, hidden, inFlight, grouped int
	for slot := uint32(1); slot <= q.messages.used; slot++ {
		m := q.messages.lookup(slot)
		if m == nil {
			if q.ages.has(slot) || q.hidden.has(slot) {
				return fmt.Errorf("free slot %d is in a heap", slot)
			}
			continue
		}
		live++
		if !q.ages.has(slot) {
			return fmt.Errorf("slot %d has no age", slot)
		}
		if q.hidden.has(slot) {
			hidden++
			if m.received != never {
				inFlight++
			}
		}
		if m.group != 0 {
			grouped++
		}
	}
	free, err := walk(&q.messages, q.messages.free, func(uint32) error { return nil })
	switch {
	case err != nil:
		return fmt.Errorf("free slots: %w", err)
	case live != q.messages.live || free+live != int(q.messages.used) && live > 0:
		return fmt.Errorf("%d live (counted as %d) and %d free of %d slots", live, q.messages.live, free, q.messages.used)
	case q.ages.len() != live || q.hidden.len() != hidden || q.inFlight != inFlight:
		return fmt.Errorf("%d ages, %d hidden, %d in flight; want %d, %d, %d", q.ages.len(), q.hidden.len(), q.inFlight, live, hidden, inFlight)
	}
	visible, err := walk(&q.messages, q.visible, func(slot uint32) error {
		if q.messages.lookup(slot) == nil || q.hidden.has(slot) {
			return fmt.Errorf("slot %d is free or hidden", slot)
		}
		return nil
	})
	if err != nil || !q.settings.FIFO && visible != live-hidden {
		return fmt.Errorf("%d visible, want %d, %v", visible, live-hidden, err)
	}
	return groupInvariants(q, grouped)
}

func groupInvariants(q *Queue, grouped int) error {
	ready := 0
	for name, i := range q.groups.index {
		g := q.groups.at(i)
		grouped -= g.size
		sequence := uint64(0)
		n, err := walk(&q.messages, g.messages, func(slot uint32) error {
			m := q.messages.lookup(slot)
			if m == nil || m.group != i || m.sequence <= sequence {
				return fmt.Errorf("slot %d out of order or not of the group", slot)
			}
			sequence = m.sequence
			return nil
		})
		first := g.messages.first
		switch {
		case err != nil || g.name != name || q.settings.FIFO && n != g.size:
			return fmt.Errorf("group %q is named %q and has %d of %d messages: %v", name, g.name, n, g.size, err)
		case g.ready != (first != 0 && !q.hidden.has(first)):
			return fmt.Errorf("group %q: ready is %v", name, g.ready)
		case g.ready:
			ready++
		}
	}
	n, err := walk(&q.groups, q.groups.ready, func(i uint32) error {
		if !q.groups.at(i).ready {
			return fmt.Errorf("group %d is not ready", i)
		}
		return nil
	})
	if err != nil || n != ready || grouped != 0 {
		return fmt.Errorf("%d groups in the list of %d ready, %d messages without their group: %v", n, ready, grouped, err)
	}
	return nil
}

// walk follows a list and checks its links.
func walk(n nodes, l list, visit func(uint32) error) (length int, err error) {
	previous := uint32(0)
	for i := l.first; i != 0; i = n.links(i).next {
		if n.links(i).previous != previous {
			return length, fmt.Errorf("node %d has %d before it, want %d", i, n.links(i).previous, previous)
		}
		if err := visit(i); err != nil {
			return length, err
		}
		previous = i
		length++
		if length > l.length {
			return length, fmt.Errorf("longer than %d", l.length)
		}
	}
	if l.last != previous || length != l.length {
		return length, fmt.Errorf("ends at %d after %d, want %d after %d", previous, length, l.last, l.length)
	}
	return length, nil
}
