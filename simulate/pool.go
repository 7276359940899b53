package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/retry"
)

// Pooled is a further queue that the consumers of a [Scenario] handle: each process has a consumer of
// it, which shares the process's handlers with those of the other queues, as a Pool of the library
// does. It has a breaker of its own. Its attributes and its dead-letter queue are those of the scenario's
// queue, and the dependency is the same.
type Pooled struct {
	// Name tells it from the others. It must be set; the scenario's own queue is called main.
	Name string `yaml:"name"`
	// Traffic is its messages. It must have some.
	Traffic Traffic `yaml:"traffic,omitempty"`
	// Weight is how many handlers start for it while one of weight 1 has one start, if both have
	// messages and the same priority: 1 to 1,000. Default: 1.
	Weight int `yaml:"weight,omitempty"`
	// Priority is its rank; that of the scenario's queue is 0. While a message of a higher one is
	// ready, no handler of a lower one starts. Default: 0; turns are taken by weight.
	Priority int `yaml:"priority,omitempty"`
	// Policy decides when its failed messages are tried again. Default: that of the scenario.
	Policy *retry.Policy `yaml:"policy,omitempty"`
	// Handler is the model of the code that handles its messages. Default: that of the scenario.
	Handler *Handler `yaml:"handler,omitempty"`
}

// ofPool is how one queue of several has fared: see [Result.Queues].
type ofPool struct {
	*Pooled
	queue  *world.Queue
	worlds []*world.Queue // it and its retry lane

	left    []int           // by outage: how many messages that were sent until its end are unsettled
	cleared []time.Duration // by outage; negative: not yet
	before  int             // all messages before it are settled, expired or of another queue
	oldest  time.Duration
	most    int // that were unsettled
}

// OfQueue is the part of a result that one queue of several has.
type OfQueue struct {
	Name             string
	Weight, Priority int
	Messages         Messages
	Attempts         int
	// Wait and Latency are as those of [Result].
	Wait, Latency Quantiles
	// PeakOpen is the most messages that were sent and not yet settled, and Oldest the greatest age of
	// one, at the end of a period.
	PeakOpen int
	Oldest   time.Duration
	// Cleared is how long after the end of each outage every message that was sent to the queue until
	// then was settled. Negative: not until the end of the simulation.
	Cleared []time.Duration
}

// MainQueue is the name of a scenario's own queue among those of its pool.
const MainQueue = "main"

// poolWithDefaults returns the further queues with every default filled in.
func (s *Scenario) poolWithDefaults() []Pooled {
	all := slices.Clone(s.Pool)
	for i := range all {
		one := &all[i]
		fill(&one.Weight, 1)
		alone := *s
		alone.Pool, alone.Traffic = nil, one.Traffic
		if one.Policy != nil {
			alone.Policy = *one.Policy
		}
		if one.Handler != nil {
			alone.Handler = *one.Handler
		}
		alone = alone.WithDefaults()
		one.Traffic, one.Policy, one.Handler = alone.Traffic, &alone.Policy, &alone.Handler
	}
	return all
}

// alone returns the scenario with a further queue, which has its defaults, in the place of all.
func (s *Scenario) alone(one *Pooled) Scenario {
	only := *s
	only.Traffic, only.Policy, only.Handler, only.Pool, only.Fleet.Weight = one.Traffic, *one.Policy, *one.Handler, nil, 0
	only.Fluid = false
	return only
}

// pool checks the further queues. Each is checked as if it were alone.
func (c *checks) pool(s *Scenario) {
	c.count("the length of pool", len(s.Pool), 0, maxPooled)
	if len(s.Pool) == 0 && s.Fleet.Weight != 0 {
		c.add("fleet.weight", s.Fleet.Weight, "it is the queue's part among those of a pool: set pool, or leave it out")
	} else if len(s.Pool) > 0 {
		c.count("fleet.weight", s.Fleet.Weight, 1, 1000)
	}
	names := map[string]bool{MainQueue: true}
	for i := range s.Pool[:min(len(s.Pool), maxPooled)] {
		one := &s.Pool[i]
		field := fmt.Sprintf("pool[%d].", i)
		switch {
		case one.Name == "":
			c.add(field+"name", "empty", "set a name that tells it from the others, such as reports")
		case names[one.Name]:
			c.add(field+"name", fmt.Sprintf("%q", one.Name), "another queue has this name, or the scenario's own: choose another")
		}
		names[one.Name] = true
		c.count(field+"weight", one.Weight, 1, 1000)
		c.count(field+"priority", one.Priority, -maxCount, maxCount)
		var of checks
		alone := s.alone(one)
		of.traffic(&alone)
		if err := one.Policy.Validate(); err != nil {
			of = append(of, fmt.Errorf("policy: %w", err))
		}
		of.handler(&alone.Handler)
		if len(of) == 0 {
			of.ends(&alone)
		}
		for _, err := range of {
			*c = append(*c, fmt.Errorf("pool[%d], %q: %w", i, one.Name, err))
		}
	}
}

// busyHandlers is how many handlers the rates of all queues keep busy at most, outside of outages, and since when.
func (s *Scenario) busyHandlers() (most float64, since time.Duration) {
	queues := []Scenario{*s}
	for i := range s.Pool {
		queues = append(queues, s.alone(&s.Pool[i]))
	}
	times := []time.Duration{0}
	for i := range queues {
		for _, c := range queues[i].Handler.Changes {
			times = append(times, c.At)
		}
	}
	for _, at := range times {
		busy := 0.0
		for i := range queues {
			if q := &queues[i]; at < q.Traffic.until(q.Horizon) {
				busy += q.Traffic.Rate * q.attemptsOf(q.Handler.failsAt(at)) * q.meanRun().Seconds() / float64(max(1, q.Fleet.Batch.Size))
			}
		}
		if busy > most {
			most, since = busy, at
		}
	}
	return most, since
}

