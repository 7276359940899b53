package reprise

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// settleTimeout is the time limit of a settlement, for connections that have died silently.
const settleTimeout = 30 * time.Second

// sendDeletes deletes up to ten messages.
func (c *Consumer) sendDeletes(asked []consumer.Entry) results {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(asked))
	for i := range asked {
		entries[i].Id = &positions[i]
		entries[i].ReceiptHandle = asked[i].Handle
	}
	ctx := c.settleLimit.context(c.settleCtx)
	var out *sqs.DeleteMessageBatchOutput
	err := c.client.call(ctx, OpDelete, len(entries), func() (int, error) {
		var err error
		out, err = c.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &c.queue.url, Entries: entries})
		if err != nil {
			return 0, err
		}
		return len(out.Failed), nil
	})
	if err != nil {
		out = &sqs.DeleteMessageBatchOutput{}
	}
	return sortReply(len(entries), len(out.Successful), func(i int) *string { return out.Successful[i].Id }, out.Failed, err)
}

// changeVisibility changes the visibility of up to ten messages.
func (c *Consumer) changeVisibility(ctx context.Context, op Operation, asked []consumer.Entry, opts ...func(*sqs.Options)) results {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(asked))
	for i := range asked {
		entries[i].Id = &positions[i]
		entries[i].ReceiptHandle = asked[i].Handle
		entries[i].VisibilityTimeout = asked[i].Seconds
	}
	var out *sqs.ChangeMessageVisibilityBatchOutput
	err := c.client.call(ctx, op, len(entries), func() (int, error) {
		var err error
		out, err = c.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &c.queue.url, Entries: entries}, opts...)
		if err != nil {
			return 0, err
		}
		return len(out.Failed), nil
	})
	if err != nil {
		out = &sqs.ChangeMessageVisibilityBatchOutput{}
	}
	return sortReply(len(entries), len(out.Successful), func(i int) *string { return out.Successful[i].Id }, out.Failed, err)
}
