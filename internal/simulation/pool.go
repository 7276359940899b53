package simulation

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Pool is a number of places for handlers that several consumers share.
type Pool struct {
	machine   *consumer.Pool
	consumers map[*consumer.Machine]*Consumer
}

// NewPool makes a pool of that many places.
func NewPool(concurrency int) *Pool {
	return &Pool{machine: consumer.NewPool(concurrency), consumers: make(map[*consumer.Machine]*Consumer)}
}

// Concurrency returns how many handlers may run at once.
func (p *Pool) Concurrency() int { return p.machine.Concurrency() }

// Join adds c, which has not been started, to the pool. If whole is set it may use all places.
func (p *Pool) Join(c *Consumer, s consumer.Share, whole bool) {
	c.pool = p
	p.consumers[c.machine] = c
	p.machine.Join(c.machine, s, whole)
}

// IsLaneOf makes c the consumer of the retry lane of other, which sends its copies to c's queue. Both
// must be in a pool.
func (c *Consumer) IsLaneOf(other *Consumer) { c.machine.SetRetryLaneOf(other.machine) }

// finishSection arms the timers and starts the effects of all consumers, because a change of one can
// affect the others.
func (p *Pool) finishSection(now time.Time) {
	for m := range p.machine.Each {
		c := p.consumers[m]
		c.arm(now)
		m.Effects(c.begin)
	}
}

// closed removes c, which has stopped, from its pool if none of its handlers is left.
func (c *Consumer) closed() {
	if c.pool != nil && c.pool.machine.Leave(c.machine) {
		delete(c.pool.consumers, c.machine)
	}
}
