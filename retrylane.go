package reprise

import "fmt"

// RetryLane is a queue beside a consumer's own that what has failed goes to, so that
// it does not wait behind that queue's backlog: what is to be retried is sent there, as
// a copy with its history that is due when the policy says, and so are all other copies.
// [Consumer.Run] consumes it too, with the same handler and the same Config, MaxAttempts
// included, which is best set. The two share the places of their pool; without one, those
// of Config.Concurrency. Each has its own Rate and breaker.
//
// Dead letters of the lane name the consumer's queue as their source. Sending there needs
// sqs:SendMessage on the lane; where it takes nothing, retries are hidden in their own
// queue. Standard queues only.
type RetryLane struct {
	// URL is the lane's. It is no other queue's lane, and not the dead-letter queue.
	// Default: none; there is no lane.
	URL string
	// Share is when the lane has its turn, beside its queue and the rest of the pool: one
	// turn to one of the queue's by default.
	Share Share
}

// A retry lane has a consumer of its own. Nothing about it is new but where copies go:
// what is to be retried is requeued to the lane, with its history, and the lane's
// consumer takes it from there.

// RetryLane returns the consumer of Config.RetryLane, which runs when c does: for its
// Status, and to operate it by itself. It is nil if there is none.
func (c *Consumer) RetryLane() *Consumer { return c.retryLane }

// retryLaneQueue returns the queue that copies go to, and what is wrong with Config.RetryLane
// if that is another than queue, the consumer's own. c has its defaults filled in.
func (c Config) retryLaneQueue(queue queueURL) (retryLane queueURL, problems []error) {
	if c.RetryLane == (RetryLane{}) {
		return queue, nil
	}
	retryLane, err := parseQueueURL(c.RetryLane.URL)
	if err != nil {
		return queue, []error{fmt.Errorf("Config.RetryLane.URL: %w", err)}
	}
	refuse := func(problem string) {
		problems = append(problems, fmt.Errorf("Config.RetryLane.URL is %q: %s", c.RetryLane.URL, problem))
	}
	switch {
	case retryLane == queue:
		refuse("it is the queue itself: name another, or leave it empty")
	case queue.fifo || retryLane.fifo:
		refuse("on a FIFO queue a retry would come out of turn: leave it empty")
	}
	if dead, err := parseQueueURL(c.DeadLetterURL); err == nil && dead == retryLane {
		refuse("it is Config.DeadLetterURL too, so that what is given up would be run again: name another")
	}
	if c.Via == ViaVisibility {
		refuse("what goes there are copies: set Config.Via to ViaAuto")
	}
	return retryLane, append(problems, c.RetryLane.Share.validate("Config.RetryLane.Share")...)
}

// checkRetryLane returns an error if c's retry lane is that of another queue too: what it
// gives up would name the wrong one as its source. The caller holds p.mu.
func (p *Pool) checkRetryLane(c *Consumer) error {
	if !c.hasRetryLane() {
		return nil
	}
	for _, other := range p.shells {
		if other.queue != c.queue && other.hasRetryLane() && other.copyTo == c.copyTo && !other.guarded.Closed() {
			return fmt.Errorf("%s is the retry lane of both %s and %s: give each its own", c.copyTo.name, c.queue.name, other.queue.name)
		}
	}
	return nil
}

// hasRetryLane says that what is retried goes to another queue.
func (c *Consumer) hasRetryLane() bool { return c.copyTo != c.queue }
