package repriselambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/repriselambda"
)

// envelopeCase is a row of testdata/envelopes.json: what a function that is
// retried sees of an event, in every language.
type envelopeCase struct {
	Name        string          `json:"name"`
	Event       json.RawMessage `json:"event"`
	Payload     json.RawMessage `json:"payload"`
	Attempt     int             `json:"attempt"`
	FirstFailed int64           `json:"first_failed"` // seconds since 1970; zero: it is the first attempt
}

func envelopeCases(t *testing.T) (text []byte, cases []envelopeCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/envelopes.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("testdata/envelopes.json has no case")
	}
	return text, cases
}

// payloadFunc is a function as lambda.NewHandler makes a handler of it.
type payloadFunc func(ctx context.Context, payload []byte) ([]byte, error)

func (f payloadFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}

// TestFunctionNeverSeesTheEnvelope: what reaches the function's code is the payload
// that was sent, to the byte, whatever the retry handler put around it; and the
// context says which attempt it is.
func TestFunctionNeverSeesTheEnvelope(t *testing.T) {
	_, cases := envelopeCases(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			calls := 0
			h := repriselambda.Async(payloadFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
				calls++
				if !bytes.Equal(payload, c.Payload) {
					t.Errorf("the function sees %s, want %s", payload, c.Payload)
				}
				want := repriselambda.AsyncAttempt{Number: c.Attempt}
				if c.FirstFailed != 0 {
					want.FirstFailed = time.Unix(c.FirstFailed, 0)
				}
				if diff := cmp.Diff(want, repriselambda.AttemptFrom(ctx)); diff != "" {
					t.Errorf("the attempt (-want +got):\n%s", diff)
				}
				return []byte("result"), nil
			}))
			result, err := h.Invoke(t.Context(), c.Event)
			if string(result) != "result" || err != nil || calls != 1 {
				t.Errorf("Invoke returned %q, %v after %d calls, want the function's result after one", result, err, calls)
			}
		})
	}
}

// TestErrorsOfTheFunctionAreItsOwn: Lambda takes an error's type for the record of the
// failure, so it must not be wrapped.
func TestErrorsOfTheFunctionAreItsOwn(t *testing.T) {
	failed := errors.New("failed")
	h := repriselambda.Async(payloadFunc(func(context.Context, []byte) ([]byte, error) { return nil, failed }))
	for _, event := range []string{`{}`, `{"_retry_metadata":{"attempt":1,"initial_timestamp":1},"_original_payload":{}}`, `no JSON`} {
		if _, err := h.Invoke(t.Context(), []byte(event)); err != failed {
			t.Errorf("%s: the error is %v, want the function's own", event, err)
		}
	}
}

// TestAttemptOutsideAsync: code that is run without Async, by hand or directly by the
// retry handler, runs as the first attempt.
func TestAttemptOutsideAsync(t *testing.T) {
	if diff := cmp.Diff(repriselambda.AsyncAttempt{Number: 1}, repriselambda.AttemptFrom(t.Context())); diff != "" {
		t.Errorf("the attempt (-want +got):\n%s", diff)
	}
}

// TestAttemptOfARetriedFunctionThatInvokesAnother: the number belongs to one
// invocation. An event of its own that is no retry is a first attempt, even if its
// context comes from a retry.
func TestAttemptOfARetriedFunctionThatInvokesAnother(t *testing.T) {
	var numbers []int
	inner := repriselambda.Async(payloadFunc(func(ctx context.Context, _ []byte) ([]byte, error) {
		numbers = append(numbers, repriselambda.AttemptFrom(ctx).Number)
		return nil, nil
	}))
	outer := repriselambda.Async(payloadFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		numbers = append(numbers, repriselambda.AttemptFrom(ctx).Number)
		return inner.Invoke(ctx, payload)
	}))
	if _, err := outer.Invoke(t.Context(), []byte(`{"_retry_metadata":{"attempt":4,"initial_timestamp":1},"_original_payload":{}}`)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{5, 1}, numbers); diff != "" {
		t.Errorf("the attempts of the outer and the inner function (-want +got):\n%s", diff)
	}
}

// FuzzAsync gives a function arbitrary events. What it sees is the event, or what
// stands under _original_payload in it.
func FuzzAsync(f *testing.F) {
	f.Add([]byte(`{"_retry_metadata":{"attempt":1,"initial_timestamp":1643667670},"_original_payload":{"a": 1e400}}`))
	f.Add([]byte(`{"_retry_metadata":{"attempt":1e0,"initial_timestamp":-1},"_original_payload":{}}`))
	f.Add([]byte(`{"_retry_metadata":`))
	f.Add([]byte(`"_retry_metadata"`))
	f.Fuzz(func(t *testing.T, event []byte) {
		var seen []byte
		var attempt repriselambda.AsyncAttempt
		h := repriselambda.Async(payloadFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
			seen, attempt = payload, repriselambda.AttemptFrom(ctx)
			return nil, nil
		}))
		if _, err := h.Invoke(t.Context(), event); err != nil {
			t.Fatal(err)
		}
		if attempt.FirstFailed.IsZero() {
			if !bytes.Equal(seen, event) || attempt.Number != 1 {
				t.Errorf("attempt %d, of no retry, sees %q of %q", attempt.Number, seen, event)
			}
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(event, &members); err != nil || !bytes.Equal(members["_original_payload"], seen) || attempt.Number < 1 {
			t.Errorf("attempt %d, first failed at %v, sees %q of %q (%v)", attempt.Number, attempt.FirstFailed, seen, event, err)
		}
	})
}

func ExampleAsync() {
	// handler stands for lambda.NewHandler(handle), and Invoke for lambda.Start.
	handler := payloadFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		attempt := repriselambda.AttemptFrom(ctx)
		fmt.Printf("attempt %d of %s\n", attempt.Number, payload)
		return nil, nil
	})
	retryable := repriselambda.Async(handler)
	for _, event := range []string{
		`{"s3_bucket":"my_bucket"}`,
		`{"_retry_metadata":{"attempt":1,"initial_timestamp":1643667670},"_original_payload":{"s3_bucket":"my_bucket"}}`,
	} {
		if _, err := retryable.Invoke(context.Background(), []byte(event)); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// attempt 1 of {"s3_bucket":"my_bucket"}
	// attempt 2 of {"s3_bucket":"my_bucket"}
}
