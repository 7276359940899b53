package reprise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	// freshEvery: of so many canaries one is a message that has not failed.
	freshEvery = 4
	// freshPatience is how long that is waited for while others are held.
	freshPatience = 2 * time.Second
	// A canary may run for twice as long as handlers take, within these bounds,
	// before there is another: one that hangs may not hide the end of an outage.
	shortCanary = 15 * time.Second
	longCanary  = 2 * time.Minute
	// whilePaused is how often a paused consumer looks whether it can probe.
	whilePaused = 5 * time.Second
	// probeTimeout ends the context of Config.Outage.Probe.
	probeTimeout = 30 * time.Second

	// holdAtMost is how long a message that has not started is held. After twelve
	// hours SQS would give it to somebody else.
	holdAtMost = retry.MaxVisibility - 15*time.Minute
)

// turn changes g's breaker, and does what follows from it. What had been let through
// counts no longer: it may hang for hours.
func (c *core) turn(g *gate, now time.Time, change func(*breaker.Breaker)) {
	previous, since := g.state(), g.breaker.Since()
	change(&g.breaker)
	g.active, g.wanted, g.fresh = 0, false, false
	g.waitFor, g.rested = time.Time{}, time.Time{}
	for _, d := range c.held {
		if d.gate == g {
			d.gate = nil
			if d.state == stateReady && c.batches != nil {
				c.groups.Ready(&d.member)
			}
		}
	}
	state := g.state()
	if state != BreakerClosed {
		since = g.breaker.Since()
	}
	c.gateTurned(g, now)
	if state != previous {
		c.announce(OutageEvent{Key: g.key, State: state, Previous: previous, At: now, Since: since, NextProbe: g.breaker.NextProbe(), Held: g.holding, Err: g.cause})
	}
	switch {
	case state == BreakerOpen && previous == BreakerRamping:
		c.stopWaking(g.key)
	case state == BreakerClosed:
		c.wakeHidden(g, now)
	}
}

// wakeHidden wakes the messages that were hidden for want of what g stands for. Not
// before that is found to bear some load: waking uses up a receive of each.
func (c *core) wakeHidden(g *gate, now time.Time) {
	c.wake(func(r *memory.Note) bool { return r.Unavailable && !r.Asked && r.Key == g.key }, now)
}

// gateTurned brings the messages of g's key, and what else depends on g, into line with
// its state.
func (c *core) gateTurned(g *gate, now time.Time) {
	c.recount(g)
	switch {
	case g.state() == BreakerOpen && !g.paused:
		c.alarms.Set(&g.look, g.breaker.NextProbe())
	case g.state() == BreakerHalfOpen && !g.paused:
		c.alarms.Set(&g.look, now.Add(c.canaryPatience(g)))
	default:
		c.alarms.Stop(&g.look)
	}
	if g.paused || g.state() == BreakerOpen || g.state() == BreakerHalfOpen {
		for d := c.ready.first; d != nil; {
			next := d.next
			if d.key == g.key {
				c.delist(d, stateWaiting)
				c.leaveGate(d)
				c.shelve(g, d, now)
			}
			d = next
		}
	} else {
		c.letThrough(g, now)
	}
	c.tidy(g)
}

// lookAt is called by g's alarm.
func (c *core) lookAt(g *gate, now time.Time) {
	if c.closed || c.draining || c.gates.byKey[g.key] != g || g.paused {
		return
	}
	byProbe := c.cfg.Outage.Probe != nil && !g.probing
	if c.dials.paused && !byProbe {
		c.alarms.Set(&g.look, now.Add(whilePaused)) // no canary could run
		return
	}
	switch g.state() {
	case BreakerOpen:
		g.probing = g.probing || byProbe
		c.turn(g, now, (*breaker.Breaker).Probe)
		if byProbe {
			c.want(effect{kind: effectProbe, gate: g, n: g.canaries, started: now})
			return
		}
		c.sendCanary(g, now)
	case BreakerHalfOpen:
		if g.probing && g.active == 0 {
			c.complainLater("probe", "Config.Outage.Probe has not returned, long after its context ended; messages are run in its place", "key", g.key)
		}
		// The probe or the canary has not ended: another canary, as long as that leaves
		// places for others.
		if g.active*2 < max(2, c.dials.concurrency) {
			c.sendCanary(g, now)
		}
	case BreakerRamping:
		if g.holding == 0 && g.active == 0 && g.breaker.Promising() {
			c.ramp(g, now, func(b *breaker.Breaker) { b.Idle(c.capacity(), now) })
			return
		}
		c.letThrough(g, now)
	}
}

