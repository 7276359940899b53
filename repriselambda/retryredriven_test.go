package repriselambda_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// sendLetter sends a dead letter of a function back to the retry queue.
func (s *system) sendLetter(payload string, attributes map[string]string) {
	e := sqsserver.SendMessageEntry{MessageBody: payload}
	for name, value := range attributes {
		e.MessageAttributes = append(e.MessageAttributes, sqsserver.MessageAttribute{Name: name, DataType: "String", StringValue: value})
	}
	s.queue.SendMessage(e)
}

// TestLettersOfEqualPayloads: what is redriven has its payload for a body, and a payload
// may be that of many events. Their dead letters are not mixed up.
func TestLettersOfEqualPayloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDirect(t, func(c call) *failed { return &failed{"Broken", c.Function} }, retry.Policy{MaxAttempts: 1})
		var want []letter
		for _, name := range []string{"a", "b", "c"} {
			function := strings.Replace(flaky, "flaky", name, 1)
			s.sendLetter(`{}`, map[string]string{repriselambda.FunctionAttribute: function})
			want = append(want, letter{Body: `{}`, Attributes: map[string]string{
				repriselambda.FunctionAttribute:     function,
				repriselambda.ReasonAttribute:       "attempts",
				repriselambda.AttemptsAttribute:     "1",
				repriselambda.ErrorTypeAttribute:    "Broken",
				repriselambda.ErrorMessageAttribute: function,
			}})
		}
		s.run(time.Hour)
		letters, _ := s.letters()
		for i := range letters {
			delete(letters[i].Attributes, repriselambda.FirstAttribute)
			delete(letters[i].Attributes, repriselambda.LastAttribute)
		}
		byFunction := func(a, b letter) int {
			return strings.Compare(a.Attributes[repriselambda.FunctionAttribute], b.Attributes[repriselambda.FunctionAttribute])
		}
		if diff := cmp.Diff(want, slices.SortedFunc(slices.Values(letters), byFunction)); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
	})
}

// TestSmallLettersOfEqualPayloads: the dead letters that are too large for their story, which names the message, are not
// mixed up either: they are told from each other by the function.
func TestSmallLettersOfEqualPayloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDirect(t, func(call) *failed { return &failed{"Long", strings.Repeat("y", 5000)} }, retry.Policy{MaxAttempts: 1})
		s.dead.SetAttributes(map[string]string{"MaximumMessageSize": "1024"})
		want := make(map[string]int)
		for _, name := range []string{"a", "b", "c", "d"} {
			function := strings.Replace(flaky, "flaky", name, 1)
			s.sendLetter(`{}`, map[string]string{repriselambda.FunctionAttribute: function})
			want[function] = 1
		}
		s.run(time.Hour)
		letters, stories := s.letters()
		got := make(map[string]int)
		for _, l := range letters {
			got[l.Attributes[repriselambda.FunctionAttribute]]++
		}
		if diff := cmp.Diff(want, got); diff != "" || len(stories) > 0 {
			t.Errorf("%d stories, and dead letters by function (-want +got):\n%s", len(stories), diff)
		}
	})
}

// TestLetterOfALetter says what has happened since it was redriven, and nothing of
// before.
func TestLetterOfALetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDirect(t, func(call) *failed { return &failed{Type: "Broken"} }, retry.Policy{MaxAttempts: 1})
		sent := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		s.sendLetter(order, map[string]string{
			repriselambda.FunctionAttribute:     flaky,
			repriselambda.ReasonAttribute:       "age",
			repriselambda.ErrorTypeAttribute:    "Timeout",
			repriselambda.ErrorMessageAttribute: "the database does not answer",
		})
		time.Sleep(20 * time.Minute) // the retry queue has a backlog
		s.run(time.Hour)
		letters, _ := s.letters()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters", len(letters))
		}
		a := letters[0].Attributes
		if a[repriselambda.FirstAttribute] != sent {
			t.Errorf("it begins anew at %s, want at %s, when it was redriven", a[repriselambda.FirstAttribute], sent)
		}
		if message, there := a[repriselambda.ErrorMessageAttribute]; there || a[repriselambda.ErrorTypeAttribute] != "Broken" || a[repriselambda.ReasonAttribute] != "attempts" {
			t.Errorf("the dead letter has the attributes %v, of them the message %q of an error that was before the redrive", a, message)
		}
	})
}

// TestStoryOfALongError is no longer than that of any dead letter.
func TestStoryOfALongError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := func(call) *failed { return &failed{"Long", strings.Repeat("<", 100_000)} }
		s := newSystem(t, long, repriselambda.RetryConfig{Retry: retry.Policy{MaxAttempts: 1}})
		s.lambda.invoke(order)
		s.run(time.Hour)
		_, stories := s.letters()
		if len(stories) != 1 {
			t.Fatalf("%d stories", len(stories))
		}
		var story reprise.Story
		if err := json.Unmarshal([]byte(stories[0]), &story); err != nil {
			t.Fatal(err)
		}
		if len(story.Error) > 1000 || !strings.HasPrefix(story.Error, "Long: <<<") {
			t.Errorf("the story's error has %d bytes, and begins %.20q", len(story.Error), story.Error)
		}
	})
}

// TestLettersOfTheConsumer: what the consumer gives up for reasons of the queue says
// what is known of the function's runs: all of them, and the last error.
func TestLettersOfTheConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := newDirect(t, func(call) *failed {
			n++
			return &failed{"Broken", fmt.Sprintf("run %d", n)}
		}, retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: -1})
		// Too large for a copy with its history.
		payload := fmt.Sprintf("%q", strings.Repeat("z", 1<<20-2000))
		s.lambda.invoke(payload)
		s.run(24 * time.Hour)
		letters, _ := s.letters()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters", len(letters))
		}
		a := letters[0].Attributes
		if a[repriselambda.ReasonAttribute] != "receives" || a[repriselambda.ErrorMessageAttribute] != fmt.Sprintf("run %d", n) {
			t.Errorf("after %d runs the dead letter has the attributes %v", n, a)
		}
	})
}

// TestHandlerThatDiesOfAMessage: a message of direct mode that is received again and
// again without an outcome is set aside, and given up if that goes on. Its dead letter
// says what is known.
func TestHandlerThatDiesOfAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDirect(t, always, retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: -1})
		s.lambda.invoke(order)
		end := time.Now().Add(24 * time.Hour)
		for len(s.lambda.made()) < 2 && s.awaitMessage(end) {
			s.invoke()
		}
		for _, deaths := range []int{4, 2} {
			for range deaths {
				s.awaitMessage(end)
				s.event(10)
			}
			s.awaitMessage(end)
			s.invoke()
		}
		letters, _ := s.letters()
		if len(letters) != 1 || len(s.queue.Messages()) > 0 || len(s.lambda.made()) != 2 {
			t.Fatalf("%d dead letters, %d messages, %d invocations", len(letters), len(s.queue.Messages()), len(s.lambda.made()))
		}
		want := map[string]string{"reprise-function": flaky, "reprise-reason": "crash", "reprise-attempts": "3", "reprise-error-type": "Timeout"}
		for name, value := range want {
			if got := letters[0].Attributes[name]; got != value {
				t.Errorf("%s is %q, want %q", name, got, value)
			}
		}
		if letters[0].Body != order {
			t.Errorf("the payload is %s", letters[0].Body)
		}
	})
}
