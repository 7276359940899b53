package reprise

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/history"
)

// HistoryAttribute is the name of the message attribute in which a copy carries the history
// of the messages that it replaces, as JSON. Only consumers use it: handlers do not see it,
// and dead letters do not carry it. A history is ignored if it was not written for this
// sending to this queue or, with [Config].SigningKeys, if none of the keys has signed it.
const HistoryAttribute = "reprise-history"

// recallHistory reads the history that d carries, if it carries one. If the history must be
// ignored, it returns why: it is not plausible (ignored), or not signed as it must be
// (untrusted). The caller does not hold c.mu.
func (c *Consumer) recallHistory(d *delivery) (ignored, untrusted error) {
	attribute, ok := d.raw.MessageAttributes[HistoryAttribute]
	if !ok {
		return nil, nil
	}
	d.attributes = withoutHistory(d.raw.MessageAttributes)
	text := deref(attribute.StringValue)
	h, err := history.Read(text, c.queue.name, d.Sent)
	if err == nil && c.queue.fifo {
		err = errors.New("messages of FIFO queues are never copied")
	}
	if err == nil && len(c.cfg.SigningKeys) > 0 {
		var m Message
		d.write(&m, 0, "")
		untrusted = signed{historyKind, c.queue.place(), m.digest()}.verify(text, c.cfg.SigningKeys)
	}
	if err != nil || untrusted != nil {
		return err, untrusted
	}
	d.Adopt(h, c.clock.lead())
	return nil, nil
}

// signHistory signs the history of a copy that is about to be sent. It reads the whole
// body: the caller does not hold c.mu.
func (c *Consumer) signHistory(e *types.SendMessageBatchRequestEntry) {
	if len(c.cfg.SigningKeys) == 0 {
		return
	}
	a := e.MessageAttributes[HistoryAttribute]
	content := contentDigest(deref(e.MessageBody), deref(e.MessageGroupId), e.MessageAttributes, HistoryAttribute)
	a.StringValue = aws.String(signed{historyKind, c.copyTo.place(), content}.sign(deref(a.StringValue), c.cfg.SigningKeys))
	e.MessageAttributes[HistoryAttribute] = a
}
