package redrive

import (
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
)

// letter is a dead letter as it was received.
type letter struct{ *types.Message }

func (l letter) id() string { return aws.ToString(l.MessageId) }

// group is the letter's message group; that of a FIFO queue if it has none.
func (l letter) group() string { return l.outgoing(true, false).GroupID }

// date is when the letter was sent, by SQS's clock.
func (l letter) date() time.Time {
	ms, err := strconv.ParseInt(l.Attributes["SentTimestamp"], 10, 64)
	if err != nil {
		return time.Time{} // SQS always sends it
	}
	return time.UnixMilli(ms)
}

// moved returns the ARN of the queue from which SQS has moved the letter, "" if it has not. No
// sender can set it.
func (l letter) moved() string { return l.Attributes["DeadLetterQueueSourceArn"] }

// told returns the queue, an ARN or a URL, that the letter's story names as its source, "" if it
// has no story, and reports whether the story is signed with one of keys. Every sender can write
// a story.
func (l letter) told(deadLetterURL string, keys []reprise.SigningKey) (source string, trusted bool) {
	story, trusted, err := reprise.ReadStory(deadLetterURL, l.Message, keys)
	if err != nil {
		return "", false
	}
	return story.Source, trusted
}

// past are the attributes with the history of a message. Without them it begins anew. The
// function in a retry handler's dead letter is kept: the handler invokes it.
var past = [...]string{
	reprise.StoryAttribute, reprise.HistoryAttribute,
	repriselambda.ReasonAttribute, repriselambda.AttemptsAttribute, repriselambda.FirstAttribute, repriselambda.LastAttribute,
	repriselambda.ErrorTypeAttribute, repriselambda.ErrorMessageAttribute,
}

// leavesOut reports whether one of past is not sent with a message: all are left out, or only the
// history.
func leavesOut(name string, whole bool) bool { return !whole || name == reprise.HistoryAttribute }

// maxTraceHeader is how many bytes of a trace header are sent back. X-Ray's headers have fewer
// than 500; SQS does not count them towards the message's size.
const maxTraceHeader = 1 << 10

// outgoing is the message that is sent back: as its sender sent it, or the whole letter.
func (l letter) outgoing(fifo, whole bool) reprise.Outgoing {
	m := reprise.Outgoing{
		Body:        aws.ToString(l.Body),
		Attributes:  maps.Clone(l.MessageAttributes),
		TraceHeader: l.Attributes["AWSTraceHeader"],
		GroupID:     l.Attributes["MessageGroupId"],
	}
	if len(m.TraceHeader) > maxTraceHeader {
		m.TraceHeader = "" // not of any service: SQS could refuse the letter for it
	}
	for _, name := range past {
		if leavesOut(name, whole) {
			delete(m.Attributes, name)
		}
	}
	if fifo {
		if m.GroupID == "" {
			m.GroupID = l.id()
		}
		// Each message that is sent for this letter has the same deduplication id. If it becomes
		// a dead letter again, that letter has another message id, and so another deduplication
		// id.
		m.DeduplicationID = "redrive-" + l.id()
	}
	return m
}
