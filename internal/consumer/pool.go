package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/turns"
)

// Pool is a number of places for handlers that several machines share. Its machines are
// guarded by one lock, and a section of one may leave effects with all of them: see
// [Pool.Each].
type Pool struct {
	concurrency int
	solo        soloTurn
	order       turns.Order[*Machine]
}

// Share is when a machine of a pool has its turn: see reprise.Share.
type Share struct {
	Priority int
	Weight   int // at least 1
}

// maxLag is how many starts a consumer may catch up with when it has had no message to
// start: as many as one receive brings.
const maxLag = MaxBatch

// maxConcurrent is how many messages may be in the handlers of one consumer.
const maxConcurrent = 100_000

// NewPool returns a pool of that many places without machines.
func NewPool(concurrency int) *Pool { return &Pool{concurrency: concurrency} }

// Concurrency returns how many handlers may run at once.
func (p *Pool) Concurrency() int { return p.concurrency }

// Join makes c one of p's. If whole is set it may use all of p.
func (p *Pool) Join(c *Machine, s Share, whole bool) {
	c.pool, c.solo, c.wholePool = p, &p.solo, whole
	c.turns = turns.User[*Machine]{Cargo: c, Priority: s.Priority, Weight: s.Weight, Lag: maxLag}
	p.order.Join(&c.turns)
	c.takeWhole() // which may have changed since the defaults were filled in
}

// takeWhole lets c use all places of its pool, if Settings.Concurrency was left to the pool.
func (c *Machine) takeWhole() {
	if c.wholePool {
		c.concurrency = min(c.pool.concurrency, maxConcurrent/c.batchSize())
	}
}

// Leave takes c, which is closed, out of p if none of c's handlers is left, and reports
// whether it did.
func (p *Pool) Leave(c *Machine) bool {
	if s := &p.solo; s.owner == c {
		s.next, s.running, s.owner = nil, nil, nil
		s.taken = time.Time{}
	}
	if c.workers > 0 {
		return false
	}
	p.order.Leave(&c.turns)
	return true
}

// Each yields all of p's machines, those of the highest priority first.
func (p *Pool) Each(yield func(*Machine) bool) { p.order.All(yield) }

// grants reports whether the worker of c that asks may start a handler. If not, the worker
// ends, and another machine can have its place.
func (p *Pool) grants(c *Machine) bool {
	return p.workers() <= p.concurrency && p.next(c, c.now) == c
}

// next returns the machine whose turn it is, of those that have a message to start and a
// worker for it: the worker that asks, or a new one. It returns nil if there is none.
func (p *Pool) next(asks *Machine, now time.Time) *Machine {
	first := p.order.Next(func(c *Machine) bool {
		return (c == asks || c.workers < c.concurrency) && c.nextDue(now) != nil
	})
	if first == nil {
		return nil
	}
	return first.Cargo
}

// charge counts the start of one of c's handlers against c's share of its pool, if it has a
// pool.
func (c *Machine) charge() {
	if c.pool != nil {
		c.turns.Used()
	}
}

// workers returns how many places are taken.
func (p *Pool) workers() (n int) {
	for c := range p.Each {
		n += c.workers
	}
	return n
}

// places returns how many more messages of c's may start now (open), and how many may be
// held beside those that run (left).
func (p *Pool) places(c *Machine) (left, open int) {
	others := 0
	for other := range p.Each {
		if other != c {
			others += other.handlers() + other.coming(c.now)
		}
	}
	own := c.concurrency - c.handlers()
	open = c.batchSize() * max(0, min(p.concurrency-c.handlers()-others, own))
	switch {
	case p.outranks(c):
		return open, open
	case open == 0 && own > 0 && others > 0:
		// Without a Prefetch it would never hold a message to start when its turn comes.
		return max(c.Prefetch, c.batchSize()), open
	}
	return open + c.Prefetch, open
}

// coming returns how many handlers of c are about to take places: for messages that may
// start, and for those that receives under way may bring. One receive does not count: a
// consumer always has one, to wait for its queue.
func (c *Machine) coming(now time.Time) int {
	n := max(0, c.reserved-MaxBatch)
	if c.nextDue(now) != nil {
		n += c.waiting - c.gates.shelved - c.groups.Counts().Blocked
	}
	return max(0, min((n+c.batchSize()-1)/c.batchSize(), c.concurrency-c.handlers()))
}

// outranks reports whether a machine of a higher priority than c's has a message to start.
func (p *Pool) outranks(c *Machine) bool {
	return p.order.Outranks(&c.turns, func(other *Machine) bool { return other.nextDue(c.now) != nil })
}

// idle reports whether no handler runs and no message is unsettled, apart from those that
// [Machine.aloneHere] does not count.
func (p *Pool) idle() bool {
	for c := range p.Each {
		if c.running > c.hung || c.settling > c.stuck && !c.closed {
			return false
		}
	}
	return true
}

// ahead returns how long the handlers will probably take for all messages that are held.
func (p *Pool) ahead() (total time.Duration) {
	for c := range p.Each {
		handlers := (c.waiting + c.running + c.batchSize() - 1) / c.batchSize()
		total += c.taskTime.mean * time.Duration(handlers)
	}
	return total / time.Duration(p.concurrency)
}
