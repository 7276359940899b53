// Package calls decides which entries share a batch request to SQS, and when a request
// goes out.
//
// Entries go out in the order in which they were added. A request is closed, so that
// nothing is added to it any more, when it is full, when one of its entries has waited
// long enough for others, or when [Machine.Flush] says so. It goes out as soon as there
// are fewer requests under way than permitted.
//
// A [Machine] is plain data, and its methods are functions of what they are given: it has
// no clock and no timer, and starts nothing. After each input, take requests from Next
// while it is Ready. Call Due at the Deadline.
package calls

import (
	"slices"
	"time"
)

// Settings say how a [Machine] works. None has a default.
type Settings struct {
	Entries  int           // the most entries in one request
	Bytes    int           // the most bytes in one request; zero: no limit
	Requests int           // the most requests under way
	Linger   time.Duration // the longest that an entry waits for others; zero: only for those of the same instant
	Hurried  time.Duration // the longest that it waits after Hurry
}

// Entry is one entry of a request.
type Entry[T any] struct {
	Cargo T // by which the caller knows it
	// Ends is when it will be too late for the request. The entry waits for others for a
	// tenth of the time until then at most.
	Ends time.Time

	// Size and Alone matter only if requests have a limit of bytes, since they then carry
	// messages. Other requests only name messages: no name makes a request too large, or
	// makes SQS refuse it as a whole.

	Size  int  // in bytes
	Alone bool // it shares its request with no other
}

// Machine collects entries for the requests of one action. [New] makes one. Calls must not
// overlap.
type Machine[T any] struct {
	set      Settings
	open     []T       // entries of the request that is not closed yet
	bytes    int       // of open; not counted where there is no limit
	due      time.Time // when open is to be closed, unless it is empty
	closed   [][]T     // requests that are to go out
	underWay int       // requests that have gone out and not ended
	end      time.Time // when all requests should have ended; zero: there is no hurry
}

// New returns a Machine without entries.
func New[T any](set Settings) Machine[T] { return Machine[T]{set: set} }

// Add adds an entry to the open request, or to a new one if there is no room for it.
func (m *Machine[T]) Add(now time.Time, e Entry[T]) {
	alone := false
	if m.set.Bytes > 0 {
		alone = e.Alone
		if alone || m.bytes+e.Size > m.set.Bytes {
			m.Flush()
		}
		m.bytes += e.Size
	}
	due := now.Add(m.linger(now, e.Ends))
	if len(m.open) == 0 {
		m.open = make([]T, 0, m.set.Entries)
		m.due = due
	}
	m.open = append(m.open, e.Cargo)
	if due.Before(m.due) {
		m.due = due
	}
	if alone || len(m.open) == m.set.Entries {
		m.Flush()
	}
}

// linger is how long an entry that is too late at ends waits for others.
func (m *Machine[T]) linger(now, ends time.Time) time.Duration {
	longest := min(m.set.Linger, tenth(now, ends))
	if !m.end.IsZero() {
		longest = min(longest, m.set.Hurried, tenth(now, m.end))
	}
	return longest
}

// tenth is a tenth of the time from now until end.
func tenth(now, end time.Time) time.Duration { return max(0, end.Sub(now)/10) }

// Hurry notes that all requests should have ended by end. Entries that are added from now
// on wait less for others.
func (m *Machine[T]) Hurry(end time.Time) { m.end = end }

// Flush closes the open request, if it has entries.
func (m *Machine[T]) Flush() {
	if len(m.open) == 0 {
		return
	}
	m.closed = append(m.closed, m.open)
	m.open, m.bytes = nil, 0
}

// Deadline returns when to call Due; zero: never.
func (m *Machine[T]) Deadline() time.Time {
	if len(m.open) == 0 {
		return time.Time{}
	}
	return m.due
}

// Due closes the open request if Deadline has come. The Deadline is zero then.
func (m *Machine[T]) Due(now time.Time) {
	if !now.Before(m.due) {
		m.Flush()
	}
}

// Ready reports whether a request is to go out now.
func (m *Machine[T]) Ready() bool { return len(m.closed) > 0 && m.underWay < m.set.Requests }

// Next returns the entries of the request that is to go out now, in the order in which they
// were added, and counts it as under way. It returns nil unless Ready.
func (m *Machine[T]) Next() []T {
	if !m.Ready() {
		return nil
	}
	m.underWay++
	next := m.closed[0]
	m.closed = slices.Delete(m.closed, 0, 1)
	return next
}

// Waiting returns how many requests are to go out that do not yet, and the first entry of the first
// of them.
func (m *Machine[T]) Waiting() (requests int, first T) {
	if len(m.closed) > 0 {
		first = m.closed[0][0]
	}
	return len(m.closed), first
}

// Permit changes the most requests under way.
func (m *Machine[T]) Permit(requests int) { m.set.Requests = requests }

// Ended notes that a request is no longer under way.
func (m *Machine[T]) Ended() { m.underWay-- }
