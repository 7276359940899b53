package repriselambda

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/sqslimit"
)

// TestDeadLetterFits: a dead letter of a message as large as SQS takes them is no larger
// than that. What there is room for it says: first what a redrive needs.
func TestDeadLetterFits(t *testing.T) {
	const function = "arn:aws:lambda:us-east-1:000000000000:function:flaky"
	head := `{"timestamp":"2020-01-01T00:00:00Z","requestContext":{"functionArn":"` + function + `","condition":"RetriesExhausted"},"requestPayload":`
	record := func(size int) string { return head + `"` + strings.Repeat("x", size-len(head)-3) + `"}` }
	for _, test := range []struct {
		name string
		body string
		told bool // the consumer had room for its story
		want []string
		not  []string
	}{
		{"full record", record(sqslimit.Bytes), false, []string{FunctionAttribute, ReasonAttribute}, []string{ErrorMessageAttribute}},
		{"nearly full", record(sqslimit.Bytes - 250), true, []string{FunctionAttribute, ReasonAttribute, AttemptsAttribute, FirstAttribute, LastAttribute}, nil},
		{"not JSON", strings.Repeat("x", sqslimit.Bytes), false, nil, []string{ReasonAttribute}},
		{"small", record(1000), true, []string{FunctionAttribute, ReasonAttribute, AttemptsAttribute, FirstAttribute, LastAttribute, ErrorTypeAttribute, ErrorMessageAttribute}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := batchFrom(withBatch(context.Background(), ModeEnvelope))
			f, err := readFailure(&reprise.Message{Body: test.body})
			long := &FunctionError{Function: f.function, Type: "Timeout", Message: strings.Repeat("m", 2000)}
			b.letters["m"] = letter{failure: f, body: test.body, reason: "attempts", attempts: 3, last: time.Now(), err: long}
			if f.function == "" && err == nil {
				t.Fatal("the record has no function")
			}
			e := types.SendMessageBatchRequestEntry{MessageBody: &test.body}
			if test.told {
				e.MessageAttributes = map[string]types.MessageAttributeValue{
					reprise.StoryAttribute: {DataType: aws.String("String"), StringValue: aws.String(`{"reason":"permanent"}`)},
				}
			}
			b.rewrite(&e)
			size := len(*e.MessageBody)
			for name, a := range e.MessageAttributes {
				size += len(name) + len(*a.DataType) + len(*a.StringValue)
			}
			if size > sqslimit.Bytes {
				t.Errorf("the dead letter has %d bytes, and SQS takes %d", size, sqslimit.Bytes)
			}
			for _, name := range test.want {
				if _, there := e.MessageAttributes[name]; !there {
					t.Errorf("the dead letter has no %s", name)
				}
			}
			for _, name := range test.not {
				if _, there := e.MessageAttributes[name]; there {
					t.Errorf("the dead letter has %s, for which there is no room", name)
				}
			}
		})
	}
}

// TestGatherIsInTime: what is to come again waits for the rest of its invocation, which
// goes on for long, but for a minute at the most, and not until it is too late for it to
// be given back and received in time; what is done with does not wait.
func TestGatherIsInTime(t *testing.T) {
	failed := errors.New("out of stock")
	for _, tt := range []struct {
		name  string
		err   error
		again time.Duration // zero: it is given up
		rest  time.Duration // how long the rest takes
		want  time.Duration
	}{
		{"given up", failed, 0, time.Hour, maxGathering},
		{"due in an hour", failed, time.Hour, 2 * time.Hour, maxGathering},
		{"due soon", failed, 10 * time.Second, time.Hour, 8 * time.Second},
		{"due at once", failed, time.Second, time.Hour, 0},
		{"the rest is done first", failed, time.Hour, 5 * time.Second, 5 * time.Second},
		{"done with", nil, 0, time.Hour, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &batch{}
				b.begin()
				time.AfterFunc(tt.rest, b.end)
				o := opinion{err: tt.err}
				began := time.Now()
				if tt.again > 0 {
					o.again = began.Add(tt.again)
				}
				b.gather(t.Context(), o)
				if waited := time.Since(began); waited != tt.want {
					t.Errorf("it waited %v, want %v", waited, tt.want)
				}
			})
		})
	}
}
