package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
)

// Client is the part of *sqs.Client that a pass calls.
type Client interface {
	AttributeReader
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// Pass visits the messages of a queue, each once. To SQS a look is a receive: it raises the
// receive count, and hides the message until the end of the pass, when all messages that it did not
// delete are given back at once. All commands that receive the messages of a queue do it by a pass.
type Pass struct {
	Client   Client
	QueueURL string
	Keys     []reprise.SigningKey // for the stories of dead letters, which Run reads
	// Most is how many messages are visited, at most, without those that a visit skips; 0: no limit.
	Most int
	// Polls is how many receives in a row must bring nothing that was in the queue at the start for
	// the pass to end.
	Polls int
	// Lease is how long SQS hides a message from others if the pass is killed. Unless LongerThanLease is set, a
	// pass looks for half as long at most, so that no message that it holds becomes visible.
	Lease time.Duration
	// LongerThanLease has the pass go on until the queue is empty. What it holds becomes visible when its lease ends,
	// and is hidden anew when it is received again; it is not visited again.
	LongerThanLease bool
	// AtOnce is how many batches may be under way at once: received, visited and deleted from. Default: 1.
	// With more, visits overlap.
	AtOnce int
	// Batch is how many messages a receive asks for. Default: 10, as many as SQS permits.
	Batch int
	// Before is called before each receive, and may wait. Default: nothing.
	Before func()
}

// ErrEnough is returned by a visit to end the pass.
var ErrEnough = errors.New("enough")

// Verdict is what to do with a message.
type Verdict uint8

const (
	// Keep gives the message back at the end of the pass.
	Keep Verdict = iota
	// Delete deletes it.
	Delete
	// Skip is Keep for a message that does not count towards Most.
	Skip
)

// Stopped is Outcome.Partial of a pass that was stopped.
const Stopped = "stopped"

// Outcome is the result of a pass.
type Outcome struct {
	Looked, Deleted int
	// NotDeleted are messages whose delete SQS did not confirm. They may be there still.
	NotDeleted int
	// Partial is why the pass may have missed messages; empty: it has looked at all, as far as SQS
	// tells, or at as many as were asked for.
	Partial string
}

const (
	pollSeconds = 1
	batchSize   = 10
	// maxHeld leaves room for consumers in SQS's quota of messages in flight.
	maxHeld = 100_000
	// crowded is how many messages in flight are so near to SQS's quota that receives may bring nothing for it. SQS's
	// count is not exact.
	crowded = plan.MaxInFlight / 100 * 98
)

// dateUnit is the resolution of SQS's time, the Date of its answers.
const dateUnit = time.Second

// Run hands the messages to visit, batch by batch, until the queue seems to have none that were there
// at the start, enough were seen, visit returns an error, or stop is closed. Messages that are sent
// meanwhile are visited too, but do not prolong the pass. After ErrEnough Run returns nil. now is SQS's time, as
// far as it is known. Run gives back the messages that it holds also after a failure, but not after
// the end of ctx: then they stay hidden until the end of their lease. Messages without a verdict are kept.
func (p Pass) Run(ctx context.Context, stop <-chan struct{}, visit func(batch []Message, now time.Time) ([]Verdict, error)) (Outcome, error) {
	return p.Receive(ctx, stop, func(batch []types.Message, now time.Time) ([]Verdict, error) {
		messages := make([]Message, len(batch))
		for i := range batch {
			messages[i] = Read(p.QueueURL, batch[i], p.Keys)
		}
		return visit(messages, now)
	})
}

// Receive is Run for a visit that takes messages as they were received.
func (p Pass) Receive(ctx context.Context, stop <-chan struct{}, visit func(batch []types.Message, now time.Time) ([]Verdict, error)) (Outcome, error) {
	if p.Batch == 0 {
		p.Batch = batchSize
	}
	r := &passRun{
		Pass: p, visit: visit, stop: stop, began: time.Now(), workers: max(p.AtOnce, 1),
		held: make(map[string]hold), visiting: make(map[string][]string),
	}
	r.freed = sync.NewCond(&r.mu)
	var workers sync.WaitGroup
	for range r.workers {
		workers.Go(func() { r.work(ctx) })
	}
	workers.Wait()
	o := r.outcome
	o.Deleted, o.NotDeleted = r.ledger.done-r.ledger.undone, r.ledger.undone
	if r.emptied && o.Partial == "" {
		o.Partial = r.notShown(ctx)
	}
	return o, errors.Join(r.problem, r.release(ctx))
}

// notShown is why receives may have brought nothing although messages are visible. With as many in flight as its quota
// permits, a queue looks empty; and of a FIFO group SQS shows nothing behind the messages that the pass holds, which
// are ten at most. If that cannot be known, it is not said.
func (r *passRun) notShown(ctx context.Context) string {
	attributes, err := Ref{r.QueueURL, r.Client}.Attributes(ctx)
	if err != nil {
		return ""
	}
	visible := number(attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)])
	switch {
	case number(attributes[string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)]) >= crowded:
		return fmt.Sprintf("looked at %d messages: so many of the queue are in flight that SQS may show no more (its quota is %d); run it again when they are fewer", r.outcome.Looked, plan.MaxInFlight)
	case strings.HasSuffix(r.QueueURL, ".fifo") && len(r.held) > 0 && visible > 0:
		return fmt.Sprintf("looked at %d messages: SQS counts %d more, and shows no message of a FIFO group behind the first ten; run it again when those before them are deleted or moved", r.outcome.Looked, visible)
	}
	return ""
}
