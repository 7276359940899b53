package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/plan"
)

var (
	vias  = []string{plan.ViaAuto.String(), plan.ViaVisibility.String(), plan.ViaRequeue.String()}
	waits = []string{"hold", "block", "skip"} // in the order of consumer.FIFO
)

// Validate reports every invalid field, with the remedy, joined in one error. Fields are named as in
// a YAML file.
func (s Scenario) Validate() error {
	var c checks
	c.traffic(&s)
	if err := s.Policy.Validate(); err != nil {
		c = append(c, fmt.Errorf("policy: %w", err))
	}
	d := s.WithDefaults()
	c.queue(&d.Queue)
	c.handler(&d.Handler)
	c.dependency(&d.Dependency)
	c.fleet(&d)
	c.network(&d.Network)
	c.pool(&d)
	c.fluid(&d)
	c.between("horizon", s.Horizon, 0, MaxHorizon)
	c.between("bucket", s.Bucket, 0, MaxHorizon)
	c.count("trace", s.Trace, 0, MaxMessages)
	if len(c) == 0 {
		c.ends(&d)
	}
	return errors.Join(c...)
}

// checks are problems.
type checks []error

func (c *checks) add(field string, value any, problem string) {
	*c = append(*c, fmt.Errorf("%s is %v: %s", field, value, problem))
}

func (c *checks) between(field string, d, least, most time.Duration) {
	if d < least || d > most {
		c.add(field, d, fmt.Sprintf("set %v to %v", least, most))
	}
}

func (c *checks) count(field string, n, least, most int) {
	if n < least || n > most {
		c.add(field, n, fmt.Sprintf("set %d to %d", least, most))
	}
}

func (c *checks) share(field string, p float64) {
	if !(p >= 0 && p <= 1) {
		c.add(field, p, "set a share from 0 to 1, such as 0.2 for 20 %")
	}
}

func (c *checks) rate(field string, r float64) {
	if !(r >= 0 && r <= maxRate) {
		c.add(field, r, fmt.Sprintf("set 0 to %v a second", maxRate))
	}
}

func (c *checks) oneOf(field, value string, of []string) {
	if !slices.Contains(of, value) {
		c.add(field, fmt.Sprintf("%q", value), "set "+strings.Join(of, ", "))
	}
}

func (c *checks) traffic(s *Scenario) {
	t := &s.Traffic
	c.count("traffic.backlog", t.Backlog, 0, maxCount)
	c.rate("traffic.rate", t.Rate)
	c.between("traffic.for", t.For, 0, MaxHorizon)
	c.count("traffic.bytes", t.Bytes, 0, 1<<20)
	c.count("the length of traffic.bursts", len(t.Bursts), 0, maxListed)
	for i, b := range t.Bursts[:min(len(t.Bursts), maxListed)] {
		field := fmt.Sprintf("traffic.bursts[%d].", i)
		c.between(field+"at", b.At, 0, MaxHorizon)
		c.between(field+"over", b.Over, 0, MaxHorizon)
		c.count(field+"messages", b.Messages, 0, maxCount)
	}
	c.count("the length of traffic.series", len(t.Series), 0, 1_000_000)
	for i, n := range t.Series {
		if n < 0 || n > maxCount {
			c.count(fmt.Sprintf("traffic.series[%d]", i), n, 0, maxCount)
			break
		}
	}
	if (len(t.Series) > 0) != (t.Every > 0) {
		c.add("traffic.every", t.Every, "set it with traffic.series, to the length of a period")
	} else if n := len(t.Series); n > 0 && t.Every > MaxHorizon/time.Duration(n) {
		c.add("traffic.every", t.Every, fmt.Sprintf("%d periods are longer than %v: set shorter ones", n, MaxHorizon))
	}
	if t.For > 0 && t.Rate == 0 {
		c.add("traffic.for", t.For, "it says how long messages arrive at traffic.rate: set that too")
	}
	switch n := s.messages(); {
	case t.Rate > 0 && t.For == 0 && s.Horizon == 0:
		c.add("traffic.rate", t.Rate, "it never ends: set traffic.for, or a horizon")
	case n > MaxFluid:
		c.add("the number of messages", math.Round(n), fmt.Sprintf("set at most %d: less traffic, or a shorter horizon", int64(MaxFluid)))
	case n == 0:
		c.add("traffic", "empty", "set traffic.backlog, traffic.rate, traffic.bursts or traffic.series")
	}
}

