//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// lateAllowance is how much later than a second after its due time an invoke may come on a busy
// machine. The delays are printed.
const lateAllowance = 2 * time.Second

// envelope is the payload of the retry handler's invokes.
type envelope struct {
	Metadata struct {
		Attempt int   `json:"attempt"`
		Initial int64 `json:"initial_timestamp"`
	} `json:"_retry_metadata"`
	Payload json.RawMessage `json:"_original_payload"`
}

// asyncEnvelope returns the envelope of an invoke, or none where it is the first.
func asyncEnvelope(t *testing.T, payload string) envelope {
	t.Helper()
	var e envelope
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		t.Fatalf("the function was invoked with %s: %v", payload, err)
	}
	if e.Payload == nil {
		e.Payload = json.RawMessage(payload)
	}
	return e
}

// TestAsyncLambdaRetries runs the system to success: functions that fail three times are
// retried in envelopes, each when its policy says, neither sooner nor more than a second
// later, and succeed at the fourth attempt. Nothing is invoked twice or skipped.
func TestAsyncLambdaRetries(t *testing.T) {
	t.Parallel()
	const events, attempts = 8, 4
	s := newAsyncSystem(t, asyncConfig{handler: map[string]string{"BASE_BACKOFF": "1"}})
	payload := make(map[string]string)
	for i := range events {
		id := fmt.Sprintf("o-%d", i)
		payload[id] = fmt.Sprintf(`{"fail_until":%d,"text":"<é&>","big":1.0,"id":%q}`, attempts, id)
		s.invoke(payload[id])
	}
	for _, m := range s.await("done", events) {
		var record struct {
			ResponsePayload struct {
				ID      string
				Attempt int
			}
		}
		if err := json.Unmarshal([]byte(m.Body), &record); err != nil {
			t.Fatal(err)
		}
		if record.ResponsePayload.Attempt != attempts {
			t.Errorf("%s succeeded at attempt %d, want %d", record.ResponsePayload.ID, record.ResponsePayload.Attempt, attempts)
		}
	}
	s.settled()

	policy := repriselambda.DefaultRetry()
	invokes, records := s.seen()
	var late []time.Duration
	for id, sent := range payload {
		own := slices.DeleteFunc(slices.Clone(invokes), func(i asyncInvoke) bool { return !strings.Contains(i.Payload, fmt.Sprintf("%q", id)) })
		failures := slices.DeleteFunc(slices.Clone(records), func(r asyncRecord) bool {
			return r.RequestContext.Condition != "RetriesExhausted" || !strings.Contains(string(r.RequestPayload), fmt.Sprintf("%q", id))
		})
		if len(own) != attempts || len(failures) != attempts-1 {
			t.Errorf("%s was invoked %d times and failed %d times, want %d and %d", id, len(own), len(failures), attempts, attempts-1)
			continue
		}
		first := failures[0].Timestamp.Unix()
		for n, i := range own {
			e := asyncEnvelope(t, i.Payload)
			if string(e.Payload) != sent {
				t.Errorf("attempt %d of %s has the payload %s, want %s", n+1, id, e.Payload, sent)
			}
			if n == 0 {
				continue
			}
			want := fmt.Sprintf(`{"_retry_metadata":{"attempt":%d,"initial_timestamp":%d},"_original_payload":%s}`, n, first, sent)
			if diff := cmp.Diff(want, i.Payload); diff != "" {
				t.Errorf("envelope of attempt %d of %s (-want +got):\n%s", n+1, id, diff)
			}
			failed := failures[n-1]
			begin := time.Unix(first, 0)
			if n == 1 {
				begin = failed.Timestamp
			}
			due := policy.Decide(retry.Failure{N: n, Seed: failed.RequestContext.RequestID, Sent: begin, First: begin, Ended: failed.Timestamp}).At
			if i.At.Before(due) {
				t.Errorf("attempt %d of %s came %v before it was due", n+1, id, due.Sub(i.At))
			}
			late = append(late, i.At.Sub(due))
		}
	}
	slices.Sort(late)
	if len(late) == 0 {
		t.Fatal("no retry was measured")
	}
	t.Logf("%d retries: the median came %v after it was due, the last %v", len(late), late[len(late)/2], late[len(late)-1])
	if last := late[len(late)-1]; last > time.Second+lateAllowance {
		t.Errorf("a retry came %v after it was due", last)
	}
}

// asyncLetter is the part of a dead letter that the tests check.
type asyncLetter struct{ Payload, Reason, Attempts, ErrorType, Function string }

func asyncLetterOf(m sqsserver.MessageInfo) asyncLetter {
	a := asyncAttributes(m)
	return asyncLetter{
		m.Body, a[repriselambda.ReasonAttribute], a[repriselambda.AttemptsAttribute],
		a[repriselambda.ErrorTypeAttribute], a[repriselambda.FunctionAttribute],
	}
}

