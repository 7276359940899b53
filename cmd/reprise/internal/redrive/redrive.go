// Package redrive sends dead letters back to the queues that they came from.
//
// SQS redrives by itself what it has moved to a dead-letter queue by itself. Of what
// was sent there, as dead letters with a story are, it knows no source.
package redrive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// Redrive empties a dead-letter queue.
type Redrive struct {
	Client *sqs.Client
	// QueueURL is the dead-letter queue's.
	QueueURL string
	// To is the URL of a queue that takes all letters. Default: each goes to its source:
	// the one that SQS says it has moved it from, else the one that its story names,
	// if that is one whose dead-letter queue this is, or if the story is signed.
	To string
	// Keys are those that the consumers sign stories with. Default: none.
	Keys []reprise.SigningKey
	// Max is how many letters at most it tries to send back. Default: no limit.
	Max int
	// DryRun looks, and sends nothing. To SQS a look is a receive.
	DryRun bool
	// Logger is told that sending fails and goes on. Default: slog.Default().
	Logger *slog.Logger
}

// Report says what became of the letters.
type Report struct {
	// Sent is how many letters were sent back, or would be, by the URL of their queue.
	Sent map[string]int
	// Left is how many were not, by why; or were, and are in the dead-letter queue all
	// the same.
	Left map[string]int
	// Stopped says that there may be letters at which nobody has looked.
	Stopped bool
}

const (
	// lease is how long SQS hides a letter from others. The run's own work on one is
	// bounded by sendFor and deleteFor; the rest keeps those that are left away from
	// the next receives.
	lease     = 15 * time.Minute
	sendFor   = time.Minute
	deleteFor = time.Minute
	// The queue is empty when so many long polls in a row bring nothing. Even a long
	// poll may miss a message.
	emptyPolls  = 3
	pollSeconds = 1
	maxBatch    = 10
	// maxReasons bounds the report: a reason can quote what a message says, and so
	// there can be as many as there are messages.
	maxReasons = 20
)

// run is one pass over the queue.
type run struct {
	Redrive
	report Report
	own    arn.ARN           // of the dead-letter queue
	before time.Time         // letters are sent back that were sent before
	to     *queue            // takes all letters; nil: their sources do
	queues map[string]*queue // by the ARN or the URL that SQS gives them
	listed map[string]string // the URLs of the queues that dead-letter here, by their PathOf; nil: not asked yet
	denied string            // why they cannot be listed
	taken  int               // letters, against Max; by message id:
	seen   map[string]bool   // what was taken
	sent   map[string]bool   // what was sent back
	undone map[string]bool   // what was sent back and not deleted
	held   map[string]string // the handles of what is left
}

// Run sends letters back until the queue is empty, as far as SQS tells, or stop is
// closed, in which case it ends the batch under way. A letter is deleted after SQS has
// confirmed what was sent for it, and is left where that fails. None is sent back
// twice by one Run, nor at all if it came after the start: what fails again at once
// would go round in circles. The error is one that ends the run.
func (r Redrive) Run(ctx context.Context, stop <-chan struct{}) (Report, error) {
	p := &run{
		Redrive: r,
		report:  Report{Sent: make(map[string]int), Left: make(map[string]int)},
		queues:  make(map[string]*queue),
		seen:    make(map[string]bool),
		sent:    make(map[string]bool),
		undone:  make(map[string]bool),
		held:    make(map[string]string),
	}
	err := p.begin(ctx)
	if err == nil {
		err = p.empty(ctx, stop)
	}
	if n := len(p.undone); n > 0 {
		p.report.Left["were sent back, but could not be deleted: sent back again, they would be there twice"] += n
	}
	return p.report, errors.Join(err, p.release(ctx), p.close(ctx))
}

// begin asks for the queue's name and for SQS's time, by which it dates messages.
func (p *run) begin(ctx context.Context) error {
	out, err := p.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &p.QueueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return err
	}
	if p.own, err = arn.Parse(out.Attributes["QueueArn"]); err != nil {
		return fmt.Errorf("the queue calls itself %q: %w", out.Attributes["QueueArn"], err)
	}
	now, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !ok {
		now = time.Now()
	}
	p.before = now.Truncate(time.Second).Add(time.Second) // replies tell whole seconds
	if p.To == "" {
		return nil
	}
	if PathOf(p.To) == PathOf(p.QueueURL) {
		return fmt.Errorf("the letters are in %s: name another queue to send them to", p.To)
	}
	if p.to = p.open(p.To); p.to.closed != "" {
		return fmt.Errorf("%q is no queue's URL: letters cannot be sent to it", p.To)
	}
	return nil
}