func (c *checks) queue(q *Queue) {
	c.between("queue.retention", q.Retention, time.Minute, plan.MaxRetention)
	c.between("queue.delay", q.Delay, 0, plan.MaxDelay)
	c.count("queue.max-receives", q.MaxReceives, 0, plan.MaxReceives)
	c.count("queue.in-flight-quota", q.InFlightQuota, 1, math.MaxInt32)
	if q.FIFO {
		c.count("queue.groups", q.Groups, 1, MaxMessages)
	} else if q.Groups != 0 {
		c.add("queue.groups", q.Groups, "only FIFO queues have groups: set queue.fifo, or leave it out")
	}
	if q.NoDeadLetters && q.MaxReceives > 0 {
		c.add("queue.max-receives", q.MaxReceives, "it needs a dead-letter queue: leave it or queue.no-dead-letters out")
	}
}

func (c *checks) handler(h *Handler) {
	if problem := h.Takes.check(); problem != "" {
		c.add("handler.takes", h.Takes, problem)
	}
	c.count("the length of handler.fails", len(h.Fails), 0, maxListed)
	for i, p := range h.Fails {
		c.share(fmt.Sprintf("handler.fails[%d]", i), p)
	}
	c.changes(h)
	c.share("handler.permanent", h.Permanent)
	c.share("handler.always", h.Always)
}

func (c *checks) changes(h *Handler) {
	c.count("the length of handler.changes", len(h.Changes), 0, maxChanges)
	for i, one := range h.Changes[:min(len(h.Changes), maxChanges)] {
		field := fmt.Sprintf("handler.changes[%d].", i)
		switch {
		case one.At == 0:
			c.add(field+"at", one.At, "what holds from the start is handler.fails: set that, or a time after the start")
		case i > 0 && one.At <= h.Changes[i-1].At:
			c.add(field+"at", one.At, fmt.Sprintf("the change before it is at %v: put changes in the order of their times, each at its own", h.Changes[i-1].At))
		default:
			c.between(field+"at", one.At, 1, MaxHorizon)
		}
		if len(one.Fails) == 0 {
			c.add(field+"fails", "empty", "set the shares that hold from then on, such as [0.2], or [0] if no attempt fails")
		}
		c.count("the length of "+field+"fails", len(one.Fails), 0, maxListed)
		for k, p := range one.Fails {
			c.share(fmt.Sprintf("%sfails[%d]", field, k), p)
		}
	}
}

func (c *checks) dependency(d *Dependency) {
	c.rate("dependency.capacity", d.Capacity)
	if d.Capacity == 0 && (d.Burst != 0 || d.Rejects != 0) {
		c.add("dependency.capacity", 0, "burst and rejects need it: set it, or leave those out")
	}
	if d.Capacity > 0 {
		c.between("dependency.rejects", d.Rejects, 1, maxTakes)
		if !(d.Burst >= 1 && d.Burst <= MaxMessages) {
			c.add("dependency.burst", d.Burst, fmt.Sprintf("set 1 to %d requests", MaxMessages))
		}
	}
	c.outages("dependency.outages", d.Outages)
}

func (c *checks) outages(name string, outages []Outage) {
	c.count("the length of "+name, len(outages), 0, 1000)
	byStart := make([]int, len(outages))
	for i := range byStart {
		byStart[i] = i
	}
	slices.SortStableFunc(byStart, func(a, b int) int { return cmp.Compare(outages[a].At, outages[b].At) })
	for i, at := range byStart {
		o, field := outages[at], fmt.Sprintf("%s[%d].", name, at)
		c.between(field+"at", o.At, 0, MaxHorizon)
		c.between(field+"for", o.For, 1, MaxHorizon)
		c.between(field+"takes", o.Takes, 0, maxTakes)
		c.share(field+"share", o.Share)
		if i == 0 {
			continue
		}
		if before := outages[byStart[i-1]]; o.At-before.At < before.For {
			c.add(field+"at", o.At, "the outage before is not over: make one of the two")
		}
	}
}