const flakyARN = "arn:aws:lambda:us-east-1:000000000000:function:flaky"

// TestAsyncLambdaExhausted: an event that never succeeds is dead-lettered with its
// payload and its story when its attempts or its age are used up, and can be sent back.
func TestAsyncLambdaExhausted(t *testing.T) {
	t.Parallel()
	const payload = `{"id":"x","fail_until":1000}`
	for _, test := range []struct {
		name     string
		handler  map[string]string
		reason   string
		attempts string // none: several
		redrive  func(s *asyncSystem)
	}{
		{"attempts", map[string]string{"BASE_BACKOFF": "200ms", "MAX_RETRIES": "2"}, "attempts", "3", (*asyncSystem).redriveBySQS},
		{"age", map[string]string{"RETRY_POLICY": "constant(700ms) age=3s"}, "age", "", (*asyncSystem).redrive},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newAsyncSystem(t, asyncConfig{handler: test.handler})
			s.invoke(payload)
			m := s.await("dead", 1)[0]
			s.settled()
			got := asyncLetterOf(m)
			runs, _ := s.seen()
			if got.Attempts != fmt.Sprint(len(runs)) {
				t.Errorf("the dead letter tells of %s attempts, and there were %d", got.Attempts, len(runs))
			}
			want := asyncLetter{payload, test.reason, test.attempts, "errorString", flakyARN}
			if test.attempts == "" {
				want.Attempts = got.Attempts
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("dead letter (-want +got):\n%s", diff)
			}
			a := asyncAttributes(m)
			first, err1 := time.Parse(time.RFC3339, a[repriselambda.FirstAttribute])
			last, err2 := time.Parse(time.RFC3339, a[repriselambda.LastAttribute])
			if err1 != nil || err2 != nil || !last.After(first) || !strings.Contains(a[repriselambda.ErrorMessageAttribute], "failed, as it was asked to") {
				t.Errorf("the dead letter has the attributes %v", a)
			}

			test.redrive(s)
			for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
				if again, _ := s.seen(); len(again) > len(runs) {
					if i := again[len(runs)]; i.Payload != payload {
						t.Errorf("after the redrive the function was invoked with %s, want %s", i.Payload, payload)
					}
					break
				}
				if time.Now().After(end) {
					t.Fatal("after the redrive the function was never invoked")
				}
			}
			if again := asyncLetterOf(s.await("dead", 1)[0]); again.Payload != payload || again.Reason != test.reason {
				t.Errorf("given up again, the dead letter is %+v", again)
			}
			s.settled()
		})
	}
}

// TestAsyncLambdaThrottled: invokes that Lambda refuses for the moment are put off, and
// use up no attempt.
func TestAsyncLambdaThrottled(t *testing.T) {
	t.Parallel()
	refusals := make(chan int, 2)
	refusals <- 429
	refusals <- 500
	s := newAsyncSystem(t, asyncConfig{
		handler: map[string]string{"BASE_BACKOFF": "200ms", "MAX_RETRIES": "1"},
		refuse: func(i asyncInvoke) int {
			if !strings.Contains(i.Payload, "_retry_metadata") {
				return 0
			}
			select {
			case status := <-refusals:
				return status
			default:
				return 0
			}
		},
	})
	s.invoke(`{"id":"t","fail_until":2}`)
	s.await("done", 1)
	s.settled()
	if invokes, _ := s.seen(); len(invokes) != 2 || asyncEnvelope(t, invokes[1].Payload).Metadata.Attempt != 1 {
		t.Errorf("the invokes that were not refused are %+v, want two, of which the second is the first retry", invokes)
	}
	if dead := s.messages("dead"); len(dead) > 0 || len(refusals) > 0 {
		t.Errorf("%d dead letters, %d refusals to come", len(dead), len(refusals))
	}
}

// TestAsyncLambdaFunctionDeleted: the event of a deleted function is dead-lettered, since no
// retry could help.
func TestAsyncLambdaFunctionDeleted(t *testing.T) {
	t.Parallel()
	s := newAsyncSystem(t, asyncConfig{handler: map[string]string{"BASE_BACKOFF": "2"}})
	const payload = `{"id":"d","fail_until":1000}`
	s.invoke(payload)
	s.await("retries", 1)
	if err := s.lambda.Remove("flaky"); err != nil {
		t.Fatal(err)
	}
	want := asyncLetter{payload, "function-not-found", "1", "errorString", flakyARN}
	if diff := cmp.Diff(want, asyncLetterOf(s.await("dead", 1)[0])); diff != "" {
		t.Errorf("dead letter (-want +got):\n%s", diff)
	}
	s.settled()
}
