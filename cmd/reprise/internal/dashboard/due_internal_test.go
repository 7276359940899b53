package dashboard

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

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
