package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise"
)

// consumer is the consumer of a [Daemon] or of a [Worker], with its metrics and the means to
// stop it.
type consumer struct {
	*reprise.Consumer
	metrics *consumerMetrics // nil if it is not measured

	killed context.Context // ends when handlers must stop at once
	kill   context.CancelFunc
}

// killGrace is how long handlers have to notice that they must stop at once.
const killGrace = 3 * time.Second

// newConsumer makes a consumer of the queue at url. measured is false if nothing would show
// its metrics.
func newConsumer(client reprise.Client, url string, h reprise.Handler, cfg reprise.Config, measured bool) (_ *consumer, err error) {
	c := new(consumer)
	c.killed, c.kill = context.WithCancel(context.Background())
	if measured {
		if c.metrics, err = newConsumerMetrics(url); err != nil {
			return nil, err
		}
		cfg.Observer = reprise.Observers(c.metrics.telemetry.Observer(), cfg.Observer)
	}
	c.Consumer, err = reprise.New(client, url, c.stoppable(h), cfg)
	if err != nil {
		return nil, err
	}
	if c.metrics != nil {
		if _, err := c.metrics.telemetry.Watch(c.Consumer); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// start starts the consumer, and pushes the step that drains it. endPolls answers the
// consumer's long polls. It is called repeatedly until the consumer has drained, since one
// more may begin before the consumer learns of the stop; if it is nil, long polls return by
// themselves. drained, if not nil, is called when the consumer has drained.
func (c *consumer) start(ctx context.Context, fail context.CancelCauseFunc, steps *stopStack, endPolls, drained func()) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() {
		err := c.Run(running)
		if running.Err() == nil {
			fail(fmt.Errorf("the consumer ended by itself: %w", err))
		}
		if drained != nil {
			drained()
		}
		done <- err
	}()
	steps.push("the consumer", func(ctx context.Context) error {
		defer c.kill()
		stop()
		for ctx.Err() == nil {
			if endPolls != nil {
				endPolls()
			}
			select {
			case err := <-done:
				return err
			case <-ctx.Done():
			case <-time.After(endPollsEvery):
			}
		}
		c.kill()
		select {
		case err := <-done:
			return err
		case <-time.After(killGrace):
			return nil
		}
	})
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
