// Package awstarget delivers messages to Lambda functions and to other queues.
package awstarget

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
)

// Invoker is the part of a [*lambda.Client] that the target needs.
type Invoker interface {
	Invoke(ctx context.Context, in *lambda.InvokeInput, options ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// LambdaConfig says which function is invoked, and with what.
type LambdaConfig struct {
	// Client invokes. It should not repeat requests: an invoke whose answer is lost may have
	// run.
	Client Invoker
	// Function is the function's name or ARN, which may name a version or an alias.
	Function string
	// QueueARN is the queue's, for events.
	QueueARN string
	// Body makes the message's body the payload, which has to be JSON. Default: the payload
	// is an event of SQS with one record, as event source mappings send it.
	Body bool
	// Permanent are types of errors of the function that dead-letter a message at once.
	Permanent []string
}

// Lambda invokes a function for each message and waits for its end. An error of the function
// is retried by the policy. A function that cannot be invoked, or whose code cannot be
// loaded, is unavailable, whatever the message. An event that the function answers with
// batchItemFailures has failed.
type Lambda struct {
	cfg    LambdaConfig
	region string
}

// NewLambda returns a target that invokes a function.
func NewLambda(cfg LambdaConfig) (*Lambda, error) {
	if cfg.Function == "" {
		return nil, errors.New("the function has no name: pass its name or its ARN")
	}
	l := &Lambda{cfg: cfg}
	if parts := strings.Split(cfg.QueueARN, ":"); len(parts) == 6 {
		l.region = parts[3]
	}
	return l, nil
}

// Handle invokes the function for m.
func (l *Lambda) Handle(ctx context.Context, m *reprise.Message) error {
	payload := []byte(m.Body)
	if !l.cfg.Body {
		payload = l.event(m)
	} else if !json.Valid(payload) {
		return reprise.Permanent(errors.New("the body is not JSON, and Lambda takes no other payload: deliver messages as events"))
	}
	out, err := l.cfg.Client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &l.cfg.Function, Payload: payload})
	if err != nil {
		return notInvoked(ctx, fmt.Errorf("invoking the function: %w", err))
	}
	if out.FunctionError != nil {
		return l.failed(out.Payload)
	}
	if !l.cfg.Body {
		return itemFailure(out.Payload)
	}
	return nil
}

// notInvoked judges an error of Lambda's API.
func notInvoked(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	refused := []string{"InvalidRequestContentException", "RequestTooLargeException", "UnsupportedMediaTypeException"}
	if api, ok := errors.AsType[smithy.APIError](err); ok && slices.Contains(refused, api.ErrorCode()) {
		return reprise.Permanent(err) // whatever comes next, it has the same payload
	}
	return reprise.Unavailable(err)
}

// FunctionError is an error of the function.
type FunctionError struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

// Error has the type and the message.
func (e *FunctionError) Error() string {
	text := "the function failed"
	if e.Type != "" {
		text += " with " + e.Type
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// notLoaded are the types of errors of a function whose code cannot be loaded.
var notLoaded = []string{"Runtime.ImportModuleError", "Runtime.HandlerNotFound", "Runtime.UserCodeSyntaxError", "Runtime.MalformedHandlerName", "Runtime.InvalidEntrypoint"}

// failed judges an error of the function.
func (l *Lambda) failed(payload []byte) error {
	var failure FunctionError
	if err := json.Unmarshal(payload, &failure); err != nil {
		failure.Message = "its answer is not JSON"
	}
	failure.Type, failure.Message = shortened(failure.Type), shortened(failure.Message)
	switch {
	case slices.Contains(l.cfg.Permanent, failure.Type):
		return reprise.Permanent(&failure)
	case slices.Contains(notLoaded, failure.Type):
		return reprise.Unavailable(&failure)
	}
	return &failure
}

// maxText limits the text of a function's error, which travels in the story of a dead letter.
const maxText = 512

func shortened(text string) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}

// itemFailure returns an error if the answer to an event has failures. The event has one message: they are either its own
// or, as for Lambda, fail the whole batch, because they name no message of it.
func itemFailure(payload []byte) error {
	var answer struct {
		Failures json.RawMessage `json:"batchItemFailures"`
	}
	_ = json.Unmarshal(payload, &answer) // a function without partial batch responses answers what it likes
	if answer.Failures == nil {
		return nil
	}
	var failures []json.RawMessage
	if err := json.Unmarshal(answer.Failures, &failures); err == nil && len(failures) == 0 {
		return nil
	}
	return errors.New("the function reported the message in batchItemFailures")
}

// record is a message in an event of SQS.
type record struct {
	ID            string                     `json:"messageId"`
	ReceiptHandle string                     `json:"receiptHandle"`
	Body          string                     `json:"body"`
	Attributes    map[string]string          `json:"attributes"`
	Message       map[string]recordAttribute `json:"messageAttributes"`
	Source        string                     `json:"eventSource"`
	SourceARN     string                     `json:"eventSourceARN"`
	Region        string                     `json:"awsRegion"`
}

type recordAttribute struct {
	StringValue *string `json:"stringValue,omitempty"`
	BinaryValue string  `json:"binaryValue,omitempty"` // base64
	DataType    string  `json:"dataType"`
}

// event returns the event of m. Its receipt handle is empty: settling the message is the
// consumer's work.
func (l *Lambda) event(m *reprise.Message) []byte {
	r := record{
		ID: m.ID, Body: m.Body, Source: "aws:sqs", SourceARN: l.cfg.QueueARN, Region: l.region,
		Attributes: map[string]string{
			"ApproximateReceiveCount":          strconv.Itoa(m.Receives),
			"SentTimestamp":                    milliseconds(m.Sent),
			"ApproximateFirstReceiveTimestamp": milliseconds(m.FirstReceived),
		},
		Message: make(map[string]recordAttribute, len(m.Attributes)),
	}
	for name, value := range map[string]string{"MessageGroupId": m.GroupID, "MessageDeduplicationId": m.DeduplicationID, "AWSTraceHeader": m.TraceHeader} {
		if value != "" {
			r.Attributes[name] = value
		}
	}
	for name, a := range m.Attributes {
		r.Message[name] = recordAttribute{a.StringValue, base64.StdEncoding.EncodeToString(a.BinaryValue), aws.ToString(a.DataType)}
	}
	if !utf8.ValidString(r.Body) {
		r.Body = strings.ToValidUTF8(r.Body, string(utf8.RuneError)) // as JSON has it; SQS takes no such body
	}
	text, err := json.Marshal(struct {
		Records []record
	}{[]record{r}})
	if err != nil {
		panic(err) // texts are always JSON
	}
	return text
}

func milliseconds(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
