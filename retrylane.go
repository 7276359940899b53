package reprise

import "fmt"

// A retry lane is a second queue for what has failed, so that it does not wait behind
// the first one's backlog. Nothing about it is new but where copies go: what is to be
// retried is requeued to the lane, with its history, and a consumer of the lane's takes
// it from there. The two share a pool, by which each knows the other.

// laneProblems returns what is wrong with Config.RetryLane, and the queue that it
// names. c has its defaults filled in, and is of queue.
func (c Config) laneProblems(queue queueURL) (lane queueURL, problems []error) {
	if c.RetryLane == "" {
		return queue, nil
	}
	lane, err := parseQueueURL(c.RetryLane)
	if err != nil {
		return queue, []error{fmt.Errorf("Config.RetryLane: %w", err)}
	}
	refuse := func(problem string) {
		problems = append(problems, fmt.Errorf("Config.RetryLane is %q: %s", c.RetryLane, problem))
	}
	switch {
	case lane == queue:
		refuse("it is the queue itself: name another, or leave it empty")
	case queue.fifo || lane.fifo:
		refuse("on a FIFO queue a retry would come out of turn: leave it empty")
	}
	if dead, err := parseQueueURL(c.DeadLetterURL); err == nil && dead == lane {
		refuse("it is Config.DeadLetterURL too, so that what is given up would be run again: name another")
	}
	if c.Pool == nil {
		refuse("its consumer shares a pool with this one: set Config.Pool")
	}
	if c.Via == ViaVisibility {
		refuse("what goes there are copies: set Config.Via to ViaAuto")
	}
	return lane, problems
}

// knowLane notes whose retry lane is whose, of c and the others of its pool. The caller
// holds c.mu.
func (c *Consumer) knowLane() {
	for other := range c.pool.consumers {
		if other.hasLane() && other.copyTo == c.queue {
			c.share.laneOf = other
		}
		if c.hasLane() && c.copyTo == other.queue {
			other.share.laneOf = c
		}
	}
}

// checkLane returns an error unless c's retry lane, if it has one, is its own and has a
// consumer: what is sent there would otherwise stay there.
func (c *Consumer) checkLane() error {
	if c.cfg.RetryLane == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	consumed := false
	for other := range c.pool.consumers {
		switch {
		case other.closed: // a handler of it has not returned, nothing more
		case other.queue == c.copyTo:
			consumed = true
		case other.queue != c.queue && other.hasLane() && other.copyTo == c.copyTo:
			return fmt.Errorf("reprise: %s is the retry lane of both %s and %s: give each its own", c.copyTo.name, c.queue.name, other.queue.name)
		}
	}
	if !consumed {
		return fmt.Errorf("reprise: no consumer of the pool is of the retry lane %s of %s: make one before Run", c.copyTo.name, c.queue.name)
	}
	return nil
}

// hasLane says that what is retried goes to another queue.
func (c *Consumer) hasLane() bool { return c.copyTo != c.queue }

// source is the queue that d, which c gives up, came from: c's own, or the one whose
// retry lane that is. Its ARN where that is known, else its URL. The caller holds c.mu.
func (c *Consumer) source(d *delivery) string {
	from := c
	if c.share.laneOf != nil && d.history != nil {
		from = c.share.laneOf
	}
	if from.facts.arn != "" {
		return from.facts.arn
	}
	return from.queue.url
}