func (c *checks) fleet(s *Scenario) {
	f := &s.Fleet
	c.count("fleet.consumers", f.Consumers, 1, maxConsumers)
	c.count("fleet.concurrency", f.Concurrency, 1, maxConcurrency)
	c.count("fleet.prefetch", f.Prefetch, math.MinInt, 10_000)
	c.count("fleet.threshold", f.Threshold, 1, 1000)
	c.between("fleet.lease", f.Lease, 2*time.Second, time.Hour)
	c.between("fleet.timeout", f.Timeout, 0, maxTakes)
	c.between("fleet.long-poll", f.LongPoll, time.Second, 20*time.Second)
	for field, d := range map[string]time.Duration{"fleet.lease": f.Lease, "fleet.long-poll": f.LongPoll} {
		if d%time.Second != 0 {
			c.add(field, d, "SQS counts it in whole seconds: set such")
		}
	}
	if f.Rate != 0 && !(f.Rate >= 0.001 && f.Rate <= maxRate) {
		c.add("fleet.rate", f.Rate, fmt.Sprintf("set 0.001 to %v runs a second, or leave it out", maxRate))
	}
	c.oneOf("fleet.via", f.Via, vias)
	if s.Queue.FIFO && f.Via == plan.ViaRequeue.String() {
		c.add("fleet.via", f.Via, "a copy would come out of turn on a FIFO queue: set auto or visibility")
	}
	if s.Queue.FIFO {
		c.oneOf("fleet.waits", f.Waits, waits)
	} else if f.Waits != "" {
		c.add("fleet.waits", f.Waits, "only FIFO queues have groups: set queue.fifo, or leave it out")
	}
	if f.NoBreaker && f.Probe {
		c.add("fleet.probe", true, "a probe belongs to the breaker: leave it or fleet.no-breaker out")
	}
	c.batchAndLane(s)
	c.count("the length of fleet.restarts", len(f.Restarts), 0, maxListed)
	for i, r := range f.Restarts {
		field := fmt.Sprintf("fleet.restarts[%d].", i)
		c.between(field+"at", r.At, 0, MaxHorizon)
		c.between(field+"down", r.Down, 0, MaxHorizon)
		c.count(field+"consumers", r.Consumers, 1, f.Consumers)
	}
}

func (c *checks) batchAndLane(s *Scenario) {
	f := &s.Fleet
	c.count("fleet.batch.size", f.Batch.Size, 0, maxBatch)
	if f.Batch.Size > 0 && f.Concurrency > maxConcurrency/f.Batch.Size {
		c.add("fleet.batch.size", f.Batch.Size, fmt.Sprintf("times fleet.concurrency it is more than %d messages in handlers at once: lower one", maxConcurrency))
	}
	if f.Batch.Linger != 0 && f.Batch.Size <= 1 {
		c.add("fleet.batch.linger", f.Batch.Linger, "it belongs to batches: set fleet.batch.size too, or leave it out")
	} else if f.Batch.Linger > time.Hour {
		c.add("fleet.batch.linger", f.Batch.Linger, "set at most 1h0m0s, or a negative duration for none")
	}
	l := &f.RetryLane
	c.count("fleet.retry-lane.weight", l.Weight, 0, 1000)
	c.count("fleet.retry-lane.priority", l.Priority, math.MinInt32, math.MaxInt32)
	switch {
	case l.Weight == 0 && l.Priority != 0:
		c.add("fleet.retry-lane.priority", l.Priority, "it belongs to a retry lane: set fleet.retry-lane.weight to 1 or more, or leave it out")
	case l.Weight > 0 && s.Queue.FIFO:
		c.add("fleet.retry-lane.weight", l.Weight, "on a FIFO queue a retry would come out of turn: leave it or queue.fifo out")
	case l.Weight > 0 && f.Via == plan.ViaVisibility.String():
		c.add("fleet.retry-lane.weight", l.Weight, "messages are sent to a lane as copies: set fleet.via to auto or requeue")
	}
}

