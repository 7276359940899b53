package reprise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
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
	mu          sync.Mutex // of its consumers too
	private     bool       // a consumer's and its retry lane's, which know no other
	concurrency int
	floor       floor
	tiers       []*tier             // by priority, the highest first
	shells      map[*core]*Consumer // of those that are in tiers
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
	p := &Pool{}
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
	for c := range p.consumers {
		all = append(all, p.shells[c])
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
	return p.concurrency
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
	defer func() {
		p.epilogue(nil, now)
		p.goOn(now)
	}()
	p.concurrency = n
	for c := range p.consumers {
		c.takeWhole()
	}
	return nil
}

// Status says what the pool and its consumers are doing. It may be called at any
// time from any goroutine.
func (p *Pool) Status() PoolStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	s := PoolStatus{Concurrency: p.concurrency}
	for c := range p.consumers {
		q := PoolQueue{URL: c.queue.url, Share: c.share.Share, Handlers: c.handlers(), Status: c.status(now, p.shells[c].client.counts())}
		s.Handlers += q.Handlers
		s.Queues = append(s.Queues, q)
	}
	return s
}

// tier is the consumers of one priority. They take turns by start-time fair queueing
// (Goyal, Vin and Cheng, 1996): each start takes up a time of one by the weight, and
// the one that is the least far goes first.
type tier struct {
	priority  int
	consumers []*core
	clock     float64 // how far the latest start was
}

// share is a consumer's part of its pool.
type share struct {
	Share
	tier  *tier
	time  float64 // how far its next start is
	whole bool    // Config.Concurrency was left to the pool
}

// maxLag is how many starts a consumer may be behind its share, and catch up with,
// when it has had nothing to start: as many as one receive brings.
const maxLag = maxBatch

// nextStart is how far c's next start is.
func (c *core) nextStart() float64 {
	return max(c.share.time, c.share.tier.clock-maxLag/float64(c.share.Weight))
}

// join makes c, and the consumer of its retry lane, two of p's.
func (p *Pool) join(c *Consumer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.checkRetryLane(&c.guarded); err != nil {
		return err
	}
	p.admit(&c.guarded, c)
	if c.retryLane != nil {
		p.admit(&c.retryLane.guarded, c.retryLane)
	}
	return nil
}

// admit makes c one of p's. The caller holds p.mu.
func (p *Pool) admit(c *core, shell *Consumer) {
	c.pool, shell.mu, c.floor = p, &p.mu, &p.floor
	at, found := slices.BinarySearchFunc(p.tiers, c.share.Priority, func(t *tier, priority int) int { return priority - t.priority })
	if !found {
		p.tiers = slices.Insert(p.tiers, at, &tier{priority: c.share.Priority})
	}
	t := p.tiers[at]
	t.consumers = append(t.consumers, c)
	c.share.tier, c.share.time = t, t.clock
	if p.shells == nil {
		p.shells = make(map[*core]*Consumer)
	}
	p.shells[c] = shell
	c.takeWhole() // which may have changed since the defaults were filled in
}

// takeWhole lets c use all of its pool, if Config.Concurrency was left to that.
func (c *core) takeWhole() {
	if c.share.whole {
		c.dials.concurrency = min(c.pool.concurrency, maxConcurrent/c.batchSize())
	}
}

// closed takes c, which is closed, out of p when none of its handlers is left. The
// caller holds p.mu.
func (p *Pool) closed(c *core) {
	if f := &p.floor; f.owner == c {
		f.next, f.running, f.owner = nil, nil, nil
		f.taken = time.Time{}
	}
	if t := c.share.tier; c.workers == 0 {
		t.consumers = slices.DeleteFunc(t.consumers, func(other *core) bool { return other == c })
		delete(p.shells, c)
	}
}

// consumers yields all of p's. The caller holds p.mu.
func (p *Pool) consumers(yield func(*core) bool) {
	for _, t := range p.tiers {
		for _, c := range t.consumers {
			if !yield(c) {
				return
			}
		}
	}
}

// grants says whether the worker of c that asks may start a handler. If not, it
// ends, and its place is another's. The caller holds p.mu.
func (p *Pool) grants(c *core) bool {
	return p.workers() <= p.concurrency && p.next(c, c.now) == c
}

// next is the consumer whose turn it is, of those that have a message to start and a
// worker for it: the one that asks, or a new one. nil if there is none. The caller
// holds p.mu.
func (p *Pool) next(asks *core, now time.Time) (first *core) {
	for _, t := range p.tiers {
		for _, c := range t.consumers {
			if (c == asks || c.workers < c.dials.concurrency) && c.nextUp(now) != nil && (first == nil || c.nextStart() < first.nextStart()) {
				first = c
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// charge counts the start of a handler of c against its share of its pool, if it has
// one.
func (c *core) charge() {
	if c.pool == nil {
		return
	}
	t, start := c.share.tier, c.nextStart()
	t.clock = max(t.clock, start)
	c.share.time = start + 1/float64(c.share.Weight)
}

// workers is how many places are taken.
func (p *Pool) workers() (n int) {
	for c := range p.consumers {
		n += c.workers
	}
	return n
}

// places is what messages of c's there is room for: open may start at once, left
// wait for a place too. The caller holds p.mu.
func (p *Pool) places(c *core) (left, open int) {
	others := 0
	for other := range p.consumers {
		if other != c {
			others += other.handlers() + other.coming(c.now)
		}
	}
	own := c.dials.concurrency - c.handlers()
	open = c.batchSize() * max(0, min(p.concurrency-c.handlers()-others, own))
	switch {
	case p.outranks(c):
		return open, open
	case open == 0 && own > 0 && others > 0:
		// Without a Prefetch it would never have anything to take its turn with.
		return max(c.cfg.Prefetch, c.batchSize()), open
	}
	return open + c.cfg.Prefetch, open
}

// coming is how many handlers of c are about to take places: for messages that may
// start, and for those that are being received, but for the one receive with which it
// waits for its queue.
func (c *core) coming(now time.Time) int {
	n := max(0, c.reserved-maxBatch)
	if c.nextUp(now) != nil {
		n += c.waiting - c.gates.shelved - c.groups.Counts().Blocked
	}
	return max(0, min((n+c.batchSize()-1)/c.batchSize(), c.dials.concurrency-c.handlers()))
}

// outranks says that a message of a higher priority than c's waits to be started.
// The caller holds p.mu.
func (p *Pool) outranks(c *core) bool {
	for _, t := range p.tiers {
		if t == c.share.tier {
			return false
		}
		for _, other := range t.consumers {
			if other.nextUp(c.now) != nil {
				return true
			}
		}
	}
	return false
}

// idle says that nothing runs, or is yet to be settled. The caller holds p.mu.
func (p *Pool) idle() bool {
	for c := range p.consumers {
		if c.running > c.hung || c.settling > 0 && !c.closed {
			return false
		}
	}
	return true
}

// ahead is how long what is here takes, by experience. The caller holds p.mu.
func (p *Pool) ahead() (total time.Duration) {
	for c := range p.consumers {
		handlers := (c.waiting + c.running + c.batchSize() - 1) / c.batchSize()
		total += c.taskTime.mean * time.Duration(handlers)
	}
	return total / time.Duration(p.concurrency)
}