// runProbe asks the user's probe whether the dependency is back. If there are more
// canaries when it returns, its answer is to a question of old.
func (c *Consumer) runProbe(g *gate, canaries int, began time.Time) {
	err := errors.New("Config.Outage.Probe called runtime.Goexit")
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
			c.complain("probe", "Config.Outage.Probe panicked, which counts as a failure", "panic", v, "stack", string(debug.Stack()))
		}
		core := c.enter()
		defer c.leave()
		g.probing = false
		if !core.closed && g.state() == BreakerHalfOpen && g.canaries == canaries {
			if err != nil {
				g.cause = err
			}
			now := core.now
			core.canaryEnded(g, err != nil, now.Sub(began), now)
		}
		core.tidy(g)
	}()
	ctx, cancel := context.WithTimeout(c.workCtx, probeTimeout)
	defer cancel()
	if err = c.cfg.Outage.Probe(ctx, g.key); err != nil {
		err = quoted{err, err.Error()} // which Status asks for under c.mu
	}
}

// sendCanary lets one message pass, to see what becomes of it. That is one that has
// failed already, so that no other has to, but now and then it is another, received if
// none is held: the former may be bad ones. When as many are held as may be, and all of
// them have failed, it always is another, and one of them makes way: or a producer of
// so many bad ones would keep all others waiting for good.
func (c *core) sendCanary(g *gate, now time.Time) {
	g.canaries++
	g.wanted = true
	g.fresh = g.canaries%freshEvery == 0
	if g.held.first == nil && g.holding >= c.freshUpTo() {
		g.fresh = true
		// Only behind others: while nothing is received, a longer wait is of no use.
		c.sendAway(cmp.Or(c.candidate(&g.tried, now), g.tried.first), g, minAway, now)
	}
	lists := []*fifo{&g.tried, &g.held}
	if g.fresh {
		lists = lists[1:]
	}
	for _, list := range lists {
		for d := c.candidate(list, now); d != nil && g.wanted; d = c.candidate(list, now) {
			c.stepOut(d)
			c.begin(d, now) // which may find that it has to be given up, and g wants another
		}
	}
	patience := c.canaryPatience(g)
	if g.wanted && g.holding > 0 {
		patience = freshPatience
	}
	c.alarms.Set(&g.look, now.Add(patience))
}

// canaryPatience is how long a probe or a canary may run before there is another.
func (c *core) canaryPatience(g *gate) time.Duration {
	if g.probing {
		return probeTimeout + shortCanary
	}
	return min(longCanary, max(shortCanary, 2*c.taskTime.mean))
}

// freshUpTo is how many messages may be held when another is received to be the
// canary.
func (c *core) freshUpTo() int {
	all, _ := c.places()
	return 2 * all
}

// candidate is the message that has been in list longest and may be run.
func (c *core) candidate(list *fifo, now time.Time) *delivery {
	d := list.first
	for d != nil && c.memory.Recall(d.msg.ID, now).Due.After(now) {
		d = d.next
	}
	return d
}

// shut says that the whole consumer receives nothing, for an outage; but for one
// message if that is to be the canary.
func (c *core) shut() (shut bool, canary int) {
	g := c.gates.byKey[""]
	if g == nil || c.keyed() {
		return false, 0
	}
	if g.state() == BreakerHalfOpen && g.wanted && c.reserved == 0 {
		return true, 1
	}
	return g.state() == BreakerOpen || g.state() == BreakerHalfOpen, 0
}

