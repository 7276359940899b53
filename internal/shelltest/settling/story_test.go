package settling

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestSignedStoryIsTrusted on either kind of queue, for messages with a group and
// without, and where this machine's clock is three hours behind SQS's.
func TestSignedStoryIsTrusted(t *testing.T) {
	for name, attributes := range map[string]map[string]string{"standard": nil, "FIFO": kit.FIFOQueue} {
		for _, group := range []string{"", "g"} {
			if name == "FIFO" && group == "" {
				continue // SQS wants one
			}
			t.Run(fmt.Sprintf("%s, group %q", name, group), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					keys := []reprise.SigningKey{kit.SigningKey(t, "k1")}
					q := reprisetest.NewQueue(t, attributes)
					dead := q.NewDeadLetterQueue(100)
					if err := q.Server().Advance(3 * time.Hour); err != nil {
						t.Fatal(err)
					}
					q.ConsumeWith(q.Client(), reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
						return reprise.Permanent(kit.ErrUnavailable)
					}), reprise.Config{SigningKeys: keys})
					e := sqsserver.SendMessageEntry{MessageBody: "order", MessageGroupId: group}
					if attributes != nil {
						e.MessageDeduplicationId = "d"
					}
					q.SendMessage(e)
					q.WaitEmpty(time.Minute)
					out, err := dead.Client().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
						QueueUrl: aws.String(dead.URL()), WaitTimeSeconds: 5, MessageAttributeNames: []string{"All"},
						MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
					})
					if err != nil || len(out.Messages) != 1 {
						t.Fatalf("%d dead letters, error %v", len(out.Messages), err)
					}
					story, trusted, err := reprise.ReadStory(dead.URL(), &out.Messages[0], keys)
					if err != nil || !trusted {
						t.Errorf("story %+v, trusted: %v, error %v", story, trusted, err)
					}
				})
			})
		}
	}
}