func (c *checks) network(n *Network) {
	c.between("network.latency", n.Latency, 1, 5*time.Second)
	if n.Spread > time.Second {
		c.add("network.spread", n.Spread, "set at most 1s, or a negative duration for none")
	}
	c.share("network.lose-request", n.LoseRequest)
	c.share("network.lose-reply", n.LoseReply)
	c.share("network.throttle", n.Throttle)
	c.share("network.fail", n.Fail)
}

// fluid checks that a fluid scenario has nothing that only single messages have.
func (c *checks) fluid(s *Scenario) {
	if !s.Fluid {
		return
	}
	why := fmt.Sprintf("a fluid simulation, which more than %d messages need, does not have it: leave it out, or have fewer messages arrive", MaxMessages)
	n := &s.Network
	for _, one := range []struct {
		field string
		value any
		is    bool
	}{
		{"queue.fifo", s.Queue.FIFO, s.Queue.FIFO},
		{"fleet.batch.size", s.Fleet.Batch.Size, s.Fleet.Batch.Size > 1},
		{"fleet.retry-lane.weight", s.Fleet.RetryLane.Weight, s.Fleet.RetryLane.Weight > 0},
		{"the length of pool", len(s.Pool), len(s.Pool) > 0},
		{"trace", s.Trace, s.Trace > 0},
		{"network", fmt.Sprintf("%+v", *n), n.LoseRequest+n.LoseReply+n.Throttle+n.Fail > 0},
		{"policy", "one with rules", len(s.Policy.Rules) > 0},
	} {
		if one.is {
			c.add(one.field, one.value, why)
		}
	}
	if len(s.Dependency.Outages) > maxFluidOutages {
		c.count("the length of dependency.outages, of a fluid simulation,", len(s.Dependency.Outages), 0, maxFluidOutages)
	}
}

// ends checks that a simulation without a horizon ends.
func (c *checks) ends(s *Scenario) {
	if s.Horizon > 0 {
		return
	}
	fails := s.Handler.lastFails()
	never := s.Handler.Always == 1 || chanceOf(fails, len(fails)) == 1
	if s.Policy.MaxAttempts < 0 && s.Policy.MaxAge < 0 && (never || s.Handler.Always > 0) {
		text, _ := s.Policy.MarshalText()
		c.add("policy", fmt.Sprintf("%q", text), "it never gives up, and there are messages of which every attempt fails: set attempts or an age, or a horizon")
	}
	n := &s.Network
	if n.LoseRequest+n.LoseReply+n.Throttle+n.Fail >= 1 {
		c.add("network", fmt.Sprintf("%+v", *n), "no request succeeds, so that no message is settled: set smaller shares, or a horizon")
	}
}

// notes are what a reader of the result should know beforehand.
func (s *Scenario) notes() (notes []string) {
	rate, need, from := s.Traffic.Rate, s.attemptsOf(s.Handler.Fails), ""
	for _, c := range s.Handler.Changes {
		if n := s.attemptsOf(c.Fails); n > need && c.At < s.Traffic.until(s.Horizon) {
			need, from = n, fmt.Sprintf(" from %v on", c.At)
		}
	}
	if handlers := s.Fleet.Consumers * s.Fleet.Concurrency; len(s.Pool) > 0 {
		busy, since := s.busyHandlers()
		from := ""
		if since > 0 {
			from = fmt.Sprintf(" from %v on", since)
		}
		if busy >= float64(handlers) {
			notes = append(notes, fmt.Sprintf("pool: the traffic of all queues needs %.4g handlers%s, of which there are %d, so the queues that come last fall behind while it lasts: raise fleet.concurrency, or expect more messages the longer it goes on", busy, from, handlers))
		}
	}
	can, field := s.bottleneck()
	if rate > 0 && rate*need >= can {
		notes = append(notes, fmt.Sprintf("traffic.rate is %g: such traffic needs %.4g attempts a second%s, of which %s permits %.4g, so the backlog never clears while it lasts: raise that, or expect more messages the longer it goes on", rate, rate*need, from, field, can))
	}
	if s.Policy.MaxAttempts < 0 && s.Policy.MaxAge < 0 && s.Handler.Always > 0 {
		notes = append(notes, "policy never gives up: messages of which every attempt fails are tried until the horizon")
	}
	return notes
}
