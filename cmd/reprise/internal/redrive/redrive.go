// Package redrive sends dead letters back to the queues that they came from.
//
// SQS's own redrive knows the source of messages that SQS itself has moved to the dead-letter
// queue. It does not know that of messages sent there, such as dead letters with a story.
package redrive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// Redrive empties a dead-letter queue.
type Redrive struct {
	Client *sqs.Client
	// QueueURL is the URL of the dead-letter queue.
	QueueURL string
	// To is the URL of a queue that takes all letters. Default: each goes to its source, the
	// queue from which SQS has moved it, else the queue that its story names, if that queue has
	// this one as its dead-letter queue or the story is signed.
	To string
	// Keys are the keys with which consumers sign stories. Default: none.
	Keys []reprise.SigningKey
	// Max is the maximum number of letters to try to send back. Default: no limit.
	Max int
	// Select reports whether a letter is sent back; now is SQS's time. Other letters stay, and the
	// report does not count them. Several goroutines may call it at once. Default: all are.
	Select func(m *types.Message, now time.Time) bool
	// WithoutBodies has RunInside not read the bodies for Select: it does not look at them, and there are
	// no Keys, whose signatures are bound to bodies. Default: they are read.
	WithoutBodies bool
	// Rate is the maximum number of letters a second, on average. Default: no limit.
	Rate float64
	// Whole sends messages with their stories and all other attributes, except the history of a
	// copy, which is bound to its queue. Default: messages begin anew.
	Whole bool
	// Edit changes a message that is about to be sent for a letter, which is left if that fails. It must
	// not depend on anything but these. Default: none is changed.
	Edit func(m *reprise.Outgoing, letter *types.Message) error
	// DryRun receives the letters and sends nothing. SQS counts these receives too.
	DryRun bool
	// Progress gets the number of letters sent back so far, after each batch. Calls do not overlap.
	// Default: none.
	Progress func(sent int)
	// AtOnce is how many batches may be under way at once. Default: 16. It is one if the queue or
	// that of To is a FIFO queue, so that the order within groups is kept, and for a dry run. At a
	// low Rate there are fewer.
	AtOnce int
	// Logger gets failures to send that are retried. Default: slog.Default().
	Logger *slog.Logger
}

// Report is the result of a Run.
type Report struct {
	// Sent is how many letters were sent back, or would be, by the URL of their queue.
	Sent map[string]int
	// Left is how many letters are still in the dead-letter queue, by the reason: they were not
	// sent back, or could not be deleted afterwards.
	Left map[string]int
	// Busy is how many messages were passed over because a consumer has them, or because they are
	// delayed. Only RunInside sees those.
	Busy int
	// Stopped reports that Run was stopped, and may not have received all letters.
	Stopped bool
	// Partial is why Run may not have received all letters, if it was not stopped: for example, because it held too
	// many that are not selected. Empty: it has received all, as far as SQS tells, or as many as Max. RunInside sees
	// all.
	Partial string
}

const (
	// lease is how long SQS hides a letter from others. Run works on a letter for at most maxWait, sendFor and a minute
	// of deletes.
	lease   = 15 * time.Minute
	sendFor = time.Minute
	// The queue counts as empty after so many long polls in a row without a message: even a long
	// poll can miss one.
	emptyPolls = 3
	maxBatch   = 10
	// defaultAtOnce is how many batches keep the requests of a machine with a few processors busy.
	defaultAtOnce = 16
	// maxWait is how long a batch that was received waits for its turn by the rate, at most: far less
	// than the lease.
	maxWait = 30 * time.Second
	// maxReasons bounds the report: reasons can quote messages, so each message could have its
	// own.
	maxReasons = 20
)

// run sends back the letters of a pass over the queue. mu guards what changes, but for what lookups guards; no
// request is made while it is held.
type run struct {
	Redrive
	mu     sync.Mutex
	report Report
	own    arn.ARN           // of the dead-letter queue
	before time.Time         // only letters from before are sent back
	clock  time.Time         // the start, by this machine's clock
	to     *queue            // takes all letters; nil: their sources do
	queues map[string]*queue // by the ARN or the URL that SQS gives them
	listed map[string]string // the URLs of the queues with this dead-letter queue, by PathOf; nil: not asked yet
	denied string            // why the queues cannot be listed
	sent   int               // letters
	made   map[string]bool   // ids of the messages that were sent in the first moments
	nextAt time.Time         // Rate: when the next letter may be sent

	lookups chan struct{} // has a token while queues, listed and denied are in use
	inOrder chan struct{} // has a token while letters go to a FIFO queue
}

// Run sends letters back until SQS returns no more, or until stop is closed; then it finishes the
// batch under way. It deletes a letter after SQS has confirmed the message sent for it, and
// leaves it if sending fails. It sends no letter back twice, and none that came after its start:
// messages that fail again at once would come back for ever. An error has ended the run early.
func (r Redrive) Run(ctx context.Context, stop <-chan struct{}) (Report, error) {
	p := &run{
		Redrive: r,
		report:  Report{Sent: make(map[string]int), Left: make(map[string]int)},
		queues:  make(map[string]*queue),
		made:    make(map[string]bool),
		nextAt:  time.Now(),
		lookups: make(chan struct{}, 1),
		inOrder: make(chan struct{}, 1),
	}
	err := p.begin(ctx)
	if err == nil {
		err = p.empty(ctx, stop)
	}
	return p.report, errors.Join(err, p.close(ctx))
}

