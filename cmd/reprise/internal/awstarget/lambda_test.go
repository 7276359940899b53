package awstarget_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awstarget"
	"github.com/reprise-sqs/reprise/retry"
)

// function is a Lambda function as its API shows it.
type function struct {
	err     error
	failure string // FunctionError
	answer  string

	payload []byte
	name    string
}

func (f *function) Invoke(_ context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	f.payload, f.name = in.Payload, *in.FunctionName
	if f.err != nil {
		return nil, f.err
	}
	out := &lambda.InvokeOutput{StatusCode: 200, Payload: []byte(f.answer)}
	if f.failure != "" {
		out.FunctionError = &f.failure
	}
	return out, nil
}

const (
	deleted     = "deleted"
	retried     = "retried"
	permanent   = "permanent"
	unavailable = "unavailable"
)

// outcome is what an error of a handler does to the message.
func outcome(err error) string {
	decision := retry.Policy{}.Decide(retry.Failure{N: 1, Seed: "s", First: time.Unix(1, 0), Ended: time.Unix(2, 0), Err: err})
	switch {
	case err == nil:
		return deleted
	case decision.Action == retry.ActionDeadLetter:
		return permanent
	case reprise.IsUnavailable(err):
		return unavailable
	}
	return retried
}

func api(code string) error { return &smithy.GenericAPIError{Code: code, Message: "no"} }

// TestLambdaAnswers: what each answer does to the message.
func TestLambdaAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		function function
		body     bool
		want     string
	}{
		"success":             {function{answer: "null"}, false, deleted},
		"any answer":          {function{answer: "done"}, false, deleted},
		"no failures":         {function{answer: `{"batchItemFailures":[]}`}, false, deleted},
		"an unknown failure":  {function{answer: `{"batchItemFailures":[{"itemIdentifier":"other"}]}`}, false, retried},
		"a nameless failure":  {function{answer: `{"batchItemFailures":[{"messageId":"id"}]}`}, false, retried},
		"failures of no form": {function{answer: `{"batchItemFailures":{"itemIdentifier":"id"}}`}, false, retried},
		"null failures":       {function{answer: `{"batchItemFailures":null}`}, false, deleted},
		"the item failed":     {function{answer: `{"batchItemFailures":[{"itemIdentifier":"id"}]}`}, false, retried},
		"the batch failed":    {function{answer: `{"batchItemFailures":[{"itemIdentifier":""}]}`}, false, retried},
		"a body's answer":     {function{answer: `{"batchItemFailures":[{"itemIdentifier":"id"}]}`}, true, deleted},
		"an error":            {function{failure: "Unhandled", answer: `{"errorType":"KeyError","errorMessage":"'id'"}`}, false, retried},
		"an error without":    {function{failure: "Unhandled", answer: `oops`}, false, retried},
		"a timeout":           {function{failure: "Unhandled", answer: `{"errorMessage":"Task timed out after 3.00 seconds"}`}, false, retried},
		"a permanent error":   {function{failure: "Unhandled", answer: `{"errorType":"BadOrder","errorMessage":"no"}`}, false, permanent},
		"no handler":          {function{failure: "Unhandled", answer: `{"errorType":"Runtime.HandlerNotFound"}`}, false, unavailable},
		"no code":             {function{failure: "Unhandled", answer: `{"errorType":"Runtime.ImportModuleError"}`}, false, unavailable},
		"throttled":           {function{err: api("TooManyRequestsException")}, false, unavailable},
		"no function":         {function{err: api("ResourceNotFoundException")}, false, unavailable},
		"no permission":       {function{err: api("AccessDeniedException")}, false, unavailable},
		"no connection":       {function{err: errors.New("connection refused")}, false, unavailable},
		"too large a message": {function{err: api("RequestTooLargeException")}, false, permanent},
		"an unreadable body":  {function{err: api("InvalidRequestContentException")}, true, permanent},
		"another media type":  {function{err: api("UnsupportedMediaTypeException")}, true, permanent},
	} {
		target, err := awstarget.NewLambda(awstarget.LambdaConfig{Client: &test.function, Function: "f", Body: test.body, Permanent: []string{"BadOrder"}})
		if err != nil {
			t.Fatal(err)
		}
		err = target.Handle(t.Context(), &reprise.Message{ID: "id", Body: "{}"})
		if got := outcome(err); got != test.want {
			t.Errorf("%s: the message is %s (%v), want %s", name, got, err, test.want)
		}
	}
	if _, err := awstarget.NewLambda(awstarget.LambdaConfig{}); err == nil {
		t.Error("a function without a name is taken")
	}
}

