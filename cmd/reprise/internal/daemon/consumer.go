package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise"
)

// consumer is a consumer of the program's, measured, with what it takes to stop it: that
// of a [Daemon] or of a [Worker].
type consumer struct {
	*reprise.Consumer
	metrics *consumerMetrics // nil: it is not measured

	killed context.Context // ends when handlers must stop at once
	kill   context.CancelFunc
}

// killGrace is how long handlers may take to notice that they are to stop at once.
const killGrace = 3 * time.Second

// newConsumer makes a consumer of the queue at url. It is measured unless there is
// nowhere to see it.
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

// start consumes, and pushes the step that drains. endPolls ends the consumer's long
// polls, again and again until it has drained, since one more may begin before it
// learns of the stop; nil leaves them to return by themselves. drained is called when
// it has drained; nil: nothing is.
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

// stoppable ends the contexts of h when the program has to stop at once. Without
// it commands would outlive the program, since they run in groups of their own.
func (c *consumer) stoppable(h reprise.Handler) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(c.killed, func() { cancel(reprise.ErrStopping) })()
		return h.Handle(ctx, m)
	})
}
