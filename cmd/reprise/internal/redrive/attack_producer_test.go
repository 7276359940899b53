// This file holds off a producer: it may send to one queue, and may write into its
// messages whatever SQS takes. An operator who redrives the dead letters, and may send
// anywhere, must not carry them to a queue that the producer names.

package redrive_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// moveBySQS has SQS move what is in source to its dead-letter queue.
func moveBySQS(t *testing.T, source, dead *reprisetest.Queue) {
	t.Helper()
	url, want := source.URL(), len(dead.Messages())+len(source.Messages())
	for range 20 {
		if len(dead.Messages()) == want {
			return
		}
		if _, err := source.Client().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("SQS has moved %d of %d messages", len(dead.Messages()), want)
}

// TestAttackStoryOfAMovedMessage: what SQS has moved goes back to where SQS says that it
// came from, whatever a story in it says: also to another source of the same dead-letter
// queue it does not lead.
func TestAttackStoryOfAMovedMessage(t *testing.T) {
	for _, dryRun := range []bool{true, false} {
		t.Run(fmt.Sprint("dry run ", dryRun), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := reprisetest.NewQueue(t, map[string]string{"VisibilityTimeout": "0"})
				dead := source.NewDeadLetterQueue(1)
				payroll := source.NewQueue(nil)
				refunds := source.NewQueue(map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":5}`, dead.ARN())})
				for _, victim := range []string{payroll.ARN(), payroll.URL(), refunds.ARN(), refunds.URL()} {
					source.SendMessage(letterOf(victim, "pay mallory", ""))
				}
				moveBySQS(t, source, dead)
				report := redriven(t, dead, redrive.Redrive{DryRun: dryRun})
				if diff := cmp.Diff(redrive.Report{Sent: map[string]int{source.URL(): 4}, Left: map[string]int{}}, report); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
				if got := append(bodies(payroll), bodies(refunds)...); len(got) > 0 {
					t.Errorf("the others got %q", got)
				}
			})
		})
	}
}

// TestAttackStoryOfASentMessage: of what was sent to the dead-letter queue, a story leads
// only to queues whose dead-letter queue it is.
func TestAttackStoryOfASentMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(5)
		payroll := source.NewQueue(nil)
		payroll.NewDeadLetterQueue(5) // another one
		own := source.ARN()
		for _, told := range []string{
			payroll.ARN(), payroll.URL(), "https://sqs.us-east-1.amazonaws.com/000000000000/" + payroll.Name(), dead.ARN(), dead.URL(),
			strings.Replace(own, "000000000000", "111111111111", 1), strings.Replace(own, "us-east-1", "eu-west-1", 1),
			strings.Replace(own, "arn:aws:", "arn:aws-cn:", 1), strings.Replace(own, ":sqs:", ":sns:", 1),
			own + "/../" + payroll.Name(), "arn:aws:sqs:us-east-1:000000000000:", "://", "x",
		} {
			dead.SendMessage(letterOf(told, told, ""))
		}
		// The URL is the one that SQS gives, not the one that the story gives.
		dead.SendMessage(letterOf("https://evil.example/000000000000/"+source.Name(), "fine", ""))
		report := redriven(t, dead, redrive.Redrive{})
		if diff := cmp.Diff(map[string]int{source.URL(): 1}, report.Sent); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
		if got := bodies(source); !slices.Equal(got, []string{"fine"}) || len(payroll.Messages()) > 0 {
			t.Errorf("the source holds %q, the other queue %q", got, bodies(payroll))
		}
		if len(dead.Messages()) != 13 {
			t.Errorf("the dead-letter queue holds %d, want 13", len(dead.Messages()))
		}
		for why := range report.Left {
			if !strings.Contains(why, "--to") {
				t.Errorf("no remedy: %s", why)
			}
		}
		visible(t, dead)
	})
}

// TestAttackManyStories: a report has a bounded number of reasons of a bounded length, in
// which nothing steers a terminal, and counts every letter.
func TestAttackManyStories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(5)
		for i := range 200 {
			dead.SendMessage(letterOf(fmt.Sprintf("arn:aws:sqs:us-east-1:000000000000:%d-\u009b2J\u202e%s", i, strings.Repeat("x", 10_000)), "m", ""))
		}
		report := redriven(t, dead, redrive.Redrive{})
		left := 0
		for why, n := range report.Left {
			if left += n; len(why) > 1000 || strings.ContainsAny(why, "\x1b\u009b\u202e") {
				t.Errorf("a reason of %d bytes: %.300q", len(why), why)
			}
		}
		if left != 200 || len(report.Left) > 21 {
			t.Errorf("%d left for %d reasons", left, len(report.Left))
		}
	})
}

