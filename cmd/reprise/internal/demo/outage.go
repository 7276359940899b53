package demo

import (
	"time"

	"github.com/reprise-sqs/reprise"
)

// cost is what the outage cost, by the records of the service and the consumer.
type cost struct {
	length   time.Duration // of the outage
	opened   bool          // the breaker opened during the outage
	openers  int           // attempts that failed until the breaker opened, and count
	others   int           // runs that ended in another way until then
	canaries int           // runs that began after that, while the service was down
	held     int           // messages held at once, at most
	attempts int           // that count, although the service was down: 0 without an outage
}

// cost compares the records.
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
		case c.opened && e.ended.After(opened) && !(e.unavailable && e.counted):
			// The run was under way when the breaker opened. One that counts all the same helped to open it:
			// on a busy machine the record of its end may be later than that of the breaker.
		case !e.unavailable:
			c.others++
		case e.counted:
			c.openers++
		}
	}
	for i, r := range b.records {
		// A request counts as an attempt if the service was up and it was not a canary. No
		// request while the service was down should count.
		c.attempts += max(0, r.number-ev.service[i].served)
	}
	return c
}

// early counts the waits that ended before they should. Messages that were hidden because the
// service was unavailable are woken when it answers again, and do not count here.
func (b *consumerRecords) tooEarly() int {
	n := 0
	for _, w := range b.early {
		if !w.wakeable || !b.recovered(w.from, w.ended) {
			n++
		}
	}
	return n
}

// recovered reports whether the breaker found in that time that the service was back.
func (b *consumerRecords) recovered(from, until time.Time) bool {
	for _, e := range b.breaker {
		back := e.State == reprise.BreakerRamping || e.State == reprise.BreakerClosed
		if back && !e.At.Before(from) && !e.At.After(until) {
			return true
		}
	}
	return false
}
