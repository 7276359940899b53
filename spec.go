package reprise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// New returns a consumer of the queue at queueURL that runs h for each message. It checks
// everything that can be checked without a request, and returns all problems in one error. It
// starts nothing: see [Consumer.Run]. A *sqs.Client is a [Client].
func New(c Client, queueURL string, h Handler, cfg Config) (*Consumer, error) {
	return spec{client: c, url: queueURL, handler: h, cfg: cfg}.consumer()
}

// NewBatchConsumer returns a consumer of the queue at queueURL that runs h for
// batches of messages. Otherwise it is like [New].
func NewBatchConsumer(c Client, queueURL string, h BatchHandler, cfg BatchConfig) (*Consumer, error) {
	return spec{client: c, url: queueURL, batchHandler: h, batch: &cfg, cfg: cfg.Config}.consumer()
}

// Add makes a consumer as [New] does, and adds it to the pool. By default it may take all of
// the pool's places; its Config.Concurrency limits that. A consumer that is added while the
// pool runs must be run by its own [Consumer.Run].
func (p *Pool) Add(c Client, queueURL string, h Handler, s Share, cfg Config) (*Consumer, error) {
	return spec{client: c, url: queueURL, handler: h, pool: p, share: s, cfg: cfg}.consumer()
}

// AddBatch is [Pool.Add] for a consumer as [NewBatchConsumer] makes it. A batch takes
// one place and one turn.
func (p *Pool) AddBatch(c Client, queueURL string, h BatchHandler, s Share, cfg BatchConfig) (*Consumer, error) {
	return spec{client: c, url: queueURL, batchHandler: h, batch: &cfg, pool: p, share: s, cfg: cfg.Config}.consumer()
}

// spec has the arguments of New, NewBatchConsumer, Pool.Add and Pool.AddBatch. The consumer
// of the retry lane is made of the same spec.
type spec struct {
	client       Client
	url          string
	handler      Handler      // for consumers of single messages
	batchHandler BatchHandler // for consumers of batches
	batch        *BatchConfig // nil: of single messages
	pool         *Pool        // nil: the consumer has its places to itself
	share        Share        // of pool
	cfg          Config
}

// consumer makes the consumer and, if it has a retry lane, that of the lane, and adds them to
// their pool.
func (s spec) consumer() (*Consumer, error) {
	withRetryLane := s.cfg.RetryLane != RetryLane{}
	if withRetryLane && s.pool == nil {
		s.pool = newPool(cmp.Or(s.cfg.Concurrency, defaultConcurrency))
		s.pool.private = true
		s.cfg.Concurrency = 0 // all of it
	}
	share, whole := s.share, s.cfg.Concurrency == 0
	c, err := s.build()
	if err != nil {
		return nil, fmt.Errorf("making a consumer: %w", err)
	}
	if withRetryLane {
		s.url, s.share, s.cfg.RetryLane = s.cfg.RetryLane.URL, s.cfg.RetryLane.Share, RetryLane{}
		c.retryLane, err = s.build()
		if err != nil {
			return nil, fmt.Errorf("making the consumer of Config.RetryLane: %w", err)
		}
		c.retryLane.retryLaneOf = c
		c.retryLane.guarded.SetRetryLaneOf(c.guarded)
	}
	if s.pool != nil {
		intact := s.pool.mu.section(func() {
			if err = s.pool.checkRetryLane(c); err != nil {
				return
			}
			s.pool.admit(c, share, whole)
			if withRetryLane {
				s.pool.admit(c.retryLane, s.share, whole)
			}
		})
		if !intact {
			err = errBroken
		}
		if err != nil {
			return nil, fmt.Errorf("making a consumer: %w", err)
		}
	}
	return c, nil
}

