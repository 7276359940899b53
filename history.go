package reprise

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/plan"
)

// HistoryAttribute is the message attribute in which a message that was requeued,
// which is a copy, carries what happened before it, as JSON. It belongs to the
// consumer: handlers do not see it, dead letters do not carry it, and one that
// was not written for this sending to this queue is ignored; with
// [Config].SigningKeys, so is one that is not signed by one of them.
const HistoryAttribute = "reprise-history"

// past is what d's history tells of the messages before it. Without Config.SigningKeys
// whoever may send to the queue can forge it: it can delay or give up the message that
// carries it, and claim another's origin, by which nothing may be settled alone (see
// Message.IdempotencyKey).
type past struct {
	history.History

	enqueued time.Time // SQS's times of the copy itself
	arrived  time.Time
	due      time.Time // NotBefore on our clock
}

// codeHistoryIgnored is the code of the finding that histories do not count.
const codeHistoryIgnored = "history-ignored"

// recallHistory takes in the history that d carries, if it carries one. The caller
// does not hold c.mu.
func (c *Consumer) recallHistory(d *delivery) {
	attribute, ok := d.raw.MessageAttributes[HistoryAttribute]
	if !ok {
		return
	}
	d.msg.Attributes = withoutHistory(d.raw.MessageAttributes)
	text := deref(attribute.StringValue)
	h, err := history.Read(text, c.queue.name, d.msg.Sent)
	if err == nil && c.queue.fifo {
		err = errors.New("messages of FIFO queues are never copied")
	}
	var untrusted error
	if err == nil && len(c.cfg.SigningKeys) > 0 {
		untrusted = signed{historyKind, c.queue.place(), d.msg.digest()}.verify(text, c.cfg.SigningKeys)
	}
	if err != nil || untrusted != nil {
		core := c.lock()
		defer c.unlock()
		core.ignoreHistory(d, err, untrusted)
		return
	}
	p := &past{History: h, enqueued: d.msg.Sent, arrived: d.msg.FirstReceived}
	if h.NotBefore > 0 {
		p.due = c.clock.local(time.UnixMilli(h.NotBefore))
	}
	d.history = p
	d.msg.OriginID, d.msg.Trail = h.Origin, h.Trail
	d.msg.Sent, d.msg.FirstReceived = time.UnixMilli(h.Sent), time.UnixMilli(h.First)
}

// ignoreHistory reports that d's history does not count: because of err or, if all of
// it is plausible, because it cannot be trusted.
func (c *core) ignoreHistory(d *delivery, err, untrusted error) {
	c.counts.Untrusted++
	remedy := "none, if it was redriven or sent again; otherwise find out who sends the attribute " + HistoryAttribute + "."
	if err == nil {
		err = untrusted
		remedy = "give all consumers of the queue the same Config.SigningKeys; if they have them, find out who sends the attribute " + HistoryAttribute + "."
		c.complainLater("untrusted", "messages carry a history that none of the signing keys vouches for: they start anew",
			"message", *d.msg, "problem", untrusted, "remedy", remedy)
	}
	c.findLater(plan.Finding{
		Severity: plan.Info,
		Code:     codeHistoryIgnored,
		Problem:  fmt.Sprintf("message %s carries a history that does not count: %v. It starts anew.", d.msg.ID, err),
		Remedy:   remedy,
	})
}

// signHistory signs the history of a copy that is about to be sent. It reads the whole
// body: the caller does not hold c.mu.
func (c *settings) signHistory(e *types.SendMessageBatchRequestEntry) {
	if len(c.cfg.SigningKeys) == 0 {
		return
	}
	a := e.MessageAttributes[HistoryAttribute]
	content := contentDigest(deref(e.MessageBody), deref(e.MessageGroupId), e.MessageAttributes, HistoryAttribute)
	a.StringValue = aws.String(signed{historyKind, c.copyTo.place(), content}.sign(deref(a.StringValue), c.cfg.SigningKeys))
	e.MessageAttributes[HistoryAttribute] = a
}

// withoutHistory is attributes as the sender attached them. The map itself belongs
// to the client.
func withoutHistory(attributes map[string]types.MessageAttributeValue) map[string]types.MessageAttributeValue {
	if _, ok := attributes[HistoryAttribute]; !ok {
		return attributes
	}
	if len(attributes) == 1 {
		return nil
	}
	own := maps.Clone(attributes)
	delete(own, HistoryAttribute)
	return own
}

// historyFor is the history that a copy of d, sent now, carries.
func (c *core) historyFor(d *delivery, now time.Time) types.MessageAttributeValue {
	v := d.verdict
	h := history.History{
		Queue:       c.copyTo.name,
		Origin:      d.msg.OriginID,
		Attempt:     d.msg.Attempt - 1,
		Releases:    c.releases(d, now),
		Trail:       d.msg.Trail,
		Unavailable: v.unavailable,
	}
	if before := d.history; before != nil {
		h.Generation, h.Error = before.Generation, before.Error
	}
	if v.outcome == OutcomeRetry {
		h.Attempt, h.Releases = d.msg.Attempt, 0
	}
	var due time.Time
	if v.due.After(now) {
		due = c.clock.server(v.due)
	}
	h.Date(c.clock.server(now), d.msg.Sent, d.msg.FirstReceived, due)
	if v.err != nil {
		h.Error = shorten(forSQS.Replace(v.err.Error()), history.MaxError)
	}
	if v.alone {
		h.Alone = 1
	}
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(h.String())}
}

// seed is what the jitter of d and its copies is drawn from. See history.Seed.
func (d *delivery) seed() string {
	if d.history == nil {
		return d.msg.OriginID
	}
	return d.history.Seed()
}

// made is how many runs of the handler d's history tells of.
func (d *delivery) made() int {
	if d.history == nil {
		return 0
	}
	return d.history.Attempt
}

// enqueued is when d itself was sent, by SQS's clock: its retention counts from
// there. Its lineage may be older.
func (d *delivery) enqueued() time.Time {
	if d.history == nil {
		return d.msg.Sent
	}
	return d.history.enqueued
}

// hops is how many of d's receives were certainly no attempts: a copy that arrives
// before it is due is parked.
func (c *settings) hops(d *delivery) int {
	if h := d.history; h != nil && h.due.After(c.clock.local(h.arrived)) {
		return 1
	}
	return 0
}

// countsFrom is the instant, on our clock, since which d's own receives can have
// been attempts: its first receive or, for a copy that was parked, its due time.
func (c *settings) countsFrom(d *delivery) time.Time {
	if d.history == nil {
		return c.clock.local(d.msg.FirstReceived)
	}
	from := c.clock.local(d.history.arrived)
	if d.history.due.After(from) {
		return d.history.due
	}
	return from
}
