package gate

import "time"

// Probe notes that the user's probe starts, and returns its number.
func (g *Gate) Probe() (number int) {
	g.probing = true
	return g.canaries
}

// Probing reports whether the user's probe has not returned.
func (g *Gate) Probing() bool { return g.probing }

// ProbeEnded notes that the probe of that number has returned. It reports whether its result
// counts: not if a canary has started since.
func (g *Gate) ProbeEnded(number int) (counts bool) {
	g.probing = false
	return number == g.canaries
}

// MoreCanaries reports whether another canary may start while others have not ended: they leave
// half of the places to other messages.
func (g *Gate) MoreCanaries(places int) bool { return g.active*2 < max(2, places) }

// WantCanary lets the next message pass, to see how its attempt ends. The second time after the
// breaker has opened, and then every freshEvery times, that is one that has not failed, if need be
// the next that is received: those that failed may be bad messages, and the reason why it opened. If
// most messages are held, and all of them have failed, it is always one that has not, and WantCanary
// reports that the owner must hide another to make room: otherwise a producer of so many bad messages
// could keep all others waiting for ever.
func (g *Gate) WantCanary(most int) (makeRoom bool) {
	g.canaries++
	g.sinceOpened++
	g.wanted = true
	g.fresh = g.sinceOpened%freshEvery == 2
	if makeRoom = g.Untried() == 0 && g.holding >= most; makeRoom {
		g.fresh = true
	}
	return makeRoom
}

// WantsFresh reports whether the canary must be a message that has not failed.
func (g *Gate) WantsFresh() bool { return g.fresh }

// PrefersFresh reports whether the canary should be a message that has not failed, if one is held:
// the first since the breaker has opened.
func (g *Gate) PrefersFresh() bool { return g.sinceOpened == 1 }

// CanaryPatience returns how long a probe or a canary may run before another canary starts;
// handlers take as long as usual on average, zero if that is not known. While g waits for a
// message that has not failed, though it holds others, that is soon.
func (g *Gate) CanaryPatience(usual time.Duration) time.Duration {
	switch {
	case g.wanted && g.holding > 0:
		return freshPatience
	case g.probing:
		return ProbeTimeout + shortCanary
	}
	return min(longCanary, max(shortCanary, 2*usual))
}
