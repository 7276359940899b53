// Package alarms keeps many times with one timer: a program with many waits needs only one timer of
// the system, for the earliest of them.
//
// It is plain data, and its methods are functions of their arguments: no clock, no timer and no
// goroutine of its own.
package alarms

import "time"

// Clock holds alarms. The zero Clock holds none.
type Clock struct {
	heap []*Alarm // by time, then in the order in which they were set
	set  uint64   // how many were set so far
}

// Alarm is a time, and a function to call then. The zero Alarm is not set. A set Alarm must not be
// copied, and belongs to one Clock.
type Alarm struct {
	// Do is called by [Clock.Ring] with Ring's time. It may set and stop alarms, including its own.
	Do func(now time.Time)

	at    time.Time
	order uint64
	place int // in the heap, from 1; 0: it is not set
}

// At is when a rings; zero if it is not set.
func (a *Alarm) At() time.Time { return a.at }

// Set makes a ring at the given time, instead of an earlier setting.
func (c *Clock) Set(a *Alarm, at time.Time) {
	c.set++
	a.at, a.order = at, c.set
	if a.place == 0 {
		c.heap = append(c.heap, a)
		a.place = len(c.heap)
	}
	c.up(a.place)
	c.down(a.place)
}

// Sooner makes a ring at the given time, unless it is set to an earlier one.
func (c *Clock) Sooner(a *Alarm, at time.Time) {
	if a.place == 0 || at.Before(a.at) {
		c.Set(a, at)
	}
}

// After sets a new alarm.
func (c *Clock) After(at time.Time, do func(now time.Time)) { c.Set(&Alarm{Do: do}, at) }

// Stop unsets a, if it is set.
func (c *Clock) Stop(a *Alarm) {
	place, last := a.place, len(c.heap)
	if place == 0 {
		return
	}
	c.swap(place, last)
	c.heap[last-1] = nil
	c.heap = c.heap[:last-1]
	a.at, a.place = time.Time{}, 0
	if place < last {
		c.up(place)
		c.down(place)
	}
}

// Next is when the earliest alarm rings; zero if none is set.
func (c *Clock) Next() time.Time {
	if len(c.heap) == 0 {
		return time.Time{}
	}
	return c.heap[0].at
}

// Ring stops every alarm that is due and calls its Do, the earliest first, those of
// one time in the order in which they were set. An alarm that is set meanwhile, and is due, rings
// too.
func (c *Clock) Ring(now time.Time) {
	for len(c.heap) > 0 && !c.heap[0].at.After(now) {
		a := c.heap[0]
		c.Stop(a)
		a.Do(now)
	}
}

// The heap is binary; places count from 1, so that those below i are 2i and 2i+1.

func (c *Clock) up(i int) {
	for i > 1 && c.earlier(i, i/2) {
		c.swap(i, i/2)
		i /= 2
	}
}

func (c *Clock) down(i int) {
	for {
		least := i
		for below := 2 * i; below <= min(2*i+1, len(c.heap)); below++ {
			if c.earlier(below, least) {
				least = below
			}
		}
		if least == i {
			return
		}
		c.swap(i, least)
		i = least
	}
}

// earlier reports whether the alarm in place i rings before that in place j.
func (c *Clock) earlier(i, j int) bool {
	a, b := c.heap[i-1], c.heap[j-1]
	if a.at.Equal(b.at) {
		return a.order < b.order
	}
	return a.at.Before(b.at)
}

func (c *Clock) swap(i, j int) {
	a, b := c.heap[i-1], c.heap[j-1]
	c.heap[i-1], c.heap[j-1] = b, a
	a.place, b.place = j, i
}
