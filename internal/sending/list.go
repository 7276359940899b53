package sending

// list is a list of messages, linked through them.
type list struct {
	first, last *Message
	count       int
	bytes       int
}

// push appends m.
func (l *list) push(m *Message) { l.insert(m, l.last) }

// insert puts m after another message of the list, or first if that is nil.
func (l *list) insert(m, behind *Message) {
	m.prev = behind
	if behind == nil {
		m.next, l.first = l.first, m
	} else {
		m.next, behind.next = behind.next, m
	}
	if m.next == nil {
		l.last = m
	} else {
		m.next.prev = m
	}
	l.count++
	l.bytes += m.Size
}

// remove takes m out.
func (l *list) remove(m *Message) {
	if m.prev == nil {
		l.first = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		l.last = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.next, m.prev = nil, nil
	l.count--
	l.bytes -= m.Size
}
