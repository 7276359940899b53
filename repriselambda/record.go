package repriselambda

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/reprise-sqs/reprise"
)

// failure is the information of a retry queue's message about the last run of a function.
type failure struct {
	function string    // the name with which it is invoked
	request  string    // the id of the request for the run
	failed   time.Time // when that run was given up
	first    time.Time // when the first run had failed
	ran      bool      // it ran, and has failed: otherwise it did not run
	retries  int       // retries before that run, by its envelope
	redriven bool      // it is a dead letter that was sent back: it begins anew
	payload  []byte    // as it was first sent
	err      *FunctionError
}

// FunctionError is the error of a failed run of a function. With [retry.OnType] the errors of
// functions can have schedules of their own.
type FunctionError struct {
	// Function is the function's ARN, or its name.
	Function string
	// Type and Message are errorType and errorMessage of the function's runtime. They are empty if
	// the runtime has reported none.
	Type, Message string
}

// Error implements error.
func (e *FunctionError) Error() string {
	return e.Function + " failed: " + cmp.Or(joined(e.Type, e.Message), "no error was given")
}

// isOf reports whether e has one of those types.
func (e *FunctionError) isOf(types []string) bool { return slices.Contains(types, e.Type) }

// said reports whether anything is known of the error.
func (e *FunctionError) said() bool { return e != nil && (e.Type != "" || e.Message != "") }

// joined is the text of an error of that type for logs.
func joined(kind, message string) string {
	if kind == "" || message == "" {
		return kind + message
	}
	return kind + ": " + message
}

// destinationRecord is what Lambda sends to the on-failure destination of a function.
// See https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html.
type destinationRecord struct {
	Timestamp      time.Time `json:"timestamp"`
	RequestContext struct {
		RequestID   string `json:"requestId"`
		FunctionARN string `json:"functionArn"`
		Condition   string `json:"condition"`
	} `json:"requestContext"`
	RequestPayload  json.RawMessage `json:"requestPayload"`
	ResponsePayload json.RawMessage `json:"responsePayload"`
}

const conditionSuccess = "Success"

// notRun are the conditions of events that Lambda never ran, and their meanings.
var notRun = map[string]string{
	"EventAgeExceeded":        "Lambda could not run the function before the event was too old",
	"ZeroReservedConcurrency": "Lambda may not run the function: the concurrency reserved for it is zero",
}

// The reasons, in addition to the names of [retry.Reason], for which the retry handler gives a
// record up.
const (
	reasonNotJSON    = "not-json"
	reasonShape      = "wrong-shape"
	reasonNoFailure  = "not-a-failure"
	reasonMetadata   = "bad-metadata"
	reasonTooLarge   = "too-large"
	reasonNoFunction = "function-not-found"
	reasonRefused    = "refused"
	reasonNotAllowed = "not-allowed"
)

// poison is why no retry of a message can succeed.
type poison struct {
	reason string
	err    error
}

func (p *poison) Error() string { return p.reason + ": " + p.err.Error() }
func (p *poison) Unwrap() error { return p.err }

func poisonous(reason, format string, args ...any) error {
	return &poison{reason, fmt.Errorf(format, args...)}
}

// readFailure reads a message of the retry queue: a record of an on-failure
// destination or, if it has the attribute [FunctionAttribute], the payload of a dead
// letter. Its errors are poison; together with an error it returns the parts that could be read,
// for the dead letter.
func readFailure(m *reprise.Message) (failure, error) {
	if function := aws.ToString(m.Attributes[FunctionAttribute].StringValue); function != "" {
		return failure{function: function, request: m.OriginID, first: m.Sent, redriven: true, payload: []byte(m.Body)}, nil
	}
	f := failure{payload: []byte(m.Body), request: m.OriginID}
	var r destinationRecord
	if err := json.Unmarshal(f.payload, &r); err != nil {
		if !json.Valid(f.payload) {
			return f, poisonous(reasonNotJSON, "the message is not JSON: %w", err)
		}
		return f, poisonous(reasonShape, "the message is not a record of an on-failure destination: %w", err)
	}
	if absent := r.absent(); absent != "" {
		return f, poisonous(reasonShape, "the message is not a record of an on-failure destination: it has no %s", absent)
	}
	if ahead := time.Until(r.Timestamp); ahead > maxSkew {
		return f, poisonous(reasonShape, "the message is not a record of an on-failure destination: its timestamp is %v ahead", ahead.Round(time.Second))
	}
	if r.RequestContext.Condition == conditionSuccess {
		return f, poisonous(reasonNoFailure, "the function has succeeded: wire the queue to it as the destination on failure, not on success")
	}
	f.function = strings.TrimSuffix(r.RequestContext.FunctionARN, latest)
	f.request = cmp.Or(r.RequestContext.RequestID, m.OriginID)
	f.failed, f.first = r.Timestamp, r.Timestamp
	f.ran = notRun[r.RequestContext.Condition] == ""
	f.payload = r.RequestPayload
	f.err = r.functionError(f.function)
	return f, f.open()
}

// maxSkew is how far Lambda's clock may be ahead of ours.
const maxSkew = time.Hour

// latest is the qualifier that makes no difference: the ARN without it names the same function.
const latest = ":$LATEST"

// absent names the first part that the record lacks.
func (r *destinationRecord) absent() string {
	switch {
	case r.Timestamp.IsZero():
		return "timestamp"
	case strings.TrimSuffix(r.RequestContext.FunctionARN, latest) == "":
		return "requestContext.functionArn"
	case r.RequestContext.Condition == "":
		return "requestContext.condition"
	case r.RequestPayload == nil:
		return "requestPayload"
	}
	return ""
}

// functionError is the error in the record's response. There is none if the function did not run,
// and custom runtimes may send anything.
func (r *destinationRecord) functionError(function string) *FunctionError {
	e := readFunctionError(function, r.ResponsePayload)
	if why := notRun[r.RequestContext.Condition]; why != "" && !e.said() {
		e.Type, e.Message = r.RequestContext.Condition, why
	}
	return e
}

// readFunctionError reads a runtime's description of an error.
func readFunctionError(function string, response []byte) *FunctionError {
	var said struct {
		Type    any `json:"errorType"`
		Message any `json:"errorMessage"`
	}
	_ = json.Unmarshal(response, &said) // then there is no description
	e := &FunctionError{Function: function}
	e.Type, _ = said.Type.(string)
	e.Message, _ = said.Message.(string)
	return e
}

const (
	maxRetries = 1_000_000
	// maxAhead is how much later than a later failure the first failure of an event may be.
	maxAhead = 2 * time.Minute
)

// open takes f's payload out of its envelope, if it came in one.
func (f *failure) open() error {
	w, ok := unwrap(f.payload)
	switch {
	case !ok && !looksWrapped(f.payload):
		return nil // it is a payload of the user
	case !ok:
		return poisonous(reasonMetadata, "the envelope's %s are not a retry's number and a time", metadataKey)
	case w.retry > maxRetries:
		return poisonous(reasonMetadata, "the envelope says that this was retry %d", w.retry)
	case w.failed.Unix() == 0 || w.failed.After(f.failed.Add(maxAhead)):
		return poisonous(reasonMetadata, "the envelope says that the first failure was at %s, and the record that this one was at %s", instant(w.failed), instant(f.failed))
	}
	f.retries, f.first, f.payload = w.retry, w.failed, w.payload
	return nil
}

// looksWrapped reports whether payload has exactly the members of an envelope, with any values.
func looksWrapped(payload []byte) bool {
	if !bytes.Contains(payload, []byte(`"`+metadataKey+`"`)) {
		return false
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(payload, &members)
	return err == nil && len(members) == 2 && members[metadataKey] != nil && members[payloadKey] != nil
}

// runs is how many runs of the function f records.
func (f *failure) runs() int {
	switch {
	case f.redriven:
		return 0
	case f.ran:
		return f.retries + 1
	}
	return f.retries
}

const (
	// maxEvent is how large the payload of an asynchronous invocation may be, and a
	// message of SQS. See
	// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html.
	maxEvent = 1 << 20
	// recordRoom is the size of a failure's record without the payload. Lambda drops a record that
	// does not fit into a message.
	recordRoom = 16 << 10
)

// enclose returns the payload with which f's function is invoked asynchronously again.
func (f *failure) enclose() ([]byte, error) {
	if f.redriven {
		return f.payload, nil // as if it were sent for the first time
	}
	// Written by hand, so that the payload stays the same byte for byte.
	text := fmt.Appendf(make([]byte, 0, len(f.payload)+100), `{"%s":{"attempt":%d,"initial_timestamp":%d},"%s":`, metadataKey, f.runs(), f.first.Unix(), payloadKey)
	text = append(append(text, f.payload...), '}')
	if len(text) > maxEvent-recordRoom {
		return nil, poisonous(reasonTooLarge, "with its envelope the payload has %d bytes; more than %d could not come back if they fail: retry them in direct mode, which needs no envelope", len(text), maxEvent-recordRoom)
	}
	return text, nil
}
