package reprise

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/retry"
)

// StoryAttribute is the message attribute that a dead letter carries its [Story]
// in, as JSON.
const StoryAttribute = "reprise-story"

// Story says why a message was given up. It travels with the dead letter in the
// message attribute [StoryAttribute].
type Story struct {
	// Reason is the name of a [retry.Reason]: permanent, attempts, age, retention,
	// skip, crash, or receives where the queue's maxReceiveCount was used up before
	// the attempts were.
	Reason string `json:"reason"`
	// Attempts is how many times the handler ran, as far as is known; Receives is
	// SQS's count.
	Attempts int `json:"attempts"`
	Receives int `json:"receives"`
	// Sent and First are SQS's timestamps of the message; Last is when it was
	// given up, by SQS's clock as far as the consumer knew it.
	Sent  time.Time `json:"sent,omitzero"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last"`
	// Error is the last error's text, at most 1,000 bytes of it.
	Error string `json:"error,omitempty"`
	// Source is the queue that it was given up on, or whose retry lane that is; an ARN
	// where that is known, else a URL. Message and Origin are its ids, as it was given up
	// and as it was sent.
	Source  string `json:"source"`
	Message string `json:"message"`
	Origin  string `json:"origin"`
	// Consumer is Config.Name.
	Consumer string `json:"consumer"`
}

const (
	maxStoryError = 1000
	maxAttributes = 10        // that SQS lets one message have
	maxBatchBytes = 1_000_000 // of a SendMessageBatch; SQS's limit is 1 MiB
	// refusedFor is how long a dead-letter queue that refused a copy for a lasting
	// reason is not asked again.
	refusedFor = time.Minute
)

// giveUp sends d to the dead-letter queue as a copy with its story; the original is
// deleted when the copy is confirmed. Where that cannot be, it is hidden as long as SQS
// permits, and that is said aloud: nothing is dropped.
func (c *core) giveUp(d *delivery, now time.Time) {
	switch {
	case d.copied:
		c.put(&c.deletes, d, now)
	case c.facts.deadLetter.url != "" && !now.Before(c.facts.refusedUntil):
		c.put(&c.copies, d, now)
	case c.facts.pending:
		d.refusals++
		c.settleLater(d, now) // whether there is a dead-letter queue will be known soon, or after its lease
	default:
		c.keepUndeliverable(d, now)
	}
}

// keepUndeliverable keeps a message that is given up and has nowhere to go.
func (c *core) keepUndeliverable(d *delivery, now time.Time) {
	problem := "messages are given up, but no dead-letter queue takes them"
	c.health.degrade(problem)
	c.complainLater("keep", problem+"; they stay hidden until the queue's retention deletes them",
		"message", d.msg, "reason", d.verdict.reason.String(), "error", d.verdict.err,
		"expires", c.clock.local(d.enqueued()).Add(c.facts.retention()), "remedy", "give the queue a RedrivePolicy, or set Config.DeadLetterURL, and permit sqs:SendMessage on it")
	c.keep(d, retry.MaxVisibility, now)
}

// keep hides a message that is given up, and notes that it is not to be run again.
func (c *core) keep(d *delivery, wait time.Duration, now time.Time) {
	d.verdict.outcome = OutcomeKeep
	d.verdict.due = now.Add(wait)
	note := c.memory.Note(d.msg.ID, now)
	note.Spent, note.Reason, note.Err = true, d.verdict.reason, d.verdict.err
	c.put(&c.hides, d, now)
}

// sendCopies sends up to ten dead letters.
func (c *Consumer) sendCopies(batch []*delivery) [maxBatch]error {
	core := c.lock()
	target := core.facts.deadLetter
	now := core.now
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i, d := range batch {
		entries[i] = core.copyOf(d, target, now)
		entries[i].Id = &positions[i]
	}
	c.unlock()

	for i := range entries { // without the lock: a body may be large
		signStory(&entries[i], target, c.cfg.SigningKeys)
	}
	return c.sendBatch(target.url, entries)
}

// sendBatch sends entries, whose ids are positions, and sorts the reply.
func (c *Consumer) sendBatch(url string, entries []types.SendMessageBatchRequestEntry) [maxBatch]error {
	ctx := c.settleLimit.context(c.settleCtx)
	var out *sqs.SendMessageBatchOutput
	err := c.client.call(ctx, OpSend, len(entries), func() (int, error) {
		var err error
		out, err = c.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
		if err != nil {
			return 0, err
		}
		return len(out.Failed), nil
	})
	if err != nil {
		out = &sqs.SendMessageBatchOutput{}
	}
	return sortReply(maxBatch, len(out.Successful), func(i int) *string { return out.Successful[i].Id }, out.Failed, err)
}

