package operate

import (
	"context"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/plan"
)

// AttributeReader is the part of *sqs.Client that Describe calls.
type AttributeReader interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Ref is a queue, and the client that reaches it.
type Ref struct {
	URL    string
	Client AttributeReader
}

// Attributes returns all attributes of a queue.
func (r Ref) Attributes(ctx context.Context) (map[string]string, error) {
	out, err := r.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &r.URL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

const (
	// describers is how many queues are described at once.
	describers = 8
	// maxProblem bounds how many bytes of an error of SQS are shown.
	maxProblem = 1000
)

// Describe asks for the attributes of queues. A queue whose attributes are denied, or that is
// gone meanwhile, gets a Problem; the error is that of ctx.
func Describe(ctx context.Context, queues []Ref) ([]Described, error) {
	described := make([]Described, len(queues))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(describers, len(queues)) {
		workers.Go(func() {
			for i := range next {
				described[i].URL = queues[i].URL
				var err error
				if described[i].Attributes, err = queues[i].Attributes(ctx); err != nil {
					described[i].Problem = terminal.Line(err.Error(), maxProblem)
				}
			}
		})
	}
	for i := range queues {
		next <- i
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return described, nil
}

// DeadLetterURL returns the URL of the queue's dead-letter queue, which SQS requires to be of the
// same region and account; empty if there is none.
func (d *Described) DeadLetterURL() string {
	q, err := plan.ReadQueue(d.Attributes)
	if err != nil || q.DeadLetterARN == "" || !near(q.DeadLetterARN, q.ARN) {
		return ""
	}
	return strings.TrimSuffix(d.URL, NameOf(d.URL)) + lastPart(q.DeadLetterARN)
}

// SourceLister lists the queues that name another as their dead-letter queue. An [sqs.Client] is one.
type SourceLister interface {
	ListDeadLetterSourceQueues(ctx context.Context, in *sqs.ListDeadLetterSourceQueuesInput, opts ...func(*sqs.Options)) (*sqs.ListDeadLetterSourceQueuesOutput, error)
}

// IsDeadLetterQueue reports whether a queue names the one at url as its dead-letter queue.
func IsDeadLetterQueue(ctx context.Context, client SourceLister, url string) (bool, error) {
	one := int32(1)
	out, err := client.ListDeadLetterSourceQueues(ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &url, MaxResults: &one})
	if err != nil {
		return false, err
	}
	return len(out.QueueUrls) > 0, nil
}
