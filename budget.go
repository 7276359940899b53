package reprise

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/reprise-sqs/reprise/internal/consumer"
)

// InFlight is how many messages of a queue SQS counts as in flight: received or hidden, by
// any consumer, and not yet deleted. When the quota is used up, receives bring no messages,
// mostly without an error: the queue seems empty.
type InFlight struct {
	// Queue is how many messages of the whole queue were in flight, Visible how many
	// waited to be received, both as SQS counts them: approximately, about a minute
	// before AsOf.
	Queue, Visible int
	// AsOf is when the counts were read: zero if never. They are read with the queue's
	// attributes, about every ten minutes, and more often only if the quota could matter, at
	// most once a minute.
	AsOf time.Time
	// Quota is how many may be in flight: Config.InFlightQuota.
	Quota int
	// Full reports whether receives bring nothing because the quota is used up.
	Full bool
}

// budgetTimeout ends a request for the queue's counts.
const budgetTimeout = 10 * time.Second

// countAttributes are what readInFlight reads.
var countAttributes = []types.QueueAttributeName{
	types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	types.QueueAttributeNameApproximateNumberOfMessages,
}

// readInFlight reads how many messages are in flight.
func (c *Consumer) readInFlight() {
	ctx, cancel := context.WithTimeout(c.settleCtx, budgetTimeout)
	defer cancel()
	attributes, err := c.attributes(ctx, c.queue.url, countAttributes...)
	c.look(func(m *consumer.Machine) {
		switch {
		case err == nil:
			counted(m, attributes)
		case denied(err):
			m.CountDenied(err)
		}
	})
}

// counted gives m the queue's counts, if attributes has them.
func counted(m *consumer.Machine, attributes map[string]string) {
	hidden, err := strconv.Atoi(attributes[string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)])
	if err != nil {
		return
	}
	visible, _ := strconv.Atoi(attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)]) // zero if it is absent
	m.Counted(hidden, visible)
}