// copyOf is d's dead letter: everything the sender sent, and the story where
// there is room for it.
func (c *core) copyOf(d *delivery, target queueURL, now time.Time) types.SendMessageBatchRequestEntry {
	entry := d.resend()
	if _, told := entry.MessageAttributes[StoryAttribute]; !d.bare && (told || len(entry.MessageAttributes) < maxAttributes) {
		if entry.MessageAttributes == nil {
			entry.MessageAttributes = make(map[string]types.MessageAttributeValue, 1)
		}
		entry.MessageAttributes[StoryAttribute] = types.MessageAttributeValue{
			DataType:    aws.String("String"),
			StringValue: aws.String(c.story(d, now)),
		}
	} else {
		delete(entry.MessageAttributes, StoryAttribute) // one that its sender has written
		// Each one, not now and then: the log is all that is left of the story.
		story := c.story(d, now)
		c.inOrder(func(*Consumer) {
			c.log.Warn("a dead letter goes without its story", "message", d.msg, "story", story)
		})
	}
	if target.fifo {
		entry.MessageDeduplicationId = &d.msg.ID
		if entry.MessageGroupId == nil {
			entry.MessageGroupId = &d.msg.ID
		}
	}
	return entry
}

// story is d's Story as JSON, in characters that SQS accepts.
func (c *core) story(d *delivery, now time.Time) string {
	s := Story{
		Reason:   d.verdict.reason.String(),
		Attempts: d.msg.Attempt,
		Receives: d.receives,
		Sent:     d.msg.Sent.UTC(),
		First:    d.msg.FirstReceived.UTC(),
		Last:     c.clock.server(now).UTC(),
		Source:   c.source(d),
		Message:  d.msg.ID,
		Origin:   d.msg.OriginID,
		Consumer: c.cfg.Name,
	}
	if !d.ran {
		s.Attempts-- // the run that this receive would have been
	}
	if d.verdict.err != nil {
		s.Error = shorten(d.verdict.err.Error(), maxStoryError)
	}
	text, err := json.Marshal(s)
	if err != nil {
		// Only a year beyond 9999 could do this.
		return fmt.Sprintf(`{"reason":%q}`, s.Reason)
	}
	return forSQS.Replace(string(text))
}

// forSQS removes the two characters that JSON lets through and SQS refuses.
var forSQS = strings.NewReplacer("\uFFFE", "", "\uFFFF", "")

// shorten cuts s to at most n bytes, between characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

// copySize is what a copy of d counts against the size of a batch, with a story or
// a history, and with the trace header, which SQS does not count and requests carry.
func copySize(d *delivery) int {
	return messageSize(d) + len(d.msg.TraceHeader) + max(historySize, maxStoryError+1000)
}

// messageSize is d's size as SQS counts it: body, and names, types and values of
// its attributes, the history apart.
func messageSize(d *delivery) int {
	size := len(d.msg.Body)
	for name, a := range d.msg.Attributes {
		size += len(name) + len(deref(a.DataType)) + len(deref(a.StringValue)) + len(a.BinaryValue)
	}
	return size
}

// copyRefused decides what to do about a dead letter that was not taken.
func (c *core) copyRefused(d *delivery, err error, ours bool, now time.Time) {
	known := c.memory.Note(d.msg.ID, now)
	switch {
	case !ours && unacceptable(err) && !d.apart:
		d.apart = true // another of its batch may be meant
		c.settle(d, now)
	case (ours || unacceptable(err)) && !d.bare:
		// Perhaps it has grown too large for the queue: once more, without.
		d.bare, d.apart = true, true
		c.settle(d, now)
	case ours, unacceptable(err):
		c.keepUnsendable(d, err, retry.MaxVisibility, now)
	case lasting(err):
		c.facts.refusedUntil = now.Add(refusedFor)
		c.noteDenied("dead-letter", err)
		c.complainLater("dead-letter", "the dead-letter queue takes no messages", "url", c.facts.deadLetter.url, "error", err)
		c.settle(d, now)
	case passed(d.expires, now):
		c.lose(d, err)
	case d.refusedLong(now) && known.Kept && !d.bare:
		d.bare = true // which is worth a try the second time: the first it may have been the queue
		c.settle(d, now)
	case d.refusedLong(now):
		known.Kept = true
		c.keepUnsendable(d, err, keptBriefly, now)
	default:
		c.complainLater("dead-letter", "sending to the dead-letter queue failed; trying again", "url", c.facts.deadLetter.url, "error", err)
		d.apart = d.refused.many >= apartFrom
		c.settleLater(d, now)
	}
}

// keepUnsendable keeps a message that is given up, and that the dead-letter queue does
// not take.
func (c *core) keepUnsendable(d *delivery, err error, wait time.Duration, now time.Time) {
	c.complainLater("unsendable", "the dead-letter queue does not take this message; hidden, to be tried again", "message", d.msg, "url", c.facts.deadLetter.url, "wait", wait, "error", err)
	if until := now.Add(wait); until.After(c.unsendable.until) {
		c.unsendable.until = until
	}
	c.unsendable.err = err
	c.keep(d, wait, now)
}
