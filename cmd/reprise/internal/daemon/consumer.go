package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise"
)

// Consume is a queue that a [Daemon] or a [Worker] consumes.
type Consume struct {
	// Client and QueueURL lead to the queue.
	Client   reprise.Client
	QueueURL string
	Handler  reprise.Handler
	Config   reprise.Config
	// Target is where its messages go, as operators may read it: without secrets. Default: it is not told.
	Target string
	// Pool has the places of the handlers, of which Share says when the queue has its turn.
	// Default: places of its own, as many as Config.Concurrency.
	Pool  *reprise.Pool
	Share reprise.Share
	// Settings is a text of all settings of the consumer: when consumers are replaced, one of the
	// same queue with the same Settings keeps running.
	Settings string
	// Stopped is called when the consumer has drained; of a Daemon's, while the server still
	// answers. Default: nothing is called.
	Stopped func()
}

// consumer is one of a [Daemon] or of a [Worker], with its metrics and the means to stop it.
type consumer struct {
	*reprise.Consumer
	of      Consume
	metrics *consumerMetrics // nil if it is not measured
	price   float64          // see Watching.RequestPrice

	stop  context.CancelFunc // of Run's context
	ended chan struct{}      // closed when Run has returned err
	err   error

	killed context.Context // ends when handlers must stop at once
	kill   context.CancelFunc
}

// killGrace is how long handlers have to notice that they must stop at once.
const killGrace = 3 * time.Second

// newConsumer makes a consumer. measured is false if nothing would show its metrics.
func newConsumer(of Consume, measured bool, watching Watching) (_ *consumer, err error) {
	c := &consumer{of: of, ended: make(chan struct{}), price: watching.RequestPrice}
	c.killed, c.kill = context.WithCancel(context.Background())
	cfg := of.Config
	if measured {
		if c.metrics, err = newConsumerMetrics(of.QueueURL, watching.Exporter.Tracers()); err != nil {
			return nil, err
		}
		cfg.Observer = reprise.Observers(c.metrics.telemetry.Observer(), cfg.Observer)
	}
	if c.Consumer, err = of.make(c.stoppable(of.Handler), cfg); err != nil {
		return nil, err
	}
	if c.metrics != nil {
		if _, err := c.metrics.telemetry.Watch(c.Consumer); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// CheckConsume makes the consumer as [Worker.Consume] will, and drops it.
func CheckConsume(of Consume) error {
	_, err := of.make(of.Handler, of.Config)
	return err
}

func (of *Consume) make(h reprise.Handler, cfg reprise.Config) (*reprise.Consumer, error) {
	if of.Pool != nil {
		return of.Pool.Add(of.Client, of.QueueURL, h, of.Share, cfg)
	}
	return reprise.New(of.Client, of.QueueURL, h, cfg)
}

// keepPaused pauses c, or keys of it, as an operator has paused the consumer of the same queue that
// it replaces: settings that change do not end a pause.
func (c *consumer) keepPaused(replaced []*consumer) {
	for _, old := range replaced {
		if old.of.QueueURL != c.of.QueueURL {
			continue
		}
		status := old.Status()
		if status.Paused {
			c.Pause()
		}
		for _, b := range status.Breakers {
			if b.Paused {
				_ = c.PauseKey(b.Key) // it fails if messages have no keys any more
			}
		}
	}
}

// start starts the consumer.
func (c *consumer) start(ctx context.Context, fail context.CancelCauseFunc) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go func() {
		defer close(c.ended)
		c.err = c.Run(running)
		if running.Err() == nil {
			fail(fmt.Errorf("the consumer of %s ended by itself: %w", c.of.QueueURL, c.err))
		}
		c.logCost()
		if c.of.Stopped != nil {
			c.of.Stopped()
		}
	}()
}

// drain stops the consumer within its stop budget, or at once if ctx ends. endPolls answers
// its long polls. It is called repeatedly until the consumer has drained, since one more may
// begin before the consumer learns of the stop; if it is nil, long polls return by
// themselves. Several goroutines may call drain.
func (c *consumer) drain(ctx context.Context, endPolls func()) error {
	defer c.kill()
	if c.stop == nil { // replaced before Run has started it
		if c.of.Stopped != nil {
			c.of.Stopped()
		}
		return nil
	}
	c.stop()
	for ctx.Err() == nil {
		if endPolls != nil {
			endPolls()
		}
		select {
		case <-c.ended:
			return c.err
		case <-ctx.Done():
		case <-time.After(endPollsEvery):
		}
	}
	c.kill()
	select {
	case <-c.ended:
		return c.err
	case <-time.After(killGrace):
		return nil
	}
}

// stoppable ends the contexts of h when the program must stop at once. Otherwise commands
// would outlive the program, since they run in process groups of their own.
func (c *consumer) stoppable(h reprise.Handler) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(c.killed, func() { cancel(reprise.ErrStopping) })()
		return h.Handle(ctx, m)
	})
}
