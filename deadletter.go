package reprise

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/sqslimit"
)

// StoryAttribute is the name of the message attribute in which a dead letter carries its
// [Story], as JSON.
const StoryAttribute = "reprise-story"

// Story says why a message was given up. It travels with the dead letter in the
// message attribute [StoryAttribute].
type Story struct {
	// Reason is the name of a [retry.Reason]: permanent, attempts, age, retention,
	// skip, crash, or receives where the queue's maxReceiveCount was used up before
	// the attempts were.
	Reason string `json:"reason"`
	// Attempts is how many times the handler ran, as far as that is known, without runs that a
	// [Release] or a stop ended; Receives is SQS's count of receives.
	Attempts int `json:"attempts"`
	Receives int `json:"receives"`
	// Sent and First are SQS's timestamps of the message; Last is when it was
	// given up, by SQS's clock as far as the consumer knew it.
	Sent  time.Time `json:"sent,omitzero"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last"`
	// Error is the text of the last error, cut to 1,000 bytes.
	Error string `json:"error,omitempty"`
	// Source is the queue on which the message was given up or, for a retry lane, the queue
	// of that lane: an ARN if that is known, else a URL. Message is the id of the message
	// that was given up, Origin the id of the message that the producer sent.
	Source  string `json:"source"`
	Message string `json:"message"`
	Origin  string `json:"origin"`
	// Consumer is Config.Name.
	Consumer string `json:"consumer"`
}

// sendDeadLetters sends up to ten messages to the dead-letter queue, each as its producer
// sent it, and with its story if there is room for it.
func (c *Consumer) sendDeadLetters(target queueURL, batch []*consumer.Delivery, asked []consumer.Entry) results {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i := range batch {
		d := ofMachine(batch[i])
		entries[i] = c.deadLetterOf(d, &asked[i], target)
		entries[i].Id = &positions[i]
		signStory(&entries[i], target, c.cfg.SigningKeys)
	}
	return c.sendBatch(target.url, entries)
}

// sendBatch sends entries, whose ids are positions, and sorts the reply.
func (c *Consumer) sendBatch(url string, entries []types.SendMessageBatchRequestEntry) results {
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

// deadLetterOf returns d's dead letter for target.
func (c *Consumer) deadLetterOf(d *delivery, e *consumer.Entry, target queueURL) types.SendMessageBatchRequestEntry {
	entry := d.resend(e.Bare)
	story := c.story(d, e.Story)
	if _, told := entry.MessageAttributes[StoryAttribute]; !e.Bare && (told || len(entry.MessageAttributes) < sqslimit.Attributes) {
		if entry.MessageAttributes == nil {
			entry.MessageAttributes = make(map[string]types.MessageAttributeValue, 1)
		}
		entry.MessageAttributes[StoryAttribute] = types.MessageAttributeValue{
			DataType:    aws.String("String"),
			StringValue: &story,
		}
	} else {
		delete(entry.MessageAttributes, StoryAttribute) // its producer may have written one
		// Log each one, without a rate limit: the log is all that is left of the story.
		c.log.Warn("a dead letter is sent without its story", "message", message(d.Subject()), "story", story)
	}
	if target.fifo {
		entry.MessageDeduplicationId = &d.ID
		if entry.MessageGroupId == nil {
			entry.MessageGroupId = &d.ID
		}
	}
	return entry
}

// story returns a dead letter's Story as JSON, without characters that SQS refuses.
func (c *Consumer) story(d *delivery, told *consumer.Story) string {
	s := Story{
		Reason:   told.Reason.String(),
		Attempts: told.Attempts,
		Receives: told.Receives,
		Sent:     d.Sent.UTC(),
		First:    d.FirstReceived.UTC(),
		Last:     told.Last.UTC(),
		Source:   told.Source,
		Message:  d.ID,
		Origin:   d.OriginID,
		Consumer: c.cfg.Name,
	}
	if told.Err != nil {
		s.Error = consumer.Shorten(told.Err.Error(), consumer.MaxStoryError)
	}
	text, err := json.Marshal(s)
	if err != nil {
		// Only a year beyond 9999 could do this.
		return fmt.Sprintf(`{"reason":%q}`, s.Reason)
	}
	return consumer.ForSQS.Replace(string(text))
}
