package repriselambda_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// TestPoison goes to the dead-letter queue at once, with why, and nothing is invoked
// that makes no sense. What is given up for a function has its payload, what is of no
// function stays what it was.
func TestPoison(t *testing.T) {
	timestamp := regexp.MustCompile(`"timestamp":"[^"]*"`) // which is not of the bubble
	record := func(request string) string {
		r := recordOfFailure("request-1", request, "RetriesExhausted", `{"errorType":"Boom","errorMessage":"at last"}`)
		return timestamp.ReplaceAllString(r, `"timestamp":"2000-01-01T00:00:00.000Z"`)
	}
	large := `"` + strings.Repeat("x", 1<<20-16<<10) + `"`
	for name, c := range map[string]struct {
		body   string // of the message
		reason string
		want   string // of the dead letter; empty: the same
		says   string
	}{
		"not JSON":          {body: "hello", reason: "not-json", says: "invalid character"},
		"half of it":        {body: record(order)[:200], reason: "not-json"},
		"null":              {body: "null", reason: "wrong-shape", says: "no timestamp"},
		"an array":          {body: "[1]", reason: "wrong-shape"},
		"a number":          {body: "7", reason: "wrong-shape"},
		"another object":    {body: `{"hello":"world"}`, reason: "wrong-shape", says: "no timestamp"},
		"no time":           {body: strings.Replace(record(order), `"timestamp":"2`, `"timestamp":"soon, 2`, 1), reason: "wrong-shape"},
		"no function":       {body: strings.Replace(record(order), `"functionArn"`, `"function"`, 1), reason: "wrong-shape", says: "no requestContext.functionArn"},
		"no condition":      {body: strings.Replace(record(order), `"condition"`, `"state"`, 1), reason: "wrong-shape", says: "no requestContext.condition"},
		"no payload":        {body: strings.Replace(record(order), `"requestPayload"`, `"payload"`, 1), reason: "wrong-shape", says: "no requestPayload"},
		"a context of text": {body: `{"timestamp":"2026-01-01T00:00:00Z","requestContext":"x","requestPayload":{}}`, reason: "wrong-shape"},
		"next year":         {body: strings.Replace(record(order), `"2000-`, `"2001-`, 1), reason: "wrong-shape", says: "ahead"},
		"a success":         {body: strings.Replace(record(order), "RetriesExhausted", "Success", 1), reason: "not-a-failure", says: "on success"},
		"metadata of text":  {body: record(`{"_retry_metadata":"x","_original_payload":1}`), reason: "bad-metadata", want: `{"_retry_metadata":"x","_original_payload":1}`},
		"attempt of text":   {body: record(`{"_retry_metadata":{"attempt":"1","initial_timestamp":5},"_original_payload":1}`), reason: "bad-metadata", want: `{"_retry_metadata":{"attempt":"1","initial_timestamp":5},"_original_payload":1}`},
		"many retries":      {body: record(`{"_retry_metadata":{"attempt":1000001,"initial_timestamp":5},"_original_payload":1}`), reason: "bad-metadata", want: `{"_retry_metadata":{"attempt":1000001,"initial_timestamp":5},"_original_payload":1}`},
		"the future":        {body: record(`{"_retry_metadata":{"attempt":1,"initial_timestamp":9999999999},"_original_payload":1}`), reason: "bad-metadata", want: `{"_retry_metadata":{"attempt":1,"initial_timestamp":9999999999},"_original_payload":1}`, says: "2286"},
		"too large":         {body: record(large), reason: "too-large", want: large, says: "direct mode"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, always, repriselambda.RetryConfig{Retry: retry.Policy{Backoff: retry.Constant(time.Second)}})
				s.queue.Send(c.body)
				s.run(time.Hour)
				letters, _ := s.letters()
				if len(letters) != 1 || len(s.queue.Messages()) > 0 || len(s.lambda.made()) > 0 {
					t.Fatalf("%d dead letters, %d messages left, %d invocations; want the one", len(letters), len(s.queue.Messages()), len(s.lambda.made()))
				}
				want := c.want
				if want == "" {
					want = c.body
				}
				l := letters[0]
				if l.Body != want || l.Attributes[repriselambda.ReasonAttribute] != c.reason {
					t.Errorf("the dead letter is %.200s for %q, want %.200s for %q", l.Body, l.Attributes[repriselambda.ReasonAttribute], want, c.reason)
				}
				if c.want == "" {
					if f, ok := l.Attributes[repriselambda.FunctionAttribute]; ok {
						t.Errorf("it says that it is of function %q", f)
					}
					if !strings.Contains(l.Attributes[repriselambda.ErrorMessageAttribute], c.says) {
						t.Errorf("its error is %q, want one that says %q", l.Attributes[repriselambda.ErrorMessageAttribute], c.says)
					}
				}
			})
		})
	}
}