// handlerOf returns the handler of the messages of a queue, and trafficOf their traffic.
func (r *run) handlerOf(queue uint8) *Handler {
	if queue == 0 {
		return &r.Handler
	}
	return r.pool[queue].Handler
}

func (r *run) trafficOf(queue uint8) *Traffic {
	if queue == 0 {
		return &r.Traffic
	}
	return &r.pool[queue].Traffic
}

// poolBegins creates the further queues like the scenario's own, which is the first of the pool.
func (r *run) poolBegins(create func(name string) *world.Queue) {
	if len(r.Pool) == 0 {
		return
	}
	r.pool = append(r.pool, &ofPool{Pooled: &Pooled{Name: MainQueue, Weight: r.Fleet.Weight}, queue: r.queue, worlds: r.worlds()})
	for i := range r.Pool {
		q := create(fmt.Sprintf("pool-%d", i+1))
		r.pool = append(r.pool, &ofPool{Pooled: &r.Pool[i], queue: q, worlds: []*world.Queue{q}})
	}
	for _, one := range r.pool {
		one.left, one.cleared = make([]int, len(r.Dependency.Outages)), make([]time.Duration, len(r.Dependency.Outages))
		for i := range one.cleared {
			one.cleared[i] = -1
		}
	}
}

// worlds are the scenario's own queue and its retry lane, and, once the pool has begun, the further queues.
func (r *run) worlds() []*world.Queue {
	all := []*world.Queue{r.queue}
	if r.lane != nil {
		all = append(all, r.lane)
	}
	for _, one := range r.pool[min(len(r.pool), 1):] {
		all = append(all, one.queue)
	}
	return all
}

// joinPool makes the consumers of the further queues, with the handlers of n.
func (r *run) joinPool(n *node, spec simulation.Spec, pool *simulation.Pool) error {
	for i := 1; i < len(r.pool); i++ {
		one, of := r.pool[i], spec
		of.Queue, of.Lane, of.Size = one.queue, nil, one.Traffic.Bytes
		of.Requested = func(q simulation.Request) { r.requested(q, one.Traffic.Bytes) }
		of.Settings.Retry = *one.Policy
		of.Settings.Seed = draw(r.Seed, forProbe, uint64(r.started), uint64(i)+1)
		c, err := simulation.New(of)
		if err != nil {
			return err
		}
		n.others = append(n.others, c)
		pool.Join(c, consumer.Share{Weight: one.Weight, Priority: one.Priority}, true)
	}
	return nil
}

// sampleQueues measures the queues of the pool at the end of a period.
func (r *run) sampleQueues(now time.Duration) {
	for i, one := range r.pool {
		for one.before < len(r.messages) {
			m := r.messages[one.before]
			if int(m.queue) == i && m.state == open && now < m.renewed+r.Queue.Retention {
				one.oldest = max(one.oldest, now-m.sent)
				break
			}
			one.before++
		}
		open := 0
		for _, q := range one.worlds {
			visible, inFlight, delayed := q.Counts()
			open += visible + inFlight + delayed
		}
		one.most = max(one.most, open)
	}
}

// outageOver counts the messages of each queue that an outage, which is over, has left unsettled.
func (r *run) outageOver(outage int) {
	if len(r.pool) == 0 {
		return
	}
	for _, m := range r.messages {
		if m.state == open {
			r.pool[m.queue].left[outage]++
		}
	}
	for _, one := range r.pool {
		if one.left[outage] == 0 {
			one.cleared[outage] = 0
		}
	}
}

// clears takes in that a message is settled that was sent before the end of an outage.
func (r *run) clears(m *message, outage int) {
	if len(r.pool) == 0 {
		return
	}
	one, o := r.pool[m.queue], &r.Dependency.Outages[outage]
	if one.left[outage]--; one.left[outage] == 0 {
		one.cleared[outage] = r.loop.Since() - o.At - o.For
	}
}

// queues returns how each queue of the pool has fared, given the messages that are left.
func (r *run) queues(left map[*message]bool) (all []OfQueue) {
	for i, one := range r.pool {
		q := OfQueue{Name: one.Name, Weight: one.Weight, Priority: one.Priority, PeakOpen: one.most, Oldest: one.oldest, Cleared: one.cleared}
		var waits, latencies []time.Duration
		for _, m := range r.messages {
			if int(m.queue) != i {
				continue
			}
			q.Messages.count(m, left)
			q.Attempts += int(m.attempts)
			if m.attempts > 0 {
				waits = append(waits, m.began-m.sent)
			}
			if m.state == done {
				latencies = append(latencies, m.ended-m.sent)
			}
		}
		q.Wait, q.Latency = quantilesOf(waits), quantilesOf(latencies)
		all = append(all, q)
	}
	return all
}

// count adds a message at the end of the simulation.
func (m *Messages) count(one *message, left map[*message]bool) {
	m.Arrived++
	switch {
	case one.state == done:
		m.Done++
	case one.state == given:
		m.Dead++
	case left[one]:
		m.Left++
	default:
		m.Expired++
	}
}
