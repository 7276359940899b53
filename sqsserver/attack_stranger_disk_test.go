package sqsserver_test

// Holds off: a client that fills the disk.

import (
	"errors"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackDiskByOtherThanMessages: while the disk is almost full, nothing that makes the journal grow is taken: no attributes, tags,
// permissions, queues or moves either. What makes it smaller is.
func TestAttackDiskByOtherThanMessages(t *testing.T) {
	k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
	k.create("dead", nil)
	k.create("q", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}`})
	url, ctx := k.url("q"), t.Context()
	tag := func() error {
		return k.TagQueue(ctx, &sqsserver.TagQueueInput{QueueUrl: url, Tags: map[string]string{"a": strings.Repeat("x", 200)}})
	}
	permit := func() error {
		return k.AddPermission(ctx, &sqsserver.AddPermissionInput{QueueUrl: url, Label: "l", AWSAccountIds: []string{"123456789012"}, Actions: []string{"SendMessage"}})
	}
	if err := errors.Join(tag(), permit()); err != nil {
		t.Fatal(err)
	}
	k.journal.mu.Lock()
	k.journal.full = true
	k.journal.mu.Unlock()
	_, createErr := k.CreateQueue(ctx, &sqsserver.CreateQueueInput{QueueName: "more"})
	_, moveErr := k.StartMessageMoveTask(ctx, &sqsserver.StartMessageMoveTaskInput{SourceArn: "arn:aws:sqs:us-east-1:000000000000:dead"})
	for what, err := range map[string]error{
		"tags": tag(), "permissions": permit(), "queues": createErr, "moves": moveErr,
		"attributes": k.SetQueueAttributes(ctx, &sqsserver.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"VisibilityTimeout": "7"}}),
	} {
		var e *sqsserver.Error
		if !errors.As(err, &e) || e.HTTPStatus() != 503 || !strings.Contains(e.Message, "almost full") {
			t.Errorf("%s are answered with %v, want 503 with the reason", what, err)
		}
	}
	for what, err := range map[string]error{
		"untagging":                k.UntagQueue(ctx, &sqsserver.UntagQueueInput{QueueUrl: url, TagKeys: []string{"a"}}),
		"taking a permission back": k.RemovePermission(ctx, &sqsserver.RemovePermissionInput{QueueUrl: url, Label: "l"}),
		"purging":                  k.PurgeQueue(ctx, &sqsserver.PurgeQueueInput{QueueUrl: url}),
		"deleting":                 k.DeleteQueue(ctx, &sqsserver.DeleteQueueInput{QueueUrl: url}),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
