package reprise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Pool lets several consumers share a number of places for handlers. Each consumer has its
// own queue, handler and Config, and takes its turns by its [Share]. If one consumer has no
// message for a place, the others can use it.
//
// Priorities are strict: a handler starts only if no message of a higher priority is ready,
// so a queue that keeps the pool busy starves those of lower priorities. Running handlers are
// not interrupted: if handlers of a lower priority take long, give their consumer a
// Config.Concurrency below the pool's, so that some places stay free. Among consumers of one
// priority, handlers start in proportion to the weights while all of them have messages. A
// consumer that had none, or whose receives were slow, catches up with at most ten starts.
//
// A received message runs soon: each consumer receives for the places that are free and for
// its Config.Prefetch, for the latter only while no message of a higher priority waits. The
// queues cannot be asked together, so each consumer may receive up to ten messages more. A
// consumer that is paused, or whose breaker is open, takes no places.
//
// A message that seems to kill the process runs alone in the whole pool. All consumers of a
// pool share one lock, so that a pool can handle about as many messages a second as one
// consumer.
type Pool struct {
	mu      *machineLock // also guards its consumers; nil in the zero Pool
	private bool         // made for one consumer and its retry lane
	machine *consumer.Pool
	shells  map[*consumer.Machine]*Consumer // of the machines in it
}

// PoolConfig configures a [Pool]. The zero PoolConfig works.
type PoolConfig struct {
	// Concurrency is how many handlers run at once, of all queues together.
	// Default: 10.
	Concurrency int
}

// PoolStatus is a pool's state at one moment.
type PoolStatus struct {
	// Concurrency is how many handlers may run at once: see Pool.SetConcurrency.
	Concurrency int
	// Handlers is how many handlers run.
	Handlers int
	// Queues are the consumers of the pool that have not stopped, in descending order of
	// their priorities, and those of one priority in the order in which they were added.
	Queues []PoolQueue
}

// PoolQueue is one consumer of a pool.
type PoolQueue struct {
	// URL is that of its queue.
	URL string
	// Share is its share of the pool.
	Share Share
	// Handlers is how many of the pool's places it uses.
	Handlers int
	Status   Status
}

// Share decides when a consumer of a [Pool] has its turn. Consumers with the zero Share take
// equal turns.
type Share struct {
	// Priority is the consumer's rank: while a message of a higher priority is ready, no
	// handler of a lower priority starts. It may be negative. Default: 0.
	Priority int
	// Weight is the consumer's part among those of its priority: while both have messages,
	// a consumer of weight 3 starts three handlers for each that one of weight 1 starts.
	// From 1 to 1,000. Default: 1.
	Weight int
}

const maxWeight = 1000

func (s Share) withDefaults() Share {
	s.Weight = cmp.Or(s.Weight, 1)
	return s
}

// validate returns every problem of s. name is what the errors call s.
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
	if err := validPoolConcurrency(cfg.Concurrency); err != nil {
		return nil, fmt.Errorf("making a pool: %w", err)
	}
	return newPool(cfg.Concurrency), nil
}

func newPool(concurrency int) *Pool {
	return &Pool{mu: newMachineLock(), machine: consumer.NewPool(concurrency), shells: make(map[*consumer.Machine]*Consumer)}
}

func validPoolConcurrency(n int) error {
	if n < 1 || n > maxConcurrent {
		return fmt.Errorf("reprise: a pool's concurrency of %d is out of range: set 1 to %d handlers", n, maxConcurrent)
	}
	return nil
}

// Run runs every consumer of the pool until ctx ends. Then all drain at the same time, each
// within its StopBudget. Run returns nil if all have drained, otherwise the joined errors of
// [Consumer.Run]. To stop consumers at different times, call their Run instead, each with its
// own context. Run fails if the pool has no consumers, or if one was run already.
func (p *Pool) Run(ctx context.Context) error {
	var all []*Consumer
	if p.mu != nil && !p.mu.section(func() {
		for m := range p.machine.Each {
			all = append(all, p.shells[m])
		}
	}) {
		return errBroken
	}
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

// SetConcurrency changes how many handlers may run at once, from 1 to 100,000; at first that
// is PoolConfig.Concurrency. Running handlers are not interrupted. Consumers whose
// Config.Concurrency was not set may use all places. It may be called at any time from any
// goroutine.
func (p *Pool) SetConcurrency(n int) error {
	if err := validPoolConcurrency(n); err != nil {
		return err
	}
	if p.mu == nil {
		return errZeroPool
	}
	if !p.mu.section(func() {
		now := time.Now()
		p.machine.SetConcurrency(n, now)
		p.finishSection(now)
	}) {
		return errBroken
	}
	return nil
}

var errZeroPool = errors.New("the pool is the zero Pool: make it with NewPool")

// Status says what the pool and its consumers are doing. It may be called at any
// time from any goroutine.
func (p *Pool) Status() (s PoolStatus) {
	if p.mu == nil {
		return PoolStatus{}
	}
	intact := p.mu.section(func() {
		s = p.statusWith(func(c *Consumer) Status { return statusOf(c.guarded.Status(time.Now()), c.client.counts()) })
	})
	if !intact {
		p.mu.Lock()
		defer p.mu.Unlock()
		s = p.statusWith((*Consumer).brokenStatus)
	}
	return s
}

// statusWith is Status, with the given status of each consumer. The caller holds the lock.
func (p *Pool) statusWith(statusOf func(*Consumer) Status) PoolStatus {
	s := PoolStatus{Concurrency: p.machine.Concurrency()}
	for m := range p.machine.Each {
		shell := p.shells[m]
		q := PoolQueue{URL: shell.queue.url, Share: Share(m.PoolShare()), Handlers: m.Handlers(), Status: statusOf(shell)}
		s.Handlers += q.Handlers
		s.Queues = append(s.Queues, q)
	}
	return s
}
