package consumer

import (
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	// learnEvery is about how often the queue's attributes are read: an operator may change
	// them at any time.
	learnEvery = 10 * time.Minute
	// relearnSoonest and relearnEvery are the shortest and the longest time until the next
	// reading after one that failed.
	relearnSoonest = 5 * time.Second
	relearnEvery   = time.Minute
)

// reading is the state of reading the queue's attributes.
type reading struct {
	next     alarms.Alarm // of the next reading; not set while one is under way, and if the shell reads only once
	last     time.Time    // the end of the last
	known    bool         // at least one has succeeded
	failures int          // in a row, that may pass
	count    int          // for the jitter
}

// Policy returns the policy with the queue's limits filled in.
func (c *Machine) Policy() retry.Policy { return c.policy }

// Learned takes in the queue's attributes, and returns the policy with their limits filled
// in. If they differ from those that were read before, messages that wait are looked at again.
func (c *Machine) Learned(f Facts) retry.Policy {
	old := c.facts
	if f.DeadLetter == old.DeadLetter {
		f.refusedUntil = old.refusedUntil
	}
	f.noCopiesUntil = old.noCopiesUntil
	c.facts = f
	c.policy.MaxAttempts = plan.MaxAttempts(c.Retry, f.Plan)
	c.readingEnded(f.Partial)
	c.reading.known = true
	c.lookAgain(&old)
	return c.policy
}

// Unlearned takes in that the attributes could not be read: f is what is known without them. What
// was read before stays.
func (c *Machine) Unlearned(f Facts) {
	c.readingEnded(f.Pending) // if it is denied, the next reading is not likely to differ
	if !c.reading.known {
		f.unread = true
		c.facts = f
	}
}

// readingEnded notes the end of a reading, which may have failed for a reason that may pass.
func (c *Machine) readingEnded(failed bool) {
	c.reading.last = c.now
	c.reading.failures++
	if !failed {
		c.reading.failures = 0
	}
}

// LearnLater plans the next reading of the queue's attributes. Those of several consumers
// that started together do not stay together.
func (c *Machine) LearnLater() {
	r := &c.reading
	wait := learnEvery
	if r.failures > 0 {
		wait = min(relearnEvery, relearnSoonest<<min(r.failures-1, 10))
	}
	r.count++
	wait += spread(wait/2, strconv.FormatUint(c.Seed, 16)+strconv.Itoa(r.count)) - wait/4
	r.next.Do = func(time.Time) {
		if !c.draining {
			c.want(Effect{Kind: Learn})
		}
	}
	c.alarms.Set(&r.next, c.now.Add(wait))
}

// doubtFacts has the attributes read again soon: SQS has refused a request that they
// permit.
func (c *Machine) doubtFacts() {
	if r := &c.reading; !r.next.At().IsZero() {
		c.alarms.Sooner(&r.next, r.last.Add(relearnEvery))
	}
}
