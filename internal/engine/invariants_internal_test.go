package engine

import "fmt"

// Invariants says which of the queue's own bookkeeping contradicts itself. The
// comparison with the model sees only what can be observed, perhaps much later.
func Invariants(q *Queue) error {
	var live, hidden, inFlight, grouped, visibleGrouped int
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
			if !q.hidden.has(slot) {
				visibleGrouped++
			}
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
		if m := q.messages.lookup(slot); m == nil || m.group != 0 || q.hidden.has(slot) {
			return fmt.Errorf("slot %d is free, hidden or of a group", slot)
		}
		return nil
	})
	if want := live - hidden - visibleGrouped; err != nil || !q.settings.FIFO && visible != want {
		return fmt.Errorf("%d visible, want %d, %v", visible, want, err)
	}
	if !q.settings.FIFO {
		return tenantInvariants(q, grouped, visibleGrouped)
	}
	return groupInvariants(q, grouped)
}

// tenantInvariants checks the groups of a standard queue.
func tenantInvariants(q *Queue, grouped, visible int) error {
	var quiet, noisy int
	inFlight := make(map[uint32]int)
	for slot := uint32(1); slot <= q.messages.used; slot++ {
		if m := q.messages.lookup(slot); m != nil && q.leased(slot) {
			inFlight[m.group]++
		}
	}
	for name, i := range q.groups.index {
		g := q.groups.at(i)
		n, err := walk(&q.messages, g.messages, func(slot uint32) error {
			if m := q.messages.lookup(slot); m == nil || m.group != i || q.hidden.has(slot) {
				return fmt.Errorf("slot %d is free, hidden or not of the group", slot)
			}
			return nil
		})
		grouped -= g.size
		visible -= n
		waits := n > 0
		switch {
		case err != nil || g.name != name || g.inFlight != inFlight[i]:
			return fmt.Errorf("group %q is named %q and has %d in flight, want %d: %v", name, g.name, g.inFlight, inFlight[i], err)
		case q.groups.quiet.has(i) != (waits && !g.noisy) || q.groups.noisy.has(i) != g.noisy || g.noisy && !waits:
			return fmt.Errorf("group %q with %d visible: noisy is %v, among the quiet %v, among the noisy %v",
				name, n, g.noisy, q.groups.quiet.has(i), q.groups.noisy.has(i))
		case q.groups.quiet.has(i) && q.groups.quiet.key(i) != q.turn(g.messages.first):
			return fmt.Errorf("quiet group %q has another turn than its first message", name)
		case q.groups.noisy.has(i) && q.groups.noisy.key(i) != int64(g.inFlight):
			return fmt.Errorf("noisy group %q stands at %d, has %d in flight", name, q.groups.noisy.key(i), g.inFlight)
		case g.noisy && (!q.groups.byArrival.has(i) || q.groups.byArrival.key(i) != g.newestArrival):
			return fmt.Errorf("noisy group %q was heard at %d and is not kept so", name, g.newestArrival)
		}
		if g.noisy {
			noisy++
		} else if waits {
			quiet++
		}
	}
	if q.groups.noisy.len() != noisy || q.groups.byArrival.len() != noisy || q.groups.quiet.len() != quiet || grouped != 0 || visible != 0 {
		return fmt.Errorf("%d and %d noisy, want %d; %d quiet, want %d; %d messages and %d visible without their group",
			q.groups.noisy.len(), q.groups.byArrival.len(), noisy, q.groups.quiet.len(), quiet, grouped, visible)
	}
	return nil
}

// groupInvariants checks the groups of a FIFO queue.
func groupInvariants(q *Queue, grouped int) error {
	ready := 0
	for name, i := range q.groups.index {
		g := q.groups.at(i)
		grouped -= g.size
		sequence, hidden := uint64(0), 0
		n, err := walk(&q.messages, g.messages, func(slot uint32) error {
			m := q.messages.lookup(slot)
			if q.hidden.has(slot) {
				hidden++
			}
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
		case q.settings.FIFO && g.hidden != hidden:
			return fmt.Errorf("group %q counts %d hidden messages and has %d", name, g.hidden, hidden)
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