// build makes one consumer, or returns all problems of its spec.
func (s spec) build() (*Consumer, error) {
	var problems []error
	if s.client == nil {
		problems = append(problems, errors.New("the SQS client is nil: pass sqs.NewFromConfig(cfg)"))
	}
	queue, err := parseQueueURL(s.url)
	if err != nil {
		problems = append(problems, err)
	}
	if s.pool != nil {
		size := s.pool.size()
		if size == 0 {
			problems = append(problems, errZeroPool)
		}
		s.cfg.Concurrency = cmp.Or(s.cfg.Concurrency, size)
		problems = append(problems, s.share.validate("Share")...)
	}
	batch, wrong := s.batches()
	problems = append(problems, wrong...)
	if batch.Size > 0 && s.cfg.Prefetch == 0 {
		s.cfg.Prefetch = max(defaultPrefetch, min(batch.Size, maxPrefetch))
	}
	cfg := s.cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		problems = append(problems, err)
	}
	if dead, deadErr := parseQueueURL(cfg.DeadLetterURL); err == nil && deadErr == nil && dead == queue {
		problems = append(problems, fmt.Errorf("Config.DeadLetterURL %q is the queue itself: name another, or leave it empty for the target of the queue's RedrivePolicy", cfg.DeadLetterURL))
	}
	copyTo, wrong := cfg.retryLaneQueue(queue)
	problems = append(problems, wrong...)
	if queue.fifo && cfg.Via == ViaRequeue {
		problems = append(problems, errors.New("Config.Via is requeue, but on a FIFO queue a copy would come out of turn: set ViaAuto or ViaVisibility"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}

	c := &Consumer{
		cfg:          cfg,
		queue:        queue,
		copyTo:       copyTo,
		batch:        batch,
		log:          slog.New(safeLog{cfg.Logger.With("queue", queue.name).Handler()}),
		handler:      s.handler,
		batchHandler: s.batchHandler,
		mu:           newMachineLock(),
		emptied:      make(chan struct{}, 1),
		pollLimit:    deadline{limit: cfg.LongPoll + pollGrace},
		settleLimit:  deadline{limit: settleTimeout},
	}
	c.platform = &system{Consumer: c}
	c.callers.do = c.runEffect
	c.workers.handlers, c.workers.do = true, func(struct{}) { c.work() }
	if batch.Size > 0 {
		c.workers.do = func(struct{}) { c.workBatches() }
	}
	c.cfg.Retry = guarded(cfg.Retry, func(problem string) { c.complain("policy", problem) })
	c.client.Client = s.client
	if f := cfg.Observer.Call; f != nil {
		c.client.observe = func(ctx context.Context, e Call) { c.tell(func() { f(ctx, e) }) }
	}
	c.guarded = consumer.New(c.machineSettings())
	return c, nil
}

// machineSettings returns the settings of c's machine.
func (c *Consumer) machineSettings() consumer.Settings {
	cfg := &c.cfg
	return consumer.Settings{
		Settings:      c.planSettings(),
		Queue:         c.queue.plain(),
		CopyTo:        c.copyTo.plain(),
		Retry:         cfg.Retry,
		Concurrency:   cfg.Concurrency,
		Prefetch:      cfg.Prefetch,
		Batch:         c.batch,
		Rate:          cfg.Rate,
		LongPoll:      cfg.LongPoll,
		PollTimeout:   cfg.LongPoll + pollGrace + limitSlack,
		StopBudget:    cfg.StopBudget,
		SoftBudget:    c.softBudget(),
		InFlightQuota: cfg.InFlightQuota,
		FIFO:          consumer.FIFO(cfg.FIFO),
		Seed:          cmp.Or(cfg.seed, rand.Uint64()),
		BreakerOff:    cfg.Outage.Off,
		Threshold:     cfg.Outage.Threshold,
		Keyed:         cfg.Outage.Key != nil,
		HasProbe:      cfg.Outage.Probe != nil,
		TellSettled:   cfg.Observer.Settled != nil,
		AfterDelete:   cfg.AfterDelete != nil,
	}
}

// batches returns the limits of batches, zero for a consumer of single messages, and every
// problem of the handler and of these limits.
func (s spec) batches() (consumer.Batch, []error) {
	if s.batch == nil {
		if f, isFunc := s.handler.(HandlerFunc); s.handler == nil || isFunc && f == nil {
			return consumer.Batch{}, []error{errors.New("the handler is nil: pass a Handler, a HandlerFunc or JSON(f)")}
		}
		return consumer.Batch{}, nil
	}
	var problems []error
	if f, isFunc := s.batchHandler.(BatchHandlerFunc); s.batchHandler == nil || isFunc && f == nil {
		problems = append(problems, errors.New("the handler is nil: pass a BatchHandler or a BatchHandlerFunc"))
	}
	b := s.batch.batchDefaults()
	if wrong := b.validateBatch(); len(wrong) > 0 {
		problems = append(problems, wrong...)
	} else if n := cmp.Or(s.cfg.Concurrency, defaultConcurrency); n <= maxConcurrent && n*b.Size > maxConcurrent {
		problems = append(problems, fmt.Errorf("Config.Concurrency is %d and BatchConfig.Size %d: lower one, to at most %d messages in handlers at once", n, b.Size, maxConcurrent))
	}
	return consumer.Batch{Size: b.Size, Linger: b.Linger, Bytes: b.Bytes}, problems
}

// size returns how many handlers may run at once.
func (p *Pool) size() int {
	if p.mu == nil { // the zero Pool
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.Concurrency()
}

// admit makes c one of p's. If whole is set it may use all of p. It is called with the lock
// held.
func (p *Pool) admit(c *Consumer, s Share, whole bool) {
	c.pool, c.mu = p, p.mu
	p.shells[c.guarded] = c
	p.machine.Join(c.guarded, consumer.Share(s.withDefaults()), whole)
}