// TestLambdaPayload: a function for SQS's triggers reads the event; one for bodies gets the
// body, if it is JSON.
func TestLambdaPayload(t *testing.T) {
	f := &function{answer: "null"}
	target, err := awstarget.NewLambda(awstarget.LambdaConfig{Client: f, Function: "f", QueueARN: "arn:aws:sqs:eu-west-1:1:orders.fifo"})
	if err != nil {
		t.Fatal(err)
	}
	m := &reprise.Message{
		ID: "id", Body: "not JSON", GroupID: "g", DeduplicationID: "d", Receives: 3, Sent: time.UnixMilli(5),
		Attributes: map[string]types.MessageAttributeValue{
			"team":  {DataType: aws.String("String"), StringValue: aws.String("shop")},
			"bytes": {DataType: aws.String("Binary.gz"), BinaryValue: []byte{0, 0xff}},
		},
	}
	if err := target.Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	var event events.SQSEvent
	if err := json.Unmarshal(f.payload, &event); err != nil || len(event.Records) != 1 {
		t.Fatalf("%v: %s", err, f.payload)
	}
	r := event.Records[0]
	bytes, team := r.MessageAttributes["bytes"], r.MessageAttributes["team"]
	if r.MessageId != "id" || r.Body != "not JSON" || r.Attributes["MessageGroupId"] != "g" || r.Attributes["ApproximateReceiveCount"] != "3" ||
		r.Attributes["SentTimestamp"] != "5" || r.AWSRegion != "eu-west-1" || r.EventSourceARN != "arn:aws:sqs:eu-west-1:1:orders.fifo" ||
		*team.StringValue != "shop" || string(bytes.BinaryValue) != "\x00\xff" || bytes.DataType != "Binary.gz" {
		t.Errorf("the event is %s", f.payload)
	}

	target, err = awstarget.NewLambda(awstarget.LambdaConfig{Client: f, Function: "f", Body: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Handle(t.Context(), &reprise.Message{ID: "id", Body: `{"a":1}`}); err != nil || string(f.payload) != `{"a":1}` {
		t.Errorf("%v; the payload is %s", err, f.payload)
	}
	if err := target.Handle(t.Context(), m); outcome(err) != permanent {
		t.Errorf("a body that is not JSON: %v, want a permanent error", err)
	}
}

// TestLambdaEventFields: a function gets each part of a message under its own name: one that tells messages apart by
// their deduplication ids, or drops those that are too old, must not take another part for it.
func TestLambdaEventFields(t *testing.T) {
	f := &function{answer: "null"}
	target, err := awstarget.NewLambda(awstarget.LambdaConfig{Client: f, Function: "ship", QueueARN: "arn:aws:sqs:eu-west-1:1:orders.fifo"})
	if err != nil {
		t.Fatal(err)
	}
	m := &reprise.Message{
		ID: "copy", OriginID: "origin", Body: "b", GroupID: "g", DeduplicationID: "d", TraceHeader: "Root=1", Attempt: 2, Receives: 3,
		Sent: time.UnixMilli(5), FirstReceived: time.UnixMilli(7),
		Attributes: map[string]types.MessageAttributeValue{
			"team":  {DataType: aws.String("String"), StringValue: aws.String("shop")},
			"bytes": {DataType: aws.String("Binary.gz"), BinaryValue: []byte{0, 0xff}},
		},
	}
	if err := target.Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	const want = `{"Records":[{"messageId":"copy","receiptHandle":"","body":"b","attributes":{"AWSTraceHeader":"Root=1","ApproximateFirstReceiveTimestamp":"7",` +
		`"ApproximateReceiveCount":"3","MessageDeduplicationId":"d","MessageGroupId":"g","SentTimestamp":"5"},"messageAttributes":{` +
		`"bytes":{"binaryValue":"AP8=","dataType":"Binary.gz"},"team":{"stringValue":"shop","dataType":"String"}},` +
		`"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:1:orders.fifo","awsRegion":"eu-west-1"}]}`
	if string(f.payload) != want || f.name != "ship" {
		t.Errorf("the function %s got\n%s, want\n%s", f.name, f.payload, want)
	}
}
