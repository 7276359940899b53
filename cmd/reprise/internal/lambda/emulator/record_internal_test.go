package emulator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestRecord: field for field what AWS was recorded to write.
func TestRecord(t *testing.T) {
	t.Parallel()
	const id, arn = "8a4ee1fd-0f3a-4a3f-9d6d-6a3f0d1c2b3a", "arn:aws:lambda:us-east-1:000000000000:function:f"
	const head = `{"version":"1.0","timestamp":"2025-11-24T23:11:12.045Z","requestContext":{"requestId":"` + id + `","functionArn":"` + arn + `:$LATEST",`
	failure := Result{FunctionError: unhandled, Payload: []byte(`{"errorMessage":"a < b & c","errorType":"Exception","requestId":"` + id + `","stackTrace":["line 1"]}`)}
	for _, test := range []struct {
		name  string
		event event
		why   condition
		want  string
	}{
		{
			"success", event{invokes: 1, payload: []byte(`{}`), last: Result{Payload: []byte(`{"ok":true}`)}}, succeeded,
			`"condition":"Success","approximateInvokeCount":1},"requestPayload":{},"responseContext":{"statusCode":200,"executedVersion":"$LATEST"},"responsePayload":{"ok":true}}`,
		},
		{
			"retries exhausted", event{invokes: 3, payload: []byte(`{"id":12345678901234567890}`), last: failure}, retriesExhausted,
			`"condition":"RetriesExhausted","approximateInvokeCount":3},"requestPayload":{"id":12345678901234567890},"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":{"errorMessage":"a < b & c","errorType":"Exception","requestId":"` + id + `","stackTrace":["line 1"]}}`,
		},
		{
			"too old after a failure", event{invokes: 1, payload: []byte(`[1]`), last: failure}, eventAgeExceeded,
			`"condition":"EventAgeExceeded","approximateInvokeCount":1},"requestPayload":[1],"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":{"errorMessage":"a < b & c","errorType":"Exception","requestId":"` + id + `","stackTrace":["line 1"]}}`,
		},
		{
			"never reached", event{payload: []byte(`"x"`), refusal: &Error{Status: 429}}, eventAgeExceeded,
			`"condition":"EventAgeExceeded","approximateInvokeCount":0},"requestPayload":"x"}`,
		},
		{
			"spaces, line ends and characters that HTML minds", event{invokes: 1, payload: []byte("{ \"a\" : 1.0,\r\n\t\"b\" : \"<&>\\u00e9\u2028\" }"), last: Result{FunctionError: unhandled, Payload: []byte(`{ "errorType": "E" }`)}}, retriesExhausted,
			"\"condition\":\"RetriesExhausted\",\"approximateInvokeCount\":1},\"requestPayload\":{ \"a\" : 1.0,\r\n\t\"b\" : \"<&>\\u00e9\u2028\" },\"responseContext\":{\"statusCode\":200,\"executedVersion\":\"$LATEST\",\"functionError\":\"Unhandled\"},\"responsePayload\":{ \"errorType\": \"E\" }}",
		},
		{
			"no JSON", event{invokes: 1, payload: []byte(`{}`), last: Result{Payload: []byte("plain \"text\"")}}, succeeded,
			`"condition":"Success","approximateInvokeCount":1},"requestPayload":{},"responseContext":{"statusCode":200,"executedVersion":"$LATEST"},"responsePayload":"plain \"text\""}`,
		},
		{
			"null", event{invokes: 1, payload: []byte(`{}`), last: Result{Payload: []byte("null")}}, succeeded,
			`"condition":"Success","approximateInvokeCount":1},"requestPayload":{},"responseContext":{"statusCode":200,"executedVersion":"$LATEST"},"responsePayload":null}`,
		},
	} {
		test.event.id = id
		got, err := newRecord(&test.event, test.why, arn, time.Date(2025, 11, 25, 0, 11, 12, 45e6, time.FixedZone("CET", 3600)))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(head+test.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestDeadLetterAttributes: those of the older dead letters.
func TestDeadLetterAttributes(t *testing.T) {
	t.Parallel()
	message := func(text string) Result {
		return Result{FunctionError: unhandled, Payload: fmt.Appendf(nil, `{"errorMessage":%q}`, text)}
	}
	attribute := func(name, kind, value string) sqsserver.MessageAttribute {
		return sqsserver.MessageAttribute{Name: name, DataType: kind, StringValue: value}
	}
	for _, test := range []struct {
		name  string
		event event
		want  []sqsserver.MessageAttribute
	}{
		{"failure", event{last: message("no stock")}, []sqsserver.MessageAttribute{
			attribute("ErrorCode", "Number", "200"), attribute("ErrorMessage", "String", "no stock"), attribute("RequestID", "String", "id"),
		}},
		{"cut between characters", event{last: message("x" + strings.Repeat("ж", 600))}, []sqsserver.MessageAttribute{
			attribute("ErrorCode", "Number", "200"), attribute("ErrorMessage", "String", "x"+strings.Repeat("ж", 511)), attribute("RequestID", "String", "id"),
		}},
		{"throttled", event{last: message("before"), refusal: &Error{Status: 429, Message: "Rate Exceeded."}}, []sqsserver.MessageAttribute{
			attribute("ErrorCode", "Number", "429"), attribute("ErrorMessage", "String", "Rate Exceeded."), attribute("RequestID", "String", "id"),
		}},
		{"without a message", event{last: Result{Payload: []byte("no JSON")}}, []sqsserver.MessageAttribute{
			attribute("ErrorCode", "Number", "200"), attribute("RequestID", "String", "id"),
		}},
	} {
		test.event.id = "id"
		if diff := cmp.Diff(test.want, deadLetterAttributes(&test.event)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if !json.Valid(message(`a "quoted" one`).Payload) {
		t.Error("the test's own payloads are no JSON")
	}
}
