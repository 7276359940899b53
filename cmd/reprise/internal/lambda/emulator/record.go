package emulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

type requestContext struct {
	RequestID              string    `json:"requestId"`
	FunctionARN            string    `json:"functionArn"`
	Condition              condition `json:"condition"`
	ApproximateInvokeCount int       `json:"approximateInvokeCount"`
}

type responseContext struct {
	StatusCode      int    `json:"statusCode"`
	ExecutedVersion string `json:"executedVersion"`
	FunctionError   string `json:"functionError,omitempty"`
}

// newRecord returns the record for a destination when e ends, with Lambda's fields. The payloads
// are appended as bytes, since encoding/json would remove their spaces.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
func newRecord(e *event, why condition, functionARN string, now time.Time) ([]byte, error) {
	request, err := marshal(requestContext{
		RequestID: e.id, FunctionARN: functionARN + ":" + latest,
		Condition: why, ApproximateInvokeCount: e.invokes,
	})
	if err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, `{"version":"1.0","timestamp":"%s","requestContext":%s,"requestPayload":%s`, now.UTC().Format(timestamp), request, e.payload)
	if e.invokes > 0 {
		response, err := marshal(responseContext{StatusCode: http.StatusOK, ExecutedVersion: latest, FunctionError: e.last.FunctionError})
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, `,"responseContext":%s,"responsePayload":%s`, response, asJSON(e.last.Payload))
	}
	return append(text, '}'), nil
}

// marshal is json.Marshal without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// asJSON returns payload if it is JSON, and else a JSON string of it: functions may
// return anything, but a record is JSON.
func asJSON(payload []byte) json.RawMessage {
	if json.Valid(payload) {
		return payload
	}
	text, err := json.Marshal(string(payload))
	if err != nil {
		return nil // strings always have a JSON form
	}
	return text
}

// maxErrorMessage is the length at which the ErrorMessage of a dead letter is cut.
const maxErrorMessage = 1024

// deadLetterAttributes are those of the older dead letters, whose body is the event.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html#invocation-dlq
func deadLetterAttributes(e *event) []sqsserver.MessageAttribute {
	code, message := http.StatusOK, ""
	switch {
	case e.refusal != nil:
		code, message = e.refusal.Status, e.refusal.Message
	default:
		var failure struct{ ErrorMessage string }
		if json.Unmarshal(e.last.Payload, &failure) == nil {
			message = failure.ErrorMessage
		}
	}
	if len(message) > maxErrorMessage {
		message = strings.ToValidUTF8(message[:maxErrorMessage], "")
	}
	attributes := []sqsserver.MessageAttribute{
		{Name: "ErrorCode", DataType: "Number", StringValue: strconv.Itoa(code)},
		{Name: "RequestID", DataType: "String", StringValue: e.id},
	}
	if message != "" { // SQS refuses an attribute without a value
		attributes = append(attributes[:1], sqsserver.MessageAttribute{Name: "ErrorMessage", DataType: "String", StringValue: message}, attributes[1])
	}
	return attributes
}
