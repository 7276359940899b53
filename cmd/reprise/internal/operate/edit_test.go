package operate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestDifference: only the lines that differ are shown, of JSON as it reads indented.
func TestDifference(t *testing.T) {
	with := func(body string, attributes ...string) *operate.Message {
		m := &operate.Message{Body: body}
		for i := 0; i+2 < len(attributes); i += 3 {
			if m.Attributes == nil {
				m.Attributes = make(map[string]operate.Attribute)
			}
			m.Attributes[attributes[i]] = operate.Attribute{Type: attributes[i+1], Value: attributes[i+2]}
		}
		return m
	}
	for _, test := range []struct {
		name          string
		before, after *operate.Message
		want          string
	}{
		{"nothing", with("x", "a", "String", "1"), with("x", "a", "String", "1"), ""},
		{"text", with("one\ntwo\nthree"), with("one\n2\nthree"), "body\n- two\n+ 2\n"},
		{"JSON", with(`{"a":1,"b":2}`), with("{\"a\":1,\"b\":3}\n"), "body\n-   \"b\": 2\n+   \"b\": 3\n"},
		{"spacing of JSON", with(`{"a":1}`), with(`{"a": 1}`), "body\n- {\"a\":1}\n+ {\"a\": 1}\n"},
		{"JSON that was none", with("{"), with("{}"), "body\n- {\n+ {}\n"},
		{"a line more", with("a\nb"), with("a\nb\nb"), "body\n+ b\n"},
		{"attributes", with("x", "gone", "String", "1", "changed", "Number", "2"), with("x", "changed", "Number", "3", "new", "String", "4"), strings.Join([]string{
			"attribute changed", "- Number 2", "+ Number 3", "attribute gone", "- String 1", "attribute new", "+ String 4", "",
		}, "\n")},
	} {
		if diff := cmp.Diff(test.want, operate.Difference(test.before, test.after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestApply: an edit changes a copy of the message; a type stays, and mistakes are named.
func TestApply(t *testing.T) {
	before := operate.Message{Body: "x", Attributes: map[string]operate.Attribute{"n": {Type: "Number", Value: "1"}, "bytes": {Type: "Binary", Binary: []byte{1}}}}
	body, empty := "y", ""
	after, err := (&operate.Edit{Body: &body, Set: map[string]string{"n": "2", "new": "z"}, Remove: []string{"bytes"}}).Apply(before)
	want := operate.Message{Body: "y", Attributes: map[string]operate.Attribute{"n": {Type: "Number", Value: "2"}, "new": {Type: "String", Value: "z"}}}
	if diff := cmp.Diff(want.Attributes, after.Attributes); err != nil || after.Body != "y" || diff != "" || len(before.Attributes) != 2 || before.Attributes["n"].Value != "1" {
		t.Errorf("%v, %+v (-want +got):\n%s", err, after, diff)
	}
	many := make(map[string]string)
	for _, name := range strings.Split("abcdefghi", "") {
		many[name] = "1"
	}
	for want, edit := range map[string]*operate.Edit{
		"empty":                {Body: &empty},
		"has no attribute":     {Remove: []string{"absent"}},
		"is binary":            {Set: map[string]string{"bytes": "x"}},
		"written by consumers": {Set: map[string]string{"reprise-history": "x"}},
		"SQS permits 10":       {Set: many},
	} {
		if _, err := edit.Apply(before); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", edit, err, want)
		}
	}
}

// TestEditsHaveTheirOwnDeduplication: two edits of a letter that differ in anything are two messages to a FIFO queue, which
// would drop the second one otherwise, and one edit that is sent again is one.
func TestEditsHaveTheirOwnDeduplication(t *testing.T) {
	with := func(id, body string, a operate.Attribute) operate.Message {
		return operate.Message{ID: id, Body: body, Attributes: map[string]operate.Attribute{"n": a}}
	}
	text := operate.Attribute{Type: "String", Value: "1"}
	renamed := with("id", "b", text)
	renamed.Attributes = map[string]operate.Attribute{"m": text}
	seen := make(map[string]string)
	for name, m := range map[string]operate.Message{
		"one": with("id", "b", text), "another letter": with("other", "b", text), "another body": with("id", "c", text), "another name": renamed,
		"another value": with("id", "b", operate.Attribute{Type: "String", Value: "2"}), "another type": with("id", "b", operate.Attribute{Type: "Number", Value: "1"}),
		"bytes": with("id", "b", operate.Attribute{Type: "Binary", Binary: []byte("1")}), "other bytes": with("id", "b", operate.Attribute{Type: "Binary", Binary: []byte("2")}),
	} {
		out, again, standard := reprise.Outgoing{DeduplicationID: "x"}, reprise.Outgoing{DeduplicationID: "y"}, reprise.Outgoing{}
		m.Become(&out)
		m.Become(&again)
		m.Become(&standard)
		if out.DeduplicationID != again.DeduplicationID || standard.DeduplicationID != "" {
			t.Errorf("%s: sent twice it is %q and %q, and for a standard queue %q", name, out.DeduplicationID, again.DeduplicationID, standard.DeduplicationID)
		}
		if other, twice := seen[out.DeduplicationID]; twice {
			t.Errorf("%s and %s have the same deduplication id", name, other)
		}
		seen[out.DeduplicationID] = name
	}
}

// TestStoryOfADeath: what an exported letter says of its death is what it says when it has been imported again.
func TestStoryOfADeath(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	death := operate.Death{
		Reason: "attempts", Error: "no", Attempts: 3, At: at(3), Sent: at(1), First: at(2), Source: "arn:aws:sqs:eu-west-1:1:orders", Origin: "o", Message: "m",
	}
	story, err := death.Story()
	if err != nil {
		t.Fatal(err)
	}
	again := operate.Read(urlOf+"dead", types.Message{MessageAttributes: map[string]types.MessageAttributeValue{reprise.StoryAttribute: stringAttribute(story)}}, nil)
	if diff := cmp.Diff(&death, again.Death); diff != "" {
		t.Errorf("(-exported +imported):\n%s", diff)
	}
	if story, err := (*operate.Death)(nil).Story(); story != "" || err != nil {
		t.Errorf("of a message that is no letter: %q, %v", story, err)
	}
}
