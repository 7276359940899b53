package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Facts is what the queue's attributes say.
type Facts struct {
	Plan       plan.Queue
	ARN        string
	Pending    bool  // they could not be read yet, and will be tried again
	DeadLetter Queue // zero if there is none
	Largest    int   // bytes that a message may have; zero: not known

	refusedUntil  time.Time // the dead-letter queue takes no copies, for a lasting reason
	noCopiesUntil time.Time // nor does the queue itself
}

// retention is how long the queue keeps a message; SQS's default, where that is not
// known.
func (f *Facts) retention() time.Duration {
	if f.Plan.Retention == 0 {
		return plan.DefaultRetention
	}
	return f.Plan.Retention
}

// learnEvery is the time between two attempts to read the queue's attributes.
const learnEvery = time.Minute

// Policy is the policy with the queue's limits filled in.
func (c *Machine) Policy() retry.Policy { return c.policy }

// Learned takes in what the queue's attributes say, and returns the policy as it is from
// now on.
func (c *Machine) Learned(f Facts) retry.Policy {
	c.facts = f
	c.policy.MaxAttempts = plan.MaxAttempts(c.Retry, f.Plan)
	return c.policy
}

// Unlearned takes in that they could not be read: f is what is known without them.
func (c *Machine) Unlearned(f Facts) { c.facts = f }

// LearnLater has what could not be read tried again, until it can be.
func (c *Machine) LearnLater() {
	c.alarms.After(c.now.Add(learnEvery), func(time.Time) {
		if !c.draining {
			c.want(Effect{Kind: Learn})
		}
	})
}
