package repriselambda

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
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
		{"full record", record(maxMessage), false, []string{FunctionAttribute, ReasonAttribute}, []string{ErrorMessageAttribute}},
		{"nearly full", record(maxMessage - 250), true, []string{FunctionAttribute, ReasonAttribute, AttemptsAttribute, FirstAttribute, LastAttribute}, nil},
		{"not JSON", strings.Repeat("x", maxMessage), false, nil, []string{ReasonAttribute}},
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
			if size > maxMessage {
				t.Errorf("the dead letter has %d bytes, and SQS takes %d", size, maxMessage)
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