// TestAttackLettersThatNoQueueTakes: letters that are refused for what is in them do not
// keep those of others from going back.
func TestAttackLettersThatNoQueueTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, map[string]string{"MaximumMessageSize": "1024"})
		dead := source.NewDeadLetterQueue(5)
		for range 25 {
			dead.SendMessage(letterOf(source.ARN(), strings.Repeat("x", 1025), ""))
		}
		dead.SendMessage(letterOf(source.ARN(), "innocent", ""))
		report := redriven(t, dead, redrive.Redrive{})
		if got := bodies(source); !slices.Equal(got, []string{"innocent"}) || len(dead.Messages()) != 25 {
			t.Errorf("the source holds %.100q, the dead-letter queue %d: %v", got, len(dead.Messages()), report)
		}
	})
}

// TestAttackWhatARedriveTakesOver: of what a producer wrote, a message takes along what
// concerns itself: no history, no story, no account of a retry handler.
func TestAttackWhatARedriveTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, map[string]string{"VisibilityTimeout": "0"})
		dead := source.NewDeadLetterQueue(1)
		m := letterOf("x", "m", "")
		m.MessageAttributes = append(m.MessageAttributes, sqsserver.MessageAttribute{Name: reprise.HistoryAttribute, DataType: "String", StringValue: `{"origin":"another","generation":1000}`})
		source.SendMessage(m)
		moveBySQS(t, source, dead)
		redriven(t, dead, redrive.Redrive{})
		back := source.Messages()
		if len(back) != 1 || back[0].Receives != 0 || len(back[0].Attributes) != 1 || back[0].Attributes[0].Name != "tenant" {
			t.Errorf("the source holds %+v", back)
		}
	})
}

// TestAttackUnlistedSources: where the sources cannot be listed, no story is believed.
func TestAttackUnlistedSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewDeadLetterQueue(5)
		dead.SendMessage(letterOf(source.ARN(), "m", ""))
		dead.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ListDeadLetterSourceQueues"})
		report := redriven(t, dead, redrive.Redrive{}, func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
		if len(report.Sent) > 0 || len(report.Left) != 1 || len(dead.Messages()) != 1 {
			t.Errorf("report %+v", report)
		}
		for why := range report.Left {
			if !strings.Contains(why, "sqs:ListDeadLetterSourceQueues") || !strings.Contains(why, "--to") {
				t.Errorf("no remedy: %s", why)
			}
		}
	})
}

// TestAttackSignedStory: a story that one of the keys vouches for leads to a queue that
// has another dead-letter queue by now, but to no other account or region; without the
// key, or with the letter's body or the story changed, it leads nowhere.
func TestAttackSignedStory(t *testing.T) {
	key, err := reprise.NewSigningKey("k", []byte(strings.Repeat("s", 32)))
	if err != nil {
		t.Fatal(err)
	}
	other, err := reprise.NewSigningKey("k", []byte(strings.Repeat("o", 32)))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		keys   []reprise.SigningKey
		source string // of another queue; empty: the true one
		body   string
		sent   int
	}{
		{"signed", []reprise.SigningKey{key}, "", "m", 1},
		{"no keys", nil, "", "m", 0},
		{"another key", []reprise.SigningKey{other}, "", "m", 0},
		{"another body", []reprise.SigningKey{key}, "", "changed", 0},
		{"another account", []reprise.SigningKey{key}, "arn:aws:sqs:us-east-1:111111111111:x", "m", 0},
		{"another region", []reprise.SigningKey{key}, "arn:aws:sqs:eu-west-1:000000000000:x", "m", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := reprisetest.NewQueue(t, nil)
				dead := source.NewQueue(nil)
				told := source.ARN()
				if test.source != "" {
					told = test.source
				}
				body, story := "m", fmt.Sprintf(`{"source":%q,"last":%q}`, told, time.Now().UTC().Format(time.RFC3339))
				entry := types.SendMessageBatchRequestEntry{MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
					reprise.StoryAttribute: {DataType: aws.String("String"), StringValue: &story},
				}}
				if err := reprise.SignStory(dead.URL(), &entry, []reprise.SigningKey{key}); err != nil {
					t.Fatal(err)
				}
				dead.SendMessage(sqsserver.SendMessageEntry{MessageBody: test.body, MessageAttributes: []sqsserver.MessageAttribute{
					{Name: reprise.StoryAttribute, DataType: "String", StringValue: *entry.MessageAttributes[reprise.StoryAttribute].StringValue},
				}})
				report := redriven(t, dead, redrive.Redrive{Keys: test.keys})
				if report.Sent[source.URL()] != test.sent || len(source.Messages()) != test.sent || len(dead.Messages()) != 1-test.sent {
					t.Errorf("report %+v; the source holds %q", report, bodies(source))
				}
			})
		})
	}
}
