package repriselambda_test

// Producers may send to the queue of a function, or to the retry queue of asynchronous
// functions, and so can forge records, dead letters and histories.

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackRecordsOfOtherFunctions: a producer cannot have the retry handler invoke just
// any function that its role may invoke. It invokes only those that are allowed, whether a forged record or a forged dead letter names others; these go to
// the dead-letter queue, and the others' retries go their way.
func TestAttackRecordsOfOtherFunctions(t *testing.T) {
	for _, tt := range []struct {
		function string
		allowed  bool
	}{
		{flaky, true},
		{flaky + ":7", true}, // a version of it
		{"flaky", true},
		{strings.Replace(flaky, "flaky", "payroll", 1), false},
		{flaky + "-admin", false},
		{"payroll", false},
		{"123456789012:function:payroll", false},
		{"payroll:function:flaky2", false},
		{"function:payroll:flaky", false},
		{"123456789012:function:payroll:flaky", false},
		{strings.Replace(flaky, "flaky", "payroll", 1) + ":flaky", false},
		{"https://lambda.example.com/flaky", false},
		{"flaky\u00a0", false},
	} {
		t.Run(tt.function, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, func(call) *failed { return nil }, repriselambda.RetryConfig{AllowedFunctions: []string{"flaky"}})
				s.queue.Send(strings.Replace(s.lambda.record(order, "RetriesExhausted", `{"errorType":"Timeout"}`), flaky+":$LATEST", tt.function, 1))
				s.sendLetter(order, map[string]string{repriselambda.FunctionAttribute: tt.function})
				s.run(time.Hour)
				made := s.lambda.made()
				letters, _ := s.letters()
				if tt.allowed && (len(made) != 2 || len(letters) != 0) || !tt.allowed && (len(made) != 0 || len(letters) != 2) {
					t.Fatalf("%d invocations and %d dead letters: %+v", len(made), len(letters), made)
				}
				for _, l := range letters {
					if l.Attributes[repriselambda.ReasonAttribute] != "not-allowed" {
						t.Errorf("the dead letter has the attributes %v", l.Attributes)
					}
				}
			})
		})
	}
}

// written is when Lambda wrote a record.
var written = regexp.MustCompile(`"timestamp":"([^".]*)[^"]*"`)

// TestAttackRecordOfAnothersRequest: a forged record with the id of somebody else's
// failed request is invoked, as the queue's senders may have it; it does not take the
// place of that request's own retry, behind an idempotency middleware.
func TestAttackRecordOfAnothersRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once, err := idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := newSystem(t, func(call) *failed { return nil }, repriselambda.RetryConfig{Middleware: once})
		genuine := s.lambda.record(order, "RetriesExhausted", `{"errorType":"Timeout"}`)
		s.queue.Send(strings.Replace(genuine, order, `"forged"`, 1))
		s.run(time.Hour)
		s.queue.Send(genuine, genuine) // which SQS may deliver twice
		again := written.ReplaceAllString(genuine, `"timestamp":"$1.999Z"`)
		if again == genuine {
			t.Fatalf("no other time in %s", again)
		}
		s.queue.Send(again) // or Lambda, at another time
		s.run(time.Hour)
		var payloads []string
		for _, c := range s.lambda.made() {
			payloads = append(payloads, c.event())
		}
		if len(payloads) != 2 || payloads[0] != `"forged"` || payloads[1] != order {
			t.Errorf("invoked with %v, want the forged payload and, once, the genuine one", payloads)
		}
	})
}

// TestAttackHistoriesUnderLambda: with keys a function ignores a forged history, counts
// its own attempts by copies all the same, and signs its dead letters' stories, which
// the retry handler rewrites. Without keys the forged history gives up its own message.
func TestAttackHistoriesUnderLambda(t *testing.T) {
	key, err := reprise.NewSigningKey("k1", []byte(strings.Repeat("x", 32)))
	if err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string][]reprise.SigningKey{"with keys": {key}, "without keys": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, always, repriselambda.RetryConfig{
					Mode: repriselambda.ModeDirect, Timeout: targetTimeout, SigningKeys: keys,
					Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 4},
				})
				now := time.Now().UnixMilli()
				history, err := json.Marshal(map[string]any{"queue": s.queue.Name(), "origin": "another's", "attempt": 1000, "sent": now, "first": now, "sentAt": now})
				if err != nil {
					t.Fatal(err)
				}
				s.queue.SendMessage(sqsserver.SendMessageEntry{
					MessageBody:       s.lambda.record(order, "RetriesExhausted", `{"errorType":"Timeout"}`),
					MessageAttributes: []sqsserver.MessageAttribute{{Name: reprise.HistoryAttribute, DataType: "String", StringValue: string(history)}},
				})
				s.run(24 * time.Hour)
				want := 3
				if len(keys) == 0 {
					want = 1 // after which its thousand attempts are looked at
				}
				if n := len(s.lambda.made()); n != want {
					t.Errorf("%d retries, want %d", n, want)
				}
				out, err := s.queue.Direct().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
					QueueUrl: aws.String(s.dead.URL()), MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
				})
				if err != nil || len(out.Messages) != 1 {
					t.Fatalf("%d dead letters, error %v", len(out.Messages), err)
				}
				story, trusted, err := reprise.ReadStory(s.dead.URL(), &out.Messages[0], []reprise.SigningKey{key})
				if err != nil || trusted != (len(keys) > 0) || story.Reason != "attempts" {
					t.Errorf("story %+v, trusted: %v, error %v", story, trusted, err)
				}
			})
		})
	}
}
