package lambdalocal

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// record is what a destination gets, field for field as Lambda writes it.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
type record struct {
	Version         string           `json:"version"`
	Timestamp       string           `json:"timestamp"`
	RequestContext  requestContext   `json:"requestContext"`
	RequestPayload  json.RawMessage  `json:"requestPayload"`
	ResponseContext *responseContext `json:"responseContext,omitempty"` // nil: the function was never reached
	ResponsePayload json.RawMessage  `json:"responsePayload,omitempty"`
}

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

// newRecord tells of an event's end.
func newRecord(e *event, why condition, functionARN string, now time.Time) ([]byte, error) {
	r := record{
		Version:   "1.0",
		Timestamp: now.UTC().Format(timestamp),
		RequestContext: requestContext{
			RequestID: e.id, FunctionARN: functionARN + ":" + latest,
			Condition: why, ApproximateInvokeCount: e.invokes,
		},
		RequestPayload: e.payload,
	}
	if e.invokes > 0 {
		r.ResponseContext = &responseContext{StatusCode: http.StatusOK, ExecutedVersion: latest, FunctionError: e.last.FunctionError}
		r.ResponsePayload = asJSON(e.last.Payload)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // payloads keep their bytes
	if err := encoder.Encode(r); err != nil {
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

// maxErrorMessage is where the ErrorMessage of a dead letter is cut: 1 KB.
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
