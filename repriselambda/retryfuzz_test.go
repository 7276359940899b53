package repriselambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// willing is a Lambda that takes every invocation, and a queue that takes every
// message.
type willing struct {
	agreeable
	invoked []*lambda.InvokeInput
	sent    []*sqs.SendMessageBatchInput
}

func (w *willing) Invoke(_ context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	w.invoked = append(w.invoked, in)
	if in.InvocationType == types.InvocationTypeEvent {
		return &lambda.InvokeOutput{StatusCode: http.StatusAccepted}, nil
	}
	return &lambda.InvokeOutput{StatusCode: http.StatusOK}, nil
}

func (w *willing) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	w.sent = append(w.sent, in)
	return w.agreeable.SendMessageBatch(ctx, in, o...)
}

// payloads keeps what a function has got.
type payloads struct{ got []byte }

func (p *payloads) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	p.got = payload
	return nil, nil
}

// FuzzRecord gives a retry handler arbitrary records, which must not make it panic:
// what it invokes a function with is JSON, and what Async makes of that is what was
// first sent, whatever it looks like; what it gives up is a message that SQS takes.
func FuzzRecord(f *testing.F) {
	for _, payload := range []string{
		`{"order":"o-1"}`, `null`, ` [1, 2.50] `, `"_retry_metadata"`,
		`{"_retry_metadata":{"attempt":2,"initial_timestamp":1643667670},"_original_payload":{"s3_bucket":"my_bucket"}}`,
		`{"_retry_metadata":{"attempt":0,"initial_timestamp":1643667670},"_original_payload":{"_retry_metadata":{"attempt":2,"initial_timestamp":1643667670},"_original_payload":1}}`,
		`{"_retry_metadata":{"attempt":-1},"_original_payload":1}`,
		`{"_retry_metadata":null,"_original_payload":1}`,
	} {
		f.Add(`{"version":"1.0","timestamp":"2022-02-01T00:00:00.000Z","requestContext":{"requestId":"r","functionArn":"`+flaky+`:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":`+payload+`,"responsePayload":{"errorType":"E","errorMessage":7}}`, "", false)
	}
	f.Add(`{"timestamp":"2022-02-01T00:00:00Z","requestContext":{"functionArn":"f","condition":"EventAgeExceeded"},"requestPayload":1}`, "", true)
	f.Add(`{"timestamp":"2022-02-01T00:00:00Z","requestContext":{"functionArn":"f","condition":"Success"},"requestPayload":1}`, "", true)
	f.Add(`anything`, "arn:aws:lambda:us-east-1:123456789012:function:f:live", false)
	f.Add(``, "", false)
	f.Fuzz(func(t *testing.T, body, function string, direct bool) {
		w := new(willing)
		cfg := repriselambda.RetryConfig{Client: w, Lambda: w, Logger: slog.New(slog.DiscardHandler),
			DeadLetterURL: "https://sqs.us-east-1.amazonaws.com/123456789012/dead", Retry: retry.Policy{MaxAge: -1, MaxAttempts: -1}}
		if direct {
			cfg.Mode, cfg.Timeout = repriselambda.ModeDirect, time.Second
		}
		handle, err := repriselambda.RetryHandler(cfg)
		if err != nil {
			t.Fatal(err)
		}
		record := repriselambda.Record{MessageID: "m", ReceiptHandle: "h", Body: body, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:retry"}
		if function != "" {
			record.MessageAttributes = map[string]repriselambda.Attribute{repriselambda.FunctionAttribute: {DataType: "String", StringValue: &function}}
		}
		event := repriselambda.Event{Records: []repriselambda.Record{record}}
		response, err := handle(context.Background(), event)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(w.invoked) + len(w.sent) + len(response.BatchItemFailures); n != 1 {
			t.Errorf("%d invocations, %d messages and %d failures of one record", len(w.invoked), len(w.sent), len(response.BatchItemFailures))
		}
		for _, in := range w.invoked {
			checkInvocation(t, in, body, function != "")
		}
		for _, in := range w.sent {
			for _, e := range in.Entries {
				checkLetter(t, e.MessageBody, body)
				for name, a := range e.MessageAttributes {
					if v := aws.ToString(a.StringValue); v == "" || !utf8.ValidString(v) || len(e.MessageAttributes) > 10 || bytes.ContainsAny([]byte(v), "\x00\x1b\x07") {
						t.Errorf("attribute %s is %q", name, v)
					}
				}
			}
		}
	})
}

// checkInvocation holds an invocation against the record that it is for.
func checkInvocation(t *testing.T, in *lambda.InvokeInput, body string, redriven bool) {
	t.Helper()
	if aws.ToString(in.FunctionName) == "" {
		t.Error("a function without a name was invoked")
	}
	if redriven {
		if string(in.Payload) != body {
			t.Errorf("a redriven payload is %q, was %q", in.Payload, body)
		}
		return
	}
	var record struct {
		RequestPayload json.RawMessage `json:"requestPayload"`
	}
	if err := json.Unmarshal([]byte(body), &record); err != nil || !json.Valid(in.Payload) {
		t.Fatalf("invoked with %q for %q: %v", in.Payload, body, err)
	}
	was, is := new(payloads), new(payloads)
	_, err1 := repriselambda.Async(was).Invoke(context.Background(), record.RequestPayload)
	_, err2 := repriselambda.Async(is).Invoke(context.Background(), in.Payload)
	if err1 != nil || err2 != nil || !bytes.Equal(was.got, is.got) && in.InvocationType == types.InvocationTypeEvent {
		t.Errorf("the function gets %q, and got %q at first", is.got, was.got)
	}
	if in.InvocationType == types.InvocationTypeRequestResponse && !bytes.Equal(was.got, in.Payload) {
		t.Errorf("the function gets %q, and got %q at first", in.Payload, was.got)
	}
}

// checkLetter: a dead letter has the body that was received, or a part of it.
func checkLetter(t *testing.T, letter *string, body string) {
	t.Helper()
	if !bytes.Contains([]byte(body), []byte(aws.ToString(letter))) {
		t.Errorf("the dead letter is %q, of %q", aws.ToString(letter), body)
	}
}
