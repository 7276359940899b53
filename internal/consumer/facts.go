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
	Pending    bool  // the attributes could not be read yet, and will be read again
	DeadLetter Queue // zero if there is none
	Largest    int   // MaximumMessageSize in bytes; zero: not known

	refusedUntil  time.Time // until then the dead-letter queue accepts no copies, for a lasting reason
	noCopiesUntil time.Time // the same of the queue itself, or its retry lane
}

// retention returns how long the queue keeps a message; SQS's default if that is not known.
func (f *Facts) retention() time.Duration {
	if f.Plan.Retention == 0 {
		return plan.DefaultRetention
	}
	return f.Plan.Retention
}

// learnEvery is the time between two attempts to read the queue's attributes.
const learnEvery = time.Minute

// Policy returns the policy with the queue's limits filled in.
func (c *Machine) Policy() retry.Policy { return c.policy }

// Learned takes in the queue's attributes, and returns the policy with their limits filled
// in.
func (c *Machine) Learned(f Facts) retry.Policy {
	c.facts = f
	c.policy.MaxAttempts = plan.MaxAttempts(c.Retry, f.Plan)
	return c.policy
}

// Unlearned takes in that the attributes could not be read: f is what is known without them.
func (c *Machine) Unlearned(f Facts) { c.facts = f }

// LearnLater plans another attempt to read the queue's attributes.
func (c *Machine) LearnLater() {
	c.alarms.After(c.now.Add(learnEvery), func(time.Time) {
		if !c.draining {
			c.want(Effect{Kind: Learn})
		}
	})
}
