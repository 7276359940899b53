package reprise

import "fmt"

// RetryLane is a second queue for messages that have failed, so that they do not wait behind
// the backlog of the consumer's own queue. A message to be retried is sent there as a copy
// with its history, which is due when the policy says; all other copies are sent there too.
// [Consumer.Run] also consumes the lane, with the same handler and the same Config; set
// MaxAttempts, because the two queues' maxReceiveCounts may differ. Queue and lane share the
// places of their pool or, without one, those of Config.Concurrency. Each has its own Rate
// and breaker.
//
// Dead letters of the lane name the consumer's queue as their source, and go to Config.DeadLetterURL, else to the
// target of the lane's RedrivePolicy, else to that of the queue's. Copies need
// sqs:SendMessage on the lane; if it accepts none, messages are hidden in their own queue.
// Only standard queues can have a lane.
type RetryLane struct {
	// URL is that of the lane. It must be neither another queue's lane nor the dead-letter
	// queue. Default: empty; there is no lane.
	URL string
	// Share decides when the lane has its turn, beside its queue and the other consumers of
	// the pool. Default: the zero Share, one turn for each turn of the queue.
	Share Share
}

// A retry lane has its own consumer. The only difference is where copies are sent: a message
// to be retried is requeued to the lane, with its history, and the lane's consumer receives
// it there.

// RetryLane returns the consumer of Config.RetryLane, which runs when c does; nil if there is
// none. It has its own Status, and can be operated by itself.
func (c *Consumer) RetryLane() *Consumer { return c.retryLane }

// retryLaneQueue returns the queue to which copies are sent, queue itself if there is no lane,
// and every problem of Config.RetryLane. The defaults of c are filled in.
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
		refuse("it is Config.DeadLetterURL too, so messages that are given up would be run again: name another queue")
	}
	if c.Via == ViaVisibility {
		refuse("messages are sent there as copies: set Config.Via to ViaAuto")
	}
	return retryLane, append(problems, c.RetryLane.Share.validate("Config.RetryLane.Share")...)
}

// checkRetryLane returns an error if c's retry lane is that of another queue too: its dead
// letters would name the wrong queue as their source. The caller holds p.mu.
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

// hasRetryLane reports whether copies are sent to another queue.
func (c *Consumer) hasRetryLane() bool { return c.copyTo != c.queue }
