package operate

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
)

// FuzzScanStory: where the scanner can read a story, it reads what the JSON decoder reads; where the decoder
// fails, the scanner does.
func FuzzScanStory(f *testing.F) {
	for _, text := range storiesToScan {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := scanStory(text)
		if !ok {
			return
		}
		var story reprise.Story
		if err := json.Unmarshal([]byte(text), &story); err != nil {
			t.Fatalf("%q is read as %+v, and is no story: %v", text, got, err)
		}
		want := Death{Reason: story.Reason, Error: story.Error, Source: story.Source, At: story.Last}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-decoded +scanned):\n%s", text, diff)
		}
	})
}

var storiesToScan = []string{
	`{"reason":"attempts","attempts":20,"error":"order 7: the target answered 500","source":"arn:aws:sqs:us-east-1:000000000000:orders","last":"2026-11-24T11:00:00Z"}`,
	`{"reason":"permanent","attempts":-1,"receives":3,"sent":"2026-11-24T11:00:00.123456789+02:00","first":"2026-11-24T11:00:00Z","last":"2026-11-24T11:00:00.5Z","error":"Post \"http://a/\u003cb\u003e\": \u00e9 \\ \t\/","source":"","message":"a","origin":"b","consumer":"c","signature":"k:x"}`,
	` { "reason" : "age" , "last" : "2026-11-24T11:00:00Z" } `,
	"{\n\"reason\": \"age\",\t\"attempts\": 0\r\n}", `{}`, `{"error":"grüße"}`, `{"reason":"a","reason":"b"}`,
	`{"Reason":"a"}`, `{"reason":null}`, `{"reason":1}`, `{"attempts":01}`, `{"attempts":1.5}`, `{"attempts":1e3}`, `{"attempts":12345678901234567890}`, `{"attempts":"1"}`, `{"attempts":-}`,
	`{"last":"2026-11-24T11:00:00\u005a"}`, `{"last":"yesterday"}`, `{"last":""}`, `{"last":"2026-11-24T11:00:00"}`, `{"last":"2026-1-4T1:00:00Z"}`,
	`{"error":"\ud83d\ude00"}`, `{"error":"\ud83d"}`, `{"error":"\u00"}`, `{"error":"\x"}`, "{\"error\":\"a\nb\"}", "{\"error\":\"\xff\"}", "{\"error\":\"\\n\xff\"}", `{"error":"\"}`, `{"error":"\\"}`,
	`{"error":"a"`, `{"error":"a"},`, `{"error":"a",}`, `{"error" "a"}`, `{error:"a"}`, `{"other":{"reason":"a"}}`, `[]`, ``, `{"re\u0061son":"a"}`,
}

// TestLettersAreRead: a letter tells groups what a message that is read as a whole tells them, also if its
// story is not of the usual form.
func TestLettersAreRead(t *testing.T) {
	sent := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	var all []map[string]string
	for _, story := range storiesToScan {
		all = append(all, map[string]string{reprise.StoryAttribute: story})
	}
	handled := map[string]string{
		repriselambda.ReasonAttribute: "attempts", repriselambda.AttemptsAttribute: "3", repriselambda.LastAttribute: "2026-11-24T11:00:00Z",
		repriselambda.ErrorTypeAttribute: "Refused", repriselambda.ErrorMessageAttribute: "no", repriselambda.FunctionAttribute: "arn:aws:lambda:eu-west-1:1:function:f",
	}
	all = append(all, handled, map[string]string{"tenant": "a"}, nil)
	scanned := 0
	for _, attributes := range all {
		for _, moved := range []string{"", "arn:aws:sqs:us-east-1:000000000000:moved"} {
			m := types.Message{Attributes: map[string]string{"DeadLetterQueueSourceArn": moved, "SentTimestamp": "1767312000000"}, MessageAttributes: make(map[string]types.MessageAttributeValue)}
			for name, text := range attributes {
				m.MessageAttributes[name] = types.MessageAttributeValue{StringValue: &text}
			}
			whole := Read("", m, nil)
			var read, told Groups
			read.Add(&whole)
			told.AddLetter(&Letter{Sent: sent, Moved: moved, Attribute: func(name string) string { return attributes[name] }})
			if diff := cmp.Diff(read.List(), told.List()); diff != "" {
				t.Errorf("%q, moved from %q (-read as a whole +letter):\n%s", attributes, moved, diff)
			}
		}
		if _, ok := scanStory(attributes[reprise.StoryAttribute]); ok {
			scanned++
		}
	}
	if scanned < 6 {
		t.Errorf("the scanner reads %d of the stories", scanned)
	}
}

// TestLettersCostNothing: a letter of the usual form, with an error whose pattern is known, is counted without an
// allocation.
func TestLettersCostNothing(t *testing.T) {
	var g Groups
	story := storiesToScan[0]
	l := Letter{ID: "a", Sent: time.Now(), Attribute: func(name string) string {
		if name == reprise.StoryAttribute {
			return story
		}
		return ""
	}}
	g.AddLetter(&l)
	g.AddLetter(&l)
	g.AddLetter(&l)
	for i := range maxPatterns { // so that errors are not remembered any more
		g.patterns[fmt.Sprint("error ", i)] = ""
	}
	delete(g.patterns, "order 7: the target answered 500")
	if n := testing.AllocsPerRun(100, func() { g.AddLetter(&l) }); n > 0 {
		t.Errorf("a letter costs %g allocations", n)
	}
}
