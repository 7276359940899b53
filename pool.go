package reprise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Pool is a number of places for handlers that several consumers share: each has a
// queue, a handler and a Config of its own, and takes its turns by its [Share]. A place
// that one has no use for is the others'.
//
// Priorities are strict: a handler is started only while no message of a higher
// priority is ready to be, so that a queue that keeps the pool busy starves those
// below it. What is running is not interrupted: where handlers of a lower priority
// take long, a Config.Concurrency below the pool's leaves places that they cannot
// take. Among consumers of one priority, handlers are started in proportion to the
// weights, for as long as all of them have messages. One that had none, or whose
// receives were slow, makes up for it with at most ten starts.
//
// A message that is received runs soon: each consumer receives for the places that
// are free and for its Config.Prefetch, for the latter only while nothing of a
// higher priority waits. Since the queues cannot be asked together, each may bring
// one receive more. A consumer that is paused, or whose breaker is open, takes no
// places.
//
// A message that seems to kill the process runs alone in the whole pool. All state
// of a pool's consumers is under one lock, so that what one pool can do in a second
// is about what one consumer can.
type Pool struct {
	mu      sync.Mutex // of its consumers too
	private bool       // a consumer's and its retry lane's, which know no other
	machine *consumer.Pool
	shells  map[*consumer.Machine]*Consumer // of the machines in it
}

// PoolConfig says how a [Pool] works. The zero PoolConfig works.
type PoolConfig struct {
	// Concurrency is how many handlers run at once, of all queues together.
	// Default: 10.
	Concurrency int
}

// PoolStatus is a pool's state at one moment.
type PoolStatus struct {
	// Concurrency is how many handlers may run at once: see Pool.SetConcurrency.
	Concurrency int
	// Handlers is how many do.
	Handlers int
	// Queues are the consumers of the pool that have not stopped, those of the highest
	// priority first, and otherwise as they were made.
	Queues []PoolQueue
}

// PoolQueue is one consumer of a pool.
type PoolQueue struct {
	// URL is its queue's.
	URL string
	// Share is what it has of the pool.
	Share Share
	// Handlers is how many of the pool's places it has.
	Handlers int
	Status   Status
}

// Share is when a consumer of a [Pool] has its turn. The zero Share has the same share
// as any other.
type Share struct {
	// Priority is the consumer's rank: while a message of a higher priority is ready, no
	// handler of a lower one is started. It may be negative. Default: 0.
	Priority int
	// Weight is the consumer's part of what those of its priority start while all of them
	// have messages: one of weight 3 starts three handlers for each that one of weight
	// 1 starts. From 1 to 1,000. Default: 1.
	Weight int
}

const maxWeight = 1000

func (s Share) withDefaults() Share {
	s.Weight = cmp.Or(s.Weight, 1)
	return s
}

// validate returns every problem of s, which errors call name.
func (s Share) validate(name string) []error {
	if s.Weight < 0 || s.Weight > maxWeight {
		return []error{fmt.Errorf("%s.Weight is %d: set 1 to %d, or 0 for 1", name, s.Weight, maxWeight)}
	}
	return nil
}

// NewPool returns a pool without consumers: see [Pool.Add]. It starts nothing.
func NewPool(cfg PoolConfig) (*Pool, error) {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = defaultConcurrency
	}
	p := &Pool{machine: consumer.NewPool(0)}
	if err := p.SetConcurrency(cfg.Concurrency); err != nil {
		return nil, fmt.Errorf("making a pool: %w", err)
	}
	return p, nil
}

// Add makes a consumer as [New] does, with a share of the pool's places, and adds it
// to the pool. Unless its Concurrency says otherwise it may take all of them. One that
// is added while the pool runs has to be run by itself.
func (p *Pool) Add(c Client, queueURL string, h Handler, s Share, cfg Config) (*Consumer, error) {
	return spec{client: c, url: queueURL, handler: h, pool: p, share: s, cfg: cfg}.consumer()
}

// AddBatch is [Pool.Add] for a consumer as [NewBatchConsumer] makes it. A batch takes
// one place and one turn.
func (p *Pool) AddBatch(c Client, queueURL string, h BatchHandler, s Share, cfg BatchConfig) (*Consumer, error) {
	return spec{client: c, url: queueURL, batchHandler: h, batch: &cfg, pool: p, share: s, cfg: cfg.Config}.consumer()
}

// Run runs every consumer of the pool until ctx ends, and returns when all have
// drained, side by side, each within its StopBudget: nil if all did, or what their
// Run returned, joined. Consumers that should stop at different times are run one
// by one instead, each with a context of its own. It is an error if there is none,
// or if one has been run already.
func (p *Pool) Run(ctx context.Context) error {
	p.mu.Lock()
	var all []*Consumer
	if p.machine != nil {
		for m := range p.machine.Each {
			all = append(all, p.shells[m])
		}
	}
	p.mu.Unlock()
	if len(all) == 0 {
		return errors.New("reprise: the pool has no consumers: make them with Add before Run")
	}
	for _, c := range all {
		if c.started.Load() {
			return fmt.Errorf("reprise: the consumer of queue %s runs already: run all consumers of the pool one by one, or none", c.queue.name)
		}
	}
	return consumeAll(ctx, all)
}

// size is how many handlers may run at once.
func (p *Pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.machine == nil { // the zero Pool
		return 0
	}
	return p.machine.Concurrency()
}

// SetConcurrency changes how many handlers may run at once, at first
// PoolConfig.Concurrency. Handlers that run are left to end. Consumers whose
// Config.Concurrency was not set may use all of it. It may be called at any time
// from any goroutine.
func (p *Pool) SetConcurrency(n int) error {
	if n < 1 || n > maxConcurrent {
		return fmt.Errorf("reprise: a pool's concurrency of %d is out of range: set 1 to %d handlers", n, maxConcurrent)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.machine.SetConcurrency(n, now)
	p.finishSection(now)
	return nil
}

// Status says what the pool and its consumers are doing. It may be called at any
// time from any goroutine.
func (p *Pool) Status() PoolStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.machine == nil {
		return PoolStatus{}
	}
	s := PoolStatus{Concurrency: p.machine.Concurrency()}
	for m := range p.machine.Each {
		shell := p.shells[m]
		q := PoolQueue{
			URL: shell.queue.url, Share: Share(m.PoolShare()), Handlers: m.Handlers(),
			Status: statusOf(m.Status(now), shell.client.counts()),
		}
		s.Handlers += q.Handlers
		s.Queues = append(s.Queues, q)
	}
	return s
}

// admit makes c one of p's. If whole is set it may use all of p. It is called with the lock
// held.
func (p *Pool) admit(c *Consumer, s Share, whole bool) {
	c.pool, c.mu = p, &p.mu
	if p.shells == nil {
		p.shells = make(map[*consumer.Machine]*Consumer)
	}
	p.shells[c.guarded] = c
	p.machine.Join(c.guarded, consumer.Share(s.withDefaults()), whole)
}

// closed takes c, which is closed, out of p when none of its handlers is left. It is called
// with the lock held.
func (p *Pool) closed(c *Consumer) {
	if p.machine.Leave(c.guarded) {
		delete(p.shells, c.guarded)
	}
}
