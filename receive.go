package reprise

import (
	"cmp"
	"errors"
	"time"

	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/replies"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	// pollGrace is how much longer than its long poll a receive may take. If it takes
	// longer, its connection has died silently.
	pollGrace = 20 * time.Second
)

// errReceiveCut is the error of a receive whose goroutine the user's code has ended.
var errReceiveCut = errors.New("the Client, Config.Outage.Key or the logger panicked or called runtime.Goexit")

var allAttributes = []string{"All"}

// systemAttributes are those that the consumer needs, or that a copy must have too.
var systemAttributes = []types.MessageSystemAttributeName{
	types.MessageSystemAttributeNameApproximateReceiveCount,
	types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp,
	types.MessageSystemAttributeNameSentTimestamp,
	types.MessageSystemAttributeNameMessageGroupId,
	types.MessageSystemAttributeNameMessageDeduplicationId,
	types.MessageSystemAttributeNameSequenceNumber,
	types.MessageSystemAttributeNameAWSTraceHeader,
}

// receive asks for n messages, whose places are reserved for p, and takes them in.
func (c *Consumer) receive(p *consumer.Poller, n int) {
	err := errReceiveCut // unless this goroutine gets further
	answered := false
	defer func() {
		if !answered {
			c.enter(func(m *consumer.Machine) { m.ReceiveFailed(p, n, failureOf(err)) })
		}
	}()
	requested := time.Now()
	var out *sqs.ReceiveMessageOutput
	if out, err = c.askFor(n); err != nil {
		return
	}
	err = errReceiveCut
	c.observeEndpoint(out.ResultMetadata)
	now := time.Now()
	late := c.clock.observe(out.ResultMetadata, requested, now)
	batch := c.unpack(out.Messages, now)
	var room [maxBatch]consumer.Subject
	subjects := room[:0]
	answered = true // as far as the machine can take it in
	if !c.enter(func(m *consumer.Machine) {
		m.RepliesLost(repliesLost(out.ResultMetadata))
		subjects = handOver(m, p, n, batch, requested, now, late, subjects)
	}) {
		return
	}
	c.tellSettled() // of messages whose lease had ended before they arrived
	if f := c.cfg.Observer.Received; f != nil {
		for i := range batch {
			d := &batch[i]
			c.tell(func() { f(c.runCtx, Received{Message: message(subjects[i]), Duplicate: d.Duplicate()}) })
		}
	}
}

// askFor makes one long poll for n messages.
func (c *Consumer) askFor(n int) (out *sqs.ReceiveMessageOutput, err error) {
	ctx := c.pollLimit.context(c.pollCtx)
	var cut error // a stop has cancelled the receive, which does no harm: it counts as no failure
	err = c.client.call(ctx, OpReceive, n, func() (int, error) {
		var err error
		out, err = c.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl:                    &c.queue.url,
			MaxNumberOfMessages:         int32(n),
			WaitTimeSeconds:             int32(c.cfg.LongPoll / time.Second),
			VisibilityTimeout:           int32(c.cfg.Lease / time.Second),
			MessageAttributeNames:       allAttributes,
			MessageSystemAttributeNames: systemAttributes,
		}, replies.Read)
		if err == nil && out == nil {
			err = errors.New("the SQS client returned neither a reply nor an error")
		}
		if err != nil && c.pollCtx.Err() != nil && c.returnsCancelled.Load() {
			cut = err
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		return len(out.Messages), nil
	})
	return out, cmp.Or(err, cut)
}

// observeEndpoint notes whether the endpoint makes the messages of a cancelled receive visible
// again, as its replies report.
func (c *Consumer) observeEndpoint(reply middleware.Metadata) {
	if returns := replies.ReturnsCancelled(reply); returns != c.returnsCancelled.Load() {
		c.returnsCancelled.Store(returns)
	}
}

// repliesLost returns how many replies to a receive were lost, most likely, before the given one:
// the SDK repeats such a receive by itself, and what the lost reply brought stays in flight.
func repliesLost(reply middleware.Metadata) (n int) {
	made, _ := awsretry.GetAttemptResults(reply)
	for i := range made.Results {
		if err := made.Results[i].Err; err != nil && ambiguous(err) {
			n++
		}
	}
	return n
}

// unpack makes deliveries of the messages of a receive.
func (c *Consumer) unpack(messages []types.Message, now time.Time) []delivery {
	batch := make([]delivery, len(messages)) // one allocation for all ten
	for i := range batch {
		d := &batch[i]
		d.fill(&messages[i], now)
		ignored, untrusted := c.recallHistory(d)
		d.measure()
		if ignored != nil || untrusted != nil {
			c.look(func(m *consumer.Machine) { m.IgnoredHistory(&d.Delivery, ignored, untrusted) })
		}
	}
	c.countPossibleAttempts(batch, now)
	c.nameKeys(batch)
	return batch
}

// handOver gives m the messages of p's receive, in a section, and appends their subjects, as they
// are then. There may be more than n: a server may send more than it was asked for.
func handOver(m *consumer.Machine, p *consumer.Poller, n int, batch []delivery, requested, answered time.Time, late time.Duration, subjects []consumer.Subject) []consumer.Subject {
	var room [maxBatch]*consumer.Delivery
	received := room[:0]
	for i := range batch {
		received = append(received, &batch[i].Delivery)
	}
	m.Took(p, n, received, requested, answered, late)
	for i := range batch {
		subjects = append(subjects, batch[i].Subject())
	}
	return subjects
}

// countPossibleAttempts fills in how many attempts each message can have had, but not on FIFO
// queues: there a failing head uses up dozens of receives of the messages behind it, so only runs
// in this process count. The backoff may be the user's code: the caller does not hold c.mu.
func (c *Consumer) countPossibleAttempts(batch []delivery, now time.Time) {
	if c.queue.fifo {
		return
	}
	var policy *retry.Policy // read when the first message needs it: most have not been received before
	for i := range batch {
		d := &batch[i]
		if d.Receives <= 1 {
			continue
		}
		if policy == nil {
			current := c.currentPolicy()
			policy = &current
		}
		d.CountPossibleAttempts(*policy, c.clock.lead(), now)
	}
}
