package canned

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// Direct returns a client of q without HTTP and JSON: the lower bound of every figure. Ids of batch
// entries must be positions, "0", "1" and so on.
func (q *Queue) Direct() reprise.Client { return direct{q, messages()} }

type direct struct {
	queue  *Queue
	corpus *corpus
}

var queueAttributes = map[string]string{
	"QueueArn":               "arn:aws:sqs:us-east-1:123456789012:canned",
	"VisibilityTimeout":      "30",
	"MessageRetentionPeriod": "345600",
	"RedrivePolicy":          `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:canned-dead","maxReceiveCount":"1000"}`,
}

var errNoSends = errors.New("a canned queue takes no messages: its Work method makes them")

func (d direct) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	first, n := d.queue.take(ctx, int(max(1, in.MaxNumberOfMessages)))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &sqs.ReceiveMessageOutput{Messages: d.corpus.batch(first, n)}, nil
}

func (d direct) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	n := len(in.Entries)
	d.queue.deleted(n)
	return deleteReplies[n], nil
}

func (d direct) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	d.queue.others.Add(1)
	return visibilityReplies[len(in.Entries)], nil
}

func (d direct) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	d.queue.others.Add(1)
	return &sqs.GetQueueAttributesOutput{Attributes: queueAttributes}, nil
}

func (d direct) SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return nil, errNoSends
}

// deleteReplies and visibilityReplies confirm as many entries as their index.
var deleteReplies, visibilityReplies = func() (d [maxBatch + 1]*sqs.DeleteMessageBatchOutput, v [maxBatch + 1]*sqs.ChangeMessageVisibilityBatchOutput) {
	for n := range d {
		d[n], v[n] = &sqs.DeleteMessageBatchOutput{}, &sqs.ChangeMessageVisibilityBatchOutput{}
		for i := range n {
			id := fmt.Sprint(i)
			d[n].Successful = append(d[n].Successful, types.DeleteMessageBatchResultEntry{Id: &id})
			v[n].Successful = append(v[n].Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: &id})
		}
	}
	return d, v
}()