// empty has a pass receive the letters. A dry run holds all of them until its end, and so has to end within their
// leases.
func (p *run) empty(ctx context.Context, stop <-chan struct{}) error {
	pass := operate.Pass{
		Client: p.Client, QueueURL: p.QueueURL, Most: p.Max, Polls: emptyPolls, Lease: lease, LongerThanLease: !p.DryRun,
		AtOnce: p.atOnce(), Batch: p.batch(), Before: func() { p.awaitRate(ctx, stop) },
	}
	outcome, err := pass.Receive(ctx, stop, func(messages []types.Message, now time.Time) ([]operate.Verdict, error) {
		return p.visit(ctx, stop, messages, now), nil
	})
	if n := outcome.NotDeleted; n > 0 {
		p.report.Left["were sent back, but could not be deleted: another run would send them a second time"] += n
	}
	if p.report.Stopped = outcome.Partial == operate.Stopped; !p.report.Stopped {
		p.report.Partial = outcome.Partial
	}
	return err
}

// begin asks for the queue's ARN, and for SQS's time, to compare it with the times of messages.
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
	p.clock = time.Now()
	p.before = now.Truncate(time.Second).Add(time.Second) // replies have whole seconds
	if p.To == "" {
		return nil
	}
	if PathOf(p.To) == PathOf(p.QueueURL) {
		return fmt.Errorf("the letters are in %s: name another queue to send them to", p.To)
	}
	if p.to = p.open(p.To); p.to.closed != "" {
		return fmt.Errorf("%q is not the URL of a queue: letters cannot be sent to it", p.To)
	}
	return nil
}

// visit sends back the letters of a receive, when the rate permits it, and returns what becomes of each. Those that are
// not selected, or have no queue to go to, do not count as tried.
func (p *run) visit(ctx context.Context, stop <-chan struct{}, messages []types.Message, now time.Time) []operate.Verdict {
	back, verdicts := make(map[*queue][]letter), make([]operate.Verdict, len(messages))
	places := make(map[string]int, len(messages)) // by message id
	blocked := make(map[string]bool)              // FIFO: groups of which a letter was left
	for i := range messages {
		l := letter{&messages[i]}
		if p.Select != nil && !p.Select(l.Message, now) {
			verdicts[i] = operate.Skip
			continue
		}
		group := l.Attributes["MessageGroupId"]
		q, problem := p.queueOf(ctx, l)
		if problem == "" && blocked[group] {
			problem = behindAnother
		}
		if problem != "" {
			p.leave(problem)
			verdicts[i] = operate.Skip
			blocked[group] = strings.HasSuffix(p.QueueURL, ".fifo")
			continue
		}
		back[q], places[l.id()] = append(back[q], l), i
	}
	if !p.await(ctx, stop, p.turn(len(places))) {
		return verdicts
	}
	for q, letters := range back {
		for _, l := range p.sendBack(ctx, q, letters) {
			verdicts[places[l.id()]] = operate.Delete
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Progress != nil {
		p.Progress(p.sent)
	}
	return verdicts
}

// queueOf returns the queue to which l goes, or the reason to leave it.
func (p *run) queueOf(ctx context.Context, l letter) (q *queue, problem string) {
	if !l.date().Before(p.before) || p.cameBack(l) {
		return nil, cameLate
	}
	if q = p.to; q == nil {
		p.lookups <- struct{}{} // requests may be needed, which the lock must not wait for
		q = p.sourceOf(ctx, l)
		<-p.lookups
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return q, q.closed
}

// doubtful is how long after the start letters may be sent whose dates do not tell that: SQS's time
// is known to a second.
const doubtful = 3 * time.Second

// cameBack reports whether l is a message that this run has sent back, or tells that it is. A service that
// still refuses it at once makes it a dead letter again within the second of the start; one that SQS
// itself moves, whenever that is, keeps its id and the time at which it was sent.
func (p *run) cameBack(l letter) bool {
	story, _, err := reprise.ReadStory(p.QueueURL, l.Message, p.Keys)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made[l.id()] || err == nil && (p.made[story.Message] || p.made[story.Origin])
}

// sendBack sends letters to their queue, and returns those that were confirmed, which are to be deleted.
func (p *run) sendBack(ctx context.Context, q *queue, letters []letter) (confirmed []letter) {
	p.mu.Lock()
	closed := q.closed // meanwhile
	for range letters {
		if closed != "" {
			p.count(closed)
		}
	}
	if p.DryRun {
		p.report.Sent[q.url] += len(letters)
	}
	p.mu.Unlock()
	if closed != "" || p.DryRun {
		return nil
	}
	confirmed = p.send(ctx, q, letters)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent += len(confirmed); len(confirmed) > 0 {
		p.report.Sent[q.url] += len(confirmed)
	}
	return confirmed
}

// leave is count for those who do not hold the lock.
func (p *run) leave(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(why)
}

// The reasons for which letters are left that do not concern their queue.
const (
	cameLate      = "came after the start: run the command again for them"
	behindAnother = "are behind a letter of their group that was left"
)

// count counts a letter as left. The caller holds p.mu.
func (p *run) count(why string) {
	if _, known := p.report.Left[why]; !known && len(p.report.Left) >= maxReasons {
		why = "were left for other reasons than those: remove the reasons above, and run the command again"
	}
	p.report.Left[why]++
}

// close closes the senders of the queues.
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

// PathOf returns the account and the name in a queue's URL. They identify the queue, whatever the
// host is called.
func PathOf(queueURL string) string {
	parts := strings.Split(strings.TrimRight(queueURL, "/"), "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
