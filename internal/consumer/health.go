package consumer

import "time"

// healthState is the consumer's health, as far as receives and settlements show it.
type healthState struct {
	state       Health
	problem     string
	lastReceive time.Time
	lastSettle  time.Time
}

func (h *healthState) set(state Health, problem string) {
	h.state, h.problem = state, problem
}

// degrade notes a problem that does not keep the consumer from working.
func (h *healthState) degrade(problem string) {
	if h.state == HealthOK || h.state == HealthDegraded {
		h.set(HealthDegraded, problem)
	}
}

// failing notes that receives fail. Those of a stop are not told of.
func (h *healthState) failing(problem string) {
	h.set(HealthFailing, problem)
}

// received notes a receive that succeeded: the cause of failed receives is gone.
func (h *healthState) received(now time.Time) {
	h.lastReceive = now
	if h.state == HealthFailing {
		h.set(HealthOK, "")
	}
}

// settled notes an acknowledged settlement.
func (h *healthState) settled(now time.Time) { h.lastSettle = now }

// mended notes that the cause of a degradation is gone.
func (h *healthState) mended() {
	if h.state == HealthDegraded {
		h.set(HealthOK, "")
	}
}

// Degrade notes a problem that does not keep the consumer from working.
func (c *Machine) Degrade(problem string) { c.health.degrade(problem) }
