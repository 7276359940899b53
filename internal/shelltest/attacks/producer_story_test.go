// The attacker of this file is a producer that may send to one queue, and writes into its messages
// the attributes that only the consumer writes into dead letters.

package attacks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackForgedStoryIsNotKept: a dead letter has the consumer's story or none, also if the
// message is so large that there is no room for the consumer's story.
func TestAttackForgedStoryIsNotKept(t *testing.T) {
	const forged = `{"source":"arn:aws:sqs:us-east-1:000000000000:payroll","message":"another"}`
	for _, test := range []struct {
		name  string
		bytes int // of the body
		told  bool
	}{{"small", 10, true}, {"with no room", 1<<20 - len(reprise.StoryAttribute+"String"+forged), false}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(5)
				q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Permanent(errors.New("no")) }), reprise.Config{})
				q.SendMessage(sqsserver.SendMessageEntry{
					MessageBody:       strings.Repeat("x", test.bytes),
					MessageAttributes: []sqsserver.MessageAttribute{{Name: reprise.StoryAttribute, DataType: "String", StringValue: forged}},
				})
				q.WaitEmpty(time.Hour)
				letters := dead.Messages()
				if len(letters) != 1 || len(letters[0].Body) != test.bytes {
					t.Fatalf("%d dead letters", len(letters))
				}
				if !test.told {
					if len(letters[0].Attributes) > 0 {
						t.Errorf("the dead letter has kept %+v", letters[0].Attributes)
					}
					return
				}
				if s := kit.StoryOf(t, letters[0]); s.Source != q.ARN() || s.Message == "another" {
					t.Errorf("story %+v", s)
				}
			})
		})
	}
}