// heldTooLong gives back a message that has waited for nearly as long as SQS lets
// anybody hold one. It says whether it did.
func (c *core) heldTooLong(d *delivery, now time.Time) bool {
	if !d.state.waits() || elapsed(d.requested, now) < holdAtMost {
		return false
	}
	c.memory.Note(d.msg.ID, now).Unrun(d.msg.Attempt, d.receives)
	due := now.Add(minAway + spread(minAway, d.msg.ID))
	c.giveBackWaiting(d, verdict{outcome: OutcomeRelease, reason: retry.ReasonUnavailable, due: due}, now)
	return true
}

// announce tells the log and the observer of e, in order.
func (c *core) announce(e OutageEvent) {
	c.inOrder(func(shell *Consumer) {
		c.logOutage(e)
		if f := c.cfg.Observer.Outage; f != nil {
			shell.tell(func() { f(shell.runCtx, e) })
		}
	})
}

// logOutage logs the beginning and the end of an outage; its probes are of no
// interest.
func (c *settings) logOutage(e OutageEvent) {
	switch {
	case e.State == BreakerOpen && e.Previous == BreakerClosed:
		c.log.Warn("dependency unavailable: circuit breaker open, holding messages", "key", e.Key, "held", e.Held, "error", e.Err)
	case e.State == BreakerOpen && e.Previous == BreakerRamping:
		c.log.Warn("dependency unavailable again: circuit breaker open", "key", e.Key, "since", e.Since, "error", e.Err)
	case e.State == BreakerRamping:
		c.log.Info("dependency answers again: circuit breaker ramping up", "key", e.Key, "since", e.Since)
	case e.State == BreakerClosed:
		c.log.Info("outage over: circuit breaker closed", "key", e.Key, "lasted", e.At.Sub(e.Since).Round(time.Second))
	}
}

// breakers is what Status says of breakers and paused keys.
func (c *core) breakers() (all []BreakerStatus) {
	for _, g := range c.gates.byKey {
		if g.state() == BreakerClosed && !g.paused {
			continue
		}
		s := BreakerStatus{Key: g.key, State: g.state(), Since: g.breaker.Since(), NextProbe: g.breaker.NextProbe(), Held: g.holding, Paused: g.paused}
		if g.state() == BreakerRamping {
			s.Level = g.breaker.Level()
		}
		if g.state() != BreakerClosed && g.cause != nil {
			s.Problem = g.cause.Error()
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b BreakerStatus) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// healthNow is the consumer's health, with what lasts while settlements go on, and
// would otherwise seem to be well: open breakers, a full quota, messages left to
// expire, most of them given up.
func (c *core) healthNow(now time.Time) (Health, string) {
	if c.health.state != HealthOK && c.health.state != HealthDegraded {
		return c.health.state, c.health.problem
	}
	health, problem := c.health.state, c.health.problem
	add := func(more string) {
		if health = HealthDegraded; problem != "" {
			more = problem + "; " + more
		}
		problem = more
	}
	for _, lasting := range []string{c.inFlightProblem(now), c.expiring.problem(now), c.stuckProblem(), c.unsendable.problem(now)} {
		if lasting != "" {
			add(lasting)
		}
	}
	if said := c.givingUp(now); said != nil {
		add(said.String())
	}
	hung, all := c.hungProblem(now)
	if hung != "" {
		add(hung)
	}
	for _, b := range c.breakers() {
		if b.State == BreakerClosed {
			continue
		}
		what := "dependency"
		if b.Key != "" {
			what = fmt.Sprintf("dependency of key %q", b.Key)
		}
		since, held := b.Since.UTC().Format(time.RFC3339), plural.Of(b.Held, "message")
		if b.State == BreakerRamping {
			add(fmt.Sprintf("%s answers again, after an outage since %s (circuit breaker ramping up, %s at once, %s held); last error: %s", what, since, plural.Of(b.Level, "message"), held, b.Problem))
		} else {
			add(fmt.Sprintf("%s unavailable since %s (circuit breaker %v, %s held): %s", what, since, b.State, held, b.Problem))
		}
		break // one says enough
	}
	if all {
		health = HealthFailing
	}
	return health, problem
}
