package demo

import (
	"time"

	"github.com/reprise-sqs/reprise"
)

// cost is what the outage cost, by the books of the service and the consumer.
type cost struct {
	length   time.Duration // of the outage
	opened   bool          // the breaker has opened during the outage
	openers  int           // attempts that failed until the breaker opened
	others   int           // runs that ended in another way until then
	canaries int           // runs that began after that, while the service was down
	held     int           // messages held at once, at most
	attempts int           // that count, although the service was down: 0 without an outage
}

// cost compares the books.
func (ev *evidence) cost() cost {
	var c cost
	b := &ev.consumer
	if b.down.IsZero() {
		return c
	}
	opened, back := time.Time{}, b.up
	for _, e := range b.breaker {
		c.held = max(c.held, e.Held)
		if e.State == reprise.BreakerOpen && opened.IsZero() && !e.At.Before(b.down) {
			opened = e.At
		}
	}
	c.opened = !opened.IsZero()
	if !back.IsZero() {
		c.length = back.Sub(b.down)
	}
	for _, e := range b.ends {
		during := back.IsZero() || e.started.Before(back)
		switch {
		case !during:
		case c.opened && e.started.After(opened):
			c.canaries++
		case c.opened && e.ended.After(opened):
			// It was under way when the breaker opened.
		case !e.unavailable:
			c.others++
		case e.counted:
			c.openers++
		}
	}
	for i, r := range b.records {
		// A request that the service got while it was up is an attempt, unless it was
		// a canary; one that it got while it was down should be none.
		c.attempts += max(0, r.number-ev.service[i].served)
	}
	return c
}

// early counts the waits that ended before they should. What was hidden for want of
// the service is woken when the service answers again, as it should be.
func (b *books) tooEarly() int {
	n := 0
	for _, w := range b.early {
		if !w.wakeable || !b.recovered(w.from, w.ended) {
			n++
		}
	}
	return n
}

// recovered reports whether the breaker has found the service back in that time.
func (b *books) recovered(from, until time.Time) bool {
	for _, e := range b.breaker {
		back := e.State == reprise.BreakerRamping || e.State == reprise.BreakerClosed
		if back && !e.At.Before(from) && !e.At.After(until) {
			return true
		}
	}
	return false
}
