package consumer

import (
	"math"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/internal/gate"
)

// gates keep messages from their handlers: a gate exists for each breaker that has seen
// failures lately, and for each paused key. While nothing fails there is none, and gates
// cost nothing.
type gates struct {
	byKey   map[string]*Gate
	shelved int        // held messages that do not count against the room for others
	bytes   int        // of all held messages, if the consumer runs batches
	former  formerGate // the latest gate of a consumer without keys
}

// formerGate remembers the gate of a consumer without keys, which exists only while there
// are failures: it knows how usual failures are.
type formerGate struct {
	breaker breaker.Breaker
	deleted int64 // how many messages had been deleted when it was dropped
	known   bool
}

// Gate is that of one key, with the messages that it holds.
type Gate struct {
	gate.Gate
	key     string
	held    fifo         // messages that have not failed
	tried   fifo         // messages that have failed because the dependency was unavailable
	counted int          // how many of them gates.shelved counts
	look    alarms.Alarm // rings when a probe is due, or when more messages may pass
	cause   error        // the latest error that counted as unavailable

	// woken is when messages that were hidden because of an outage were woken last: what was sent away
	// before has waited enough. Zero: none were, or the outage was not over after all.
	woken time.Time
}

const (
	maxGates = 1000

	// A key's messages are hidden if there is no room to hold them, longer each time.
	minAway = time.Minute
	maxAway = 10 * time.Minute
)

// gateShut reports whether a gate keeps d from its handler.
func (c *Machine) gateShut(d *Delivery, now time.Time) bool {
	g := c.gates.byKey[d.Key]
	return g != nil && !g.Admits(now)
}

// recount brings gates.shelved up to date with g.
func (c *Machine) recount(g *Gate) {
	shelved := g.Shelved()
	c.gates.shelved += shelved - g.counted
	g.counted = shelved
}

// awaitTurn sets g's alarm while g is ramping.
func (c *Machine) awaitTurn(g *Gate, now time.Time) {
	if at := g.NextTurn(now); !at.IsZero() {
		c.alarms.Set(&g.look, at)
	}
}

// addGate makes the gate of a key.
func (c *Machine) addGate(key string) *Gate {
	if c.gates.byKey == nil {
		c.gates.byKey = make(map[string]*Gate)
	}
	b := breaker.New(c.Threshold)
	if former := &c.gates.former; !c.Keyed {
		if former.known {
			b = former.breaker
		}
		b.Succeeded(int(min(c.counts.Deleted-former.deleted, math.MaxInt32)))
	}
	g := &Gate{Gate: gate.New(b), key: key}
	g.look.Do = func(now time.Time) { c.lookAt(g, now) }
	c.gates.byKey[key] = g
	return g
}

// watch returns a gate for a key whose messages begin to fail; nil if there are maxGates
// already, and none of them can be dropped.
func (c *Machine) watch(key string) *Gate {
	if len(c.gates.byKey) >= maxGates {
		var oldest *Gate
		for _, g := range c.gates.byKey {
			idle := g.State() == breaker.Closed && g.Idle()
			if idle && (oldest == nil || g.Breaker.LastFailure().Before(oldest.Breaker.LastFailure())) {
				oldest = g
			}
		}
		if oldest == nil {
			return nil
		}
		delete(c.gates.byKey, oldest.key)
	}
	return c.addGate(key)
}

// dropIdleGate drops g if it is idle and its breaker has seen no failure lately.
func (c *Machine) dropIdleGate(g *Gate) {
	if g.Breaker.Quiet() && g.Idle() {
		c.alarms.Stop(&g.look)
		delete(c.gates.byKey, g.key)
		if !c.Keyed {
			c.gates.former = formerGate{g.Breaker, c.counts.Deleted, true}
		}
	}
}

// freshUpTo returns up to how many held messages another one may be received as the canary.
func (c *Machine) freshUpTo() int {
	all, _ := c.places()
	return 2 * all
}