// TestRefusedInvocations: what Lambda will never take is given up at once, with the
// function's last error and the reason.
func TestRefusedInvocations(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		for name, c := range map[string]struct {
			answer reply
			reason string
		}{
			"a function that is deleted": {reply{status: 404, code: "ResourceNotFoundException"}, "function-not-found"},
			"too large for Lambda":       {reply{status: 413, code: "RequestTooLargeException"}, "too-large"},
			"too large for a proxy":      {reply{status: 413}, "too-large"},
			"not JSON for Lambda":        {reply{status: 400, code: "InvalidRequestContentException"}, "refused"},
		} {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSystem(t, always, repriselambda.RetryConfig{Mode: mode, Timeout: 20 * time.Second})
					s.lambda.answers = func(call) *reply { return &c.answer }
					s.lambda.invoke(order)
					s.run(time.Hour)
					letters, _ := s.letters()
					if len(letters) != 1 || len(s.lambda.made()) != 1 || len(s.queue.Messages()) > 0 {
						t.Fatalf("%d dead letters after %d invocations, %d messages left", len(letters), len(s.lambda.made()), len(s.queue.Messages()))
					}
					want := map[string]string{"reprise-reason": c.reason, "reprise-attempts": "1", "reprise-function": flaky, "reprise-error-type": "Timeout"}
					for name, value := range want {
						if got := letters[0].Attributes[name]; got != value {
							t.Errorf("%s is %q, want %q", name, got, value)
						}
					}
					if letters[0].Body != order {
						t.Errorf("the payload is %s", letters[0].Body)
					}
				})
			})
		}
	}
}

// TestRedrive: a dead letter that is sent back to the retry queue reaches its function
// as if it were sent for the first time, and has all attempts again.
func TestRedrive(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, fails(6), repriselambda.RetryConfig{Mode: mode, Timeout: 20 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 3, MaxAge: time.Hour}})
				s.lambda.invoke(order)
				s.run(24 * time.Hour)
				time.Sleep(5 * time.Hour)
				before := len(s.lambda.made())
				began := time.Now()
				s.redrive()
				s.run(24 * time.Hour)
				again := s.lambda.made()[before:]
				if len(again) != 3 || again[0].Payload != order || again[0].At != began {
					t.Errorf("invoked %+v, want three times, first with the payload alone and at once", again)
				}
				letters, stories := s.letters()
				if len(letters) != 1 && len(letters) != 2 { // the redrive may have the first in flight
					t.Fatalf("%d dead letters", len(letters))
				}
				if l := letters[len(letters)-1]; l.Body != order || l.Attributes["reprise-attempts"] != "3" || l.Attributes["reprise-reason"] != "attempts" {
					t.Errorf("the second dead letter is %+v, %s", l, stories)
				}
			})
		})
	}
}

// maxReceives is how often a record is received before a copy takes its place.
const maxReceives = 10

// TestLettersOfTheQueue: what the queue makes impossible, here a copy of what is too
// large for one at the last receive, is given up with the function's payload too.
func TestLettersOfTheQueue(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		synctest.Test(t, func(t *testing.T) {
			long := func(call) *failed { return &failed{"Timeout", strings.Repeat("z", 1<<20-2000)} }
			s := newSystem(t, long, repriselambda.RetryConfig{Mode: mode, Timeout: time.Second, Retry: retry.Policy{MaxAge: 1000 * time.Hour}})
			s.lambda.answers = func(call) *reply { return &reply{status: 429, code: "TooManyRequestsException"} }
			s.lambda.invoke(order)
			s.run(24 * time.Hour)
			letters, _ := s.letters()
			if len(letters) != 1 {
				t.Fatalf("%v: %d dead letters", mode, len(letters))
			}
			if l := letters[0]; l.Body != order || l.Attributes["reprise-reason"] != "receives" || l.Attributes["reprise-error-type"] != "Timeout" {
				t.Errorf("%v: the dead letter is %.100s, %+v", mode, l.Body, l.Attributes)
			}
			if n := len(s.lambda.made()); n != maxReceives {
				t.Errorf("%v: %d invocations, want one for each of %d receives", mode, n, maxReceives)
			}
		})
	}
}

// TestErrorsThatSQSRefuses are cut and cleaned, and the payload stays.
func TestErrorsThatSQSRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ugly := func(call) *failed { return &failed{"Type\x00\x1b", "a\x07b\uffff\n" + strings.Repeat("ü", 2000)} }
		s := newSystem(t, ugly, repriselambda.RetryConfig{Retry: retry.Policy{MaxAttempts: 1}})
		s.lambda.invoke(order)
		s.run(time.Hour)
		letters, _ := s.letters()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters", len(letters))
		}
		a := letters[0].Attributes
		if a["reprise-error-type"] != "Type" || !strings.HasPrefix(a["reprise-error-message"], "ab\nüü") || len(a["reprise-error-message"]) > 1000 {
			t.Errorf("the error is %q: %q", a["reprise-error-type"], a["reprise-error-message"])
		}
	})
}

// TestSmallDeadLetterQueue: where the attributes make the dead letter too large for
// its queue it goes with those that matter.
func TestSmallDeadLetterQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := func(call) *failed { return &failed{"Long", strings.Repeat("y", 5000)} }
		s := newSystem(t, long, repriselambda.RetryConfig{Retry: retry.Policy{MaxAttempts: 1}})
		s.dead.SetAttributes(map[string]string{"MaximumMessageSize": "1500"})
		payload := fmt.Sprintf("%q", strings.Repeat("z", 900))
		s.lambda.invoke(payload)
		s.run(time.Hour)
		letters, stories := s.letters()
		if len(letters) != 1 || len(stories) != 0 || letters[0].Body != payload {
			t.Fatalf("dead letters %+v", letters)
		}
		want := map[string]string{"reprise-function": flaky, "reprise-reason": "attempts", "reprise-attempts": "1"}
		for name, value := range want {
			if letters[0].Attributes[name] != value {
				t.Errorf("%s is %q, want %q", name, letters[0].Attributes[name], value)
			}
		}
	})
}
