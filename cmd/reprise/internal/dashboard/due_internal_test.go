package dashboard

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestLiteral: a text is found whatever its case, and in JSON that was written in ASCII only; characters of patterns
// mean themselves.
func TestLiteral(t *testing.T) {
	for text, bodies := range map[string]map[string]bool{
		"Malmö":        {`{"city":"malmÖ"}`: true, `{"city":"Malm\u00f6"}`: true, `{"city":"Malm\u00F6"}`: true, `{"city":"Malmo"}`: false},
		"😀":            {"😀": true, `"\ud83d\ude00"`: true, `"\ud83d"`: false},
		`a.b\u00f6[1]`: {`a.b\u00f6[1]`: true, "axb\u00f61": false, "a.bö[1]": false},
		"1+1 (x)":      {"1+1 (X)": true, "11 x": false},
	} {
		pattern := regexp.MustCompile(literal(text))
		for body, want := range bodies {
			if got := pattern.MatchString(body); got != want {
				t.Errorf("%q in %s: %v, want %v", text, body, got, want)
			}
		}
	}
}

// TestDueOfNothing: a sentence says that nothing is hidden, in place of a table of zeros.
func TestDueOfNothing(t *testing.T) {
	for hidden, want := range map[int]string{0: "No message is hidden", 1: "<table"} {
		var b bytes.Buffer
		due := admin.Due{Complete: true, Spans: []admin.SpanOfDue{{Within: "minute"}, {Within: "hour", Messages: hidden}}}
		if err := parse(pages)["queue"].ExecuteTemplate(&b, "due", frame{Data: due}); err != nil {
			t.Fatal(err)
		}
		if text := b.String(); !strings.Contains(text, want) || strings.Contains(text, "<table") == (hidden == 0) {
			t.Errorf("%d hidden: %s", hidden, text)
		}
	}
}

// TestDueOfLeases: messages that a consumer holds are not said to come when their lease ends, and those that wait for
// a retry are.
func TestDueOfLeases(t *testing.T) {
	const renewed = "The time is the end of its lease, which the consumer renews."
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for state, leased := range map[string]bool{
		operate.StandingHeld: true, operate.StandingWorking: true, operate.StandingSettling: true,
		operate.StandingRetry: false, operate.StandingDelayed: false,
	} {
		var b bytes.Buffer
		due := admin.Due{At: now, Complete: true, Looked: 5, Spans: []admin.SpanOfDue{{
			Within: "minute", Messages: 5, Looked: 5, First: now.Add(time.Second), Last: now.Add(time.Minute), Why: []admin.WhyDue{{State: state, Why: "so", Messages: 5}},
		}}}
		if err := parse(pages)["queue"].ExecuteTemplate(&b, "due", frame{Data: due}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), renewed); got != leased || !strings.Contains(b.String(), state+": so") {
			t.Errorf("%s: %s", state, b.String())
		}
	}
}
