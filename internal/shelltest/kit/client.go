// Package kit is what the tests of several subjects share: a client that keeps what it is asked, handlers that keep what
// they run, a dependency that is down at times, and what reads and forges a message's history.
package kit

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

// NewClient returns an SQS client of endpoint that repeats no failed call.
func NewClient(endpoint string, opts ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
		Retryer: aws.NopRetryer{},
	}, opts...)
}

// Spy passes calls on and keeps their inputs. If a hook is set, it is called instead of the client;
// it may call the client itself.
type Spy struct {
	reprise.Client

	Receive    hook[sqs.ReceiveMessageInput, sqs.ReceiveMessageOutput]
	Delete     hook[sqs.DeleteMessageBatchInput, sqs.DeleteMessageBatchOutput]
	Hide       hook[sqs.ChangeMessageVisibilityBatchInput, sqs.ChangeMessageVisibilityBatchOutput]
	Send       hook[sqs.SendMessageBatchInput, sqs.SendMessageBatchOutput]
	Attributes hook[sqs.GetQueueAttributesInput, sqs.GetQueueAttributesOutput]

	Mu      sync.Mutex // of what follows
	Deletes []*sqs.DeleteMessageBatchInput
	Hides   []*sqs.ChangeMessageVisibilityBatchInput
	Sends   []*sqs.SendMessageBatchInput
	order   []string // of these calls: "delete", "hide", "send"
}

// hook answers in place of the client.
type hook[In, Out any] func(context.Context, *In) (*Out, error)

// through makes a call, or has the hook make it.
func through[In, Out any](ctx context.Context, in *In, opts []func(*sqs.Options), h hook[In, Out], call func(context.Context, *In, ...func(*sqs.Options)) (*Out, error)) (*Out, error) {
	if h != nil {
		return h(ctx, in)
	}
	return call(ctx, in, opts...)
}

func (s *Spy) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return through(ctx, in, opts, s.Receive, s.Client.ReceiveMessage)
}

func (s *Spy) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	s.Mu.Lock()
	s.Deletes = append(s.Deletes, in)
	s.order = append(s.order, "delete")
	s.Mu.Unlock()
	return through(ctx, in, opts, s.Delete, s.Client.DeleteMessageBatch)
}

func (s *Spy) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	s.Mu.Lock()
	s.Hides = append(s.Hides, in)
	s.order = append(s.order, "hide")
	s.Mu.Unlock()
	return through(ctx, in, opts, s.Hide, s.Client.ChangeMessageVisibilityBatch)
}

func (s *Spy) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	s.Mu.Lock()
	s.Sends = append(s.Sends, in)
	s.order = append(s.order, "send")
	s.Mu.Unlock()
	return through(ctx, in, opts, s.Send, s.Client.SendMessageBatch)
}

func (s *Spy) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, opts ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return through(ctx, in, opts, s.Attributes, s.Client.GetQueueAttributes)
}

// Calls returns the calls that were made, in order.
func (s *Spy) Calls() []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Clone(s.order)
}

// HideCount returns the number of visibility requests so far.
func (s *Spy) HideCount() int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return len(s.Hides)
}

// CloseSender closes s, and fails the test if a message is left.
func CloseSender(t *testing.T, s *reprise.Sender) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if unsent, err := s.Close(ctx); err != nil || len(unsent) > 0 {
		t.Errorf("close: %d messages unsent, %v", len(unsent), err)
	}
}