// empty takes batch after batch.
func (p *run) empty(ctx context.Context, stop <-chan struct{}) error {
	for polls := 0; polls < emptyPolls; {
		room := maxBatch
		if p.Max > 0 {
			room = min(room, p.Max-p.taken)
		}
		select {
		case <-stop:
			p.report.Stopped = true
			return nil
		default:
		}
		if room == 0 {
			return nil
		}
		out, err := p.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &p.QueueURL, MaxNumberOfMessages: int32(room), WaitTimeSeconds: pollSeconds, VisibilityTimeout: int32(lease / time.Second),
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return err
		}
		if polls++; len(out.Messages) > 0 {
			polls = 0
		}
		p.sendBack(ctx, p.sort(ctx, out.Messages))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// sort returns the letters that can be sent back, by their queues, and keeps hold of
// the others.
func (p *run) sort(ctx context.Context, messages []types.Message) map[*queue][]letter {
	back := make(map[*queue][]letter)
	var undeleted []letter
	for i := range messages {
		l := letter{&messages[i]}
		if _, known := p.held[l.id()]; known {
			p.held[l.id()] = l.handle()
			continue
		}
		if p.seen[l.id()] {
			if p.sent[l.id()] {
				undeleted = append(undeleted, l) // its delete was lost
			}
			continue
		}
		q, problem := p.queueOf(ctx, l)
		if problem != "" {
			p.leave(l, problem)
			continue
		}
		p.taken++
		p.seen[l.id()] = true
		back[q] = append(back[q], l)
	}
	p.delete(ctx, undeleted)
	return back
}

// queueOf returns the queue to which l goes, or why it goes nowhere.
func (p *run) queueOf(ctx context.Context, l letter) (q *queue, problem string) {
	if !l.date().Before(p.before) {
		return nil, "came after the start: run it again for them"
	}
	if q = p.to; q == nil {
		q = p.sourceOf(ctx, l)
	}
	return q, q.closed
}

// sendBack sends letters to their queues, and deletes those that arrived.
func (p *run) sendBack(ctx context.Context, back map[*queue][]letter) {
	for q, letters := range back {
		if p.DryRun {
			for _, l := range letters {
				p.held[l.id()] = l.handle()
			}
			p.report.Sent[q.url] += len(letters)
			continue
		}
		sent := p.send(ctx, q, letters)
		for _, l := range sent {
			p.sent[l.id()] = true
		}
		if len(sent) > 0 {
			p.report.Sent[q.url] += len(sent)
			p.delete(ctx, sent)
		}
	}
}

// leave keeps a letter where it is, out of the way until the end of the run.
func (p *run) leave(l letter, why string) {
	p.held[l.id()] = l.handle()
	if _, known := p.report.Left[why]; !known && len(p.report.Left) >= maxReasons {
		why = "were left for other reasons than those: mend them, and run it again"
	}
	p.report.Left[why]++
}

// release lets others see what is left. It is the last thing to be done also after a
// failure, but not after the end of ctx: then the lease has to run out.
func (p *run) release(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	handles := slices.Collect(maps.Values(p.held))
	for some := range slices.Chunk(handles, maxBatch) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(some))
		for i := range some {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: entryID(i), ReceiptHandle: &some[i]}
		}
		out, err := p.Client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &p.QueueURL, Entries: entries})
		if err == nil && len(out.Failed) > 0 && !out.Failed[0].SenderFault {
			err = errors.New(text(out.Failed[0].Code, out.Failed[0].Message))
		}
		if err != nil {
			return fmt.Errorf("the dead letters that are left stay hidden for up to %v: %w", lease, err)
		}
	}
	return nil
}

// close ends what was begun with the queues.
func (p *run) close(ctx context.Context) error {
	if p.to != nil {
		p.queues[p.to.url] = p.to
	}
	var problems []error
	for _, q := range p.queues {
		if q.sender != nil {
			_, err := q.sender.Close(ctx)
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// PathOf is the account and the name in a queue's URL, which tell it from others
// whatever name its host goes by.
func PathOf(queueURL string) string {
	parts := strings.Split(strings.TrimRight(queueURL, "/"), "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
