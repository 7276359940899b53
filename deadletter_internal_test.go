package reprise

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// TestDeadLettersOfOneOrigin: two copies say that they replace the same message, as any producer
// can make them do. Given up within five minutes, they are two dead letters for a FIFO queue: of
// two with one deduplication id it would drop the second.
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
