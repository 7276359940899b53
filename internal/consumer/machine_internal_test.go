package consumer

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/plan"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// leased has the settings of a consumer whose leases last a minute.
var leased = plan.Settings{Lease: time.Minute}

// at begins a section of c at noon or so long after it.
func at(c *Machine, later time.Duration) *Machine {
	c.Begin(noon.Add(later), 0)
	return c
}

// received has c receive the messages now.
func received(c *Machine, messages ...*Delivery) {
	p := c.addPoller(false)
	c.reserved += len(messages)
	c.Took(p, len(messages), messages, c.now, c.now, 0)
}

// effects ends the section, and returns those of its effects that are of the kind.
func effects(c *Machine, kind EffectKind) (found []Effect) {
	c.End()
	c.Effects(func(e Effect) { found = append(found, e) })
	return slices.DeleteFunc(found, func(e Effect) bool { return e.Kind != kind })
}
