package reprise

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/history"
)

// ReadStory returns the story of a dead letter that was received from the queue at queueURL
// with all of its message attributes and system attributes. The story is trusted if one of
// keys has signed it for this letter, when it was sent to this queue. Otherwise any producer
// of the queue may have written it, or copied it from another letter: decide nothing by it
// alone. It returns an error if the letter has no story that can be read.
func ReadStory(queueURL string, letter *types.Message, keys []SigningKey) (story Story, trusted bool, err error) {
	attribute, ok := letter.MessageAttributes[StoryAttribute]
	if !ok {
		return Story{}, false, errors.New("the message has no attribute " + StoryAttribute)
	}
	text := deref(attribute.StringValue)
	if err := json.Unmarshal([]byte(text), &story); err != nil {
		return Story{}, false, fmt.Errorf("the attribute %s is not a story: %w", StoryAttribute, err)
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
		return story, false, nil // it was sent here again later, as a copy
	}
	group := letter.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
	content := contentDigest(deref(letter.Body), group, letter.MessageAttributes, StoryAttribute)
	return story, signed{storyKind, queue.place(), content}.verify(text, keys) == nil, nil
}

// SignStory signs the story of a dead letter that will be sent to the queue at queueURL, with
// the first of keys, so that [ReadStory] trusts it. Consumers do so themselves: SignStory is
// for programs that change a dead letter on its way. The letter must be complete, because the
// signature covers its content. SignStory does nothing if there is no key or no story. It
// makes the story at most 128 bytes longer.
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
