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

func (l letter) id() string     { return aws.ToString(l.MessageId) }
func (l letter) handle() string { return aws.ToString(l.ReceiptHandle) }

// date is when the letter was sent, by SQS's clock.
func (l letter) date() time.Time {
	ms, err := strconv.ParseInt(l.Attributes["SentTimestamp"], 10, 64)
	if err != nil {
		return time.Time{} // SQS says it always
	}
	return time.UnixMilli(ms)
}

// moved is the ARN of the queue that SQS says it has moved the letter from. No sender
// can set it. Empty: SQS has not moved it.
func (l letter) moved() string { return l.Attributes["DeadLetterQueueSourceArn"] }

// told is the queue, an ARN or a URL, that the letter's story names as its source, and
// whether one of keys vouches for the story. Anybody who may send to a queue can write
// one. Empty: there is none.
func (l letter) told(deadLetterURL string, keys []reprise.SigningKey) (source string, trusted bool) {
	story, trusted, err := reprise.ReadStory(deadLetterURL, l.Message, keys)
	if err != nil {
		return "", false
	}
	return story.Source, trusted
}

// past are the attributes that tell of what a message has been through. Without them
// it begins anew. The function of a retry handler's dead letter is none of them: by it
// the handler knows what to invoke.
var past = [...]string{
	reprise.StoryAttribute, reprise.HistoryAttribute,
	repriselambda.ReasonAttribute, repriselambda.AttemptsAttribute, repriselambda.FirstAttribute, repriselambda.LastAttribute,
	repriselambda.ErrorTypeAttribute, repriselambda.ErrorMessageAttribute,
}

// maxTraceHeader is how many bytes of a trace header are sent back. X-Ray's have fewer
// than 500; SQS does not count them as a part of the message.
const maxTraceHeader = 1 << 10

// outgoing is the message that is sent back: what its sender sent.
func (l letter) outgoing(fifo bool) reprise.Outgoing {
	m := reprise.Outgoing{
		Body:        aws.ToString(l.Body),
		Attributes:  maps.Clone(l.MessageAttributes),
		TraceHeader: l.Attributes["AWSTraceHeader"],
		GroupID:     l.Attributes["MessageGroupId"],
	}
	if len(m.TraceHeader) > maxTraceHeader {
		m.TraceHeader = "" // no service's: the letter could not be sent with it
	}
	for _, name := range past {
		delete(m.Attributes, name)
	}
	if fifo {
		if m.GroupID == "" {
			m.GroupID = l.id()
		}
		// The same for whatever is sent for this letter, and another for the letter that
		// the message may become again, which is a message with an id of its own.
		m.DeduplicationID = "redrive-" + l.id()
	}
	return m
}
