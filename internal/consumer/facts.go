package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/plan"
)

// Facts is what the queue's attributes say.
type Facts struct {
	Plan       plan.Queue
	ARN        string
	Pending    bool  // the attributes could not be read yet, for a reason that may pass
	Partial    bool  // those of the dead-letter queue could not be read, for a reason that may pass
	DeadLetter Queue // zero if there is none
	Largest    int   // MaximumMessageSize in bytes; zero: not known

	unread        bool      // the attributes could not be read yet, for whatever reason
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

// queue returns what the rules of waits need to know of the queue.
func (f *Facts) queue() carry.Queue {
	return carry.Queue{MaxReceives: f.Plan.MaxReceives, Retention: f.retention(), Unread: f.unread}
}
