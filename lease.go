package reprise

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

const heartbeatTimeout = 5 * time.Second

// heartbeat renews the leases of up to ten messages in one request.
func (c *Consumer) heartbeat(batch []*consumer.Delivery) {
	var entries [maxBatch]consumer.Entry
	var requested time.Time
	if !c.enter(func(m *consumer.Machine) { requested, batch = m.Now(), m.Renew(batch, &entries) }) {
		return
	}
	replied := unanswered(len(batch))
	defer func() { // as in deliver
		c.enter(func(m *consumer.Machine) { m.Renewed(batch, &entries, &replied, requested) })
		c.tellSettled()
	}()
	if len(batch) == 0 {
		return
	}
	// The SDK must not retry: it could do so after the end of the lease. The machine soon
	// looks at the leases again, and knows which may still be renewed.
	ctx, cancel := context.WithTimeout(c.settleCtx, min(heartbeatTimeout, c.cfg.Lease/5))
	defer cancel()
	replied = c.changeVisibility(ctx, OpHeartbeat, entries[:len(batch)], withoutRetries)
}

// withoutRetries turns off the SDK's own retries for one call.
func withoutRetries(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }
