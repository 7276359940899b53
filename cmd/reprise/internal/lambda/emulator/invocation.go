package emulator

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Limits of payloads in bytes.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const (
	maxSyncPayload  = 6 << 20
	maxAsyncPayload = 1 << 20
	maxResponse     = maxSyncPayload + 100 // "6291556 bytes", as Lambda's error says
)

// invocation is one invoke of a function, from its acceptance to its end.
type invocation struct {
	id            string
	arn           string // as it was invoked
	payload       []byte
	clientContext string // JSON; "": none
	trace         string

	done   chan struct{} // closed when result and err are there
	result Result
	err    error // why the function was not reached

	// The fields below belong to the instance, under its pool's lock.
	taken    time.Time // when the function got it; zero: not yet
	timer    *time.Timer
	answered bool   // result is there
	failure  string // the type of the error, for the report; "": none
	cold     time.Duration
	tail     tail
}

// newInvocation checks payload against limit.
func newInvocation(arn string, payload []byte, limit int) (*invocation, error) {
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	if len(payload) > limit {
		kind := typeSync
		if limit == maxAsyncPayload {
			kind = typeEvent
		}
		return nil, &Error{Status: http.StatusRequestEntityTooLarge, Code: "RequestTooLargeException",
			Message: fmt.Sprintf("%d byte payload is too large for the %s invocation type (limit %d bytes)", len(payload), kind, limit)}
	}
	if !json.Valid(payload) {
		return nil, &Error{Status: http.StatusBadRequest, Code: "InvalidRequestContentException",
			Message: "Could not parse request body into json: the payload must be one JSON value"}
	}
	return &invocation{id: newRequestID(), arn: arn, payload: payload, trace: newTrace(time.Now()), done: make(chan struct{})}, nil
}

// newRequestID returns a random UUID, version 4.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newTrace returns the header of a trace that is not sampled.
func newTrace(now time.Time) string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", now.Unix(), hex.EncodeToString(b[:12]), hex.EncodeToString(b[12:]))
}

// fail sets the result of inv to an error of Lambda's own, in Lambda's words.
func (inv *invocation) fail(kind, text string) {
	payload, err := json.Marshal(struct {
		ErrorType    string `json:"errorType"`
		ErrorMessage string `json:"errorMessage"`
	}{kind, text})
	if err != nil {
		payload = []byte(`{}`) // strings always have a JSON form
	}
	inv.answer(payload, kind)
}

// answer sets the result of inv; failure is the type of its error, or "".
func (inv *invocation) answer(payload []byte, failure string) {
	inv.answered = true
	inv.failure = failure
	inv.result.Payload = payload
	if failure != "" {
		inv.result.FunctionError = unhandled
	}
}

// unhandled is the value of X-Amz-Function-Error. Runtimes post all errors alike, so Lambda no
// longer reports "Handled".
const unhandled = "Unhandled"
