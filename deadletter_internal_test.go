package reprise

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// TestDeadLettersOfOneOrigin: two copies name the same message as their origin, which any producer
// can cause. If they are given up within five minutes, a FIFO dead-letter queue gets both: it would
// drop the second of two messages with one deduplication id.
func TestDeadLettersOfOneOrigin(t *testing.T) {
	dead, err := parseQueueURL("https://sqs.eu-west-1.amazonaws.com/1/dead.fifo")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "other"} {
		d := &delivery{raw: &types.Message{Body: aws.String("hello")}}
		d.ID, d.OriginID = id, "first"
		entry := new(Consumer).deadLetterOf(d, &consumer.Entry{Story: new(consumer.Story)}, dead)
		if got := deref(entry.MessageDeduplicationId); got != id {
			t.Errorf("the dead letter of message %q has the deduplication id %q", id, got)
		}
		if got := deref(entry.MessageGroupId); got != id {
			t.Errorf("the dead letter of message %q, which has no group, has the group %q", id, got)
		}
	}
}
