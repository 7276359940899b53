package reprise

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/history"
)

// ReadStory returns the story of a dead letter, as it was received from the queue at
// queueURL with all of its attributes, those of SQS among them. The story is trusted if
// one of keys has signed it, for this letter, sent to this queue at that time. Otherwise
// whoever may send to the queue can have written it, or its like for another letter, and
// nothing should be decided by it alone. The error is that of a letter without a story
// that can be read.
func ReadStory(queueURL string, letter *types.Message, keys []SigningKey) (story Story, trusted bool, err error) {
	attribute, ok := letter.MessageAttributes[StoryAttribute]
	if !ok {
		return Story{}, false, errors.New("the message has no attribute " + StoryAttribute)
	}
	text := deref(attribute.StringValue)
	if err := json.Unmarshal([]byte(text), &story); err != nil {
		return Story{}, false, fmt.Errorf("the attribute %s is no story: %w", StoryAttribute, err)
	}
	if len(keys) == 0 {
		return story, false, nil
	}
	queue, err := parseQueueURL(queueURL)
	if err != nil {
		return story, false, err
	}
	sent := milliseconds(letter.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)])
	if sent.IsZero() || story.Last.Sub(sent).Abs() > history.SendingTolerance {
		return story, false, nil // a copy of it was sent later, by whoever
	}
	group := letter.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
	content := contentDigest(deref(letter.Body), group, letter.MessageAttributes, StoryAttribute)
	return story, signed{storyKind, queue.place(), content}.verify(text, keys) == nil, nil
}

// SignStory signs the story of a dead letter that is about to be sent to the queue at
// queueURL, by the first of keys, for [ReadStory] to trust it. Consumers do so
// themselves: it is for programs that change a dead letter on its way. Whatever else
// is to be in the letter must be there. It does nothing if there is no key, or no
// story. The story gets longer by 128 bytes at most.
func SignStory(queueURL string, letter *types.SendMessageBatchRequestEntry, keys []SigningKey) error {
	queue, err := parseQueueURL(queueURL)
	if err != nil {
		return fmt.Errorf("signing a story: %w", err)
	}
	signStory(letter, queue, keys)
	return nil
}

func signStory(letter *types.SendMessageBatchRequestEntry, target queueURL, keys []SigningKey) {
	attribute, ok := letter.MessageAttributes[StoryAttribute]
	if !ok || len(keys) == 0 {
		return
	}
	text := deref(attribute.StringValue)
	content := contentDigest(deref(letter.MessageBody), deref(letter.MessageGroupId), letter.MessageAttributes, StoryAttribute)
	attribute.StringValue = aws.String(signed{storyKind, target.place(), content}.sign(text, keys))
	letter.MessageAttributes[StoryAttribute] = attribute
}
