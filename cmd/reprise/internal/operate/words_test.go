package operate_test

import (
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestWords: people read every part of a selection and of an edit, in an order that does not change.
func TestWords(t *testing.T) {
	all := operate.Criteria{
		IDs: []string{"1", "2"}, Reasons: []string{"age", "attempts"}, Source: "orders", Group: "g", Error: "503", Body: "EUK",
		Attributes: map[string]string{"tenant": "acme", "lang": "sv"}, Where: []string{"a=1", "b~2"}, OlderThan: "2h", NewerThan: "3h",
	}
	const want = "reason age or attempts, from orders, group g, error matches 503, body matches EUK, attribute lang matches sv, attribute tenant matches acme, " +
		"where a=1 and b~2, ids 1 2, older than 2h, newer than 3h"
	if got := all.Words(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	edit := operate.Rewrite{Find: "EUK", Replace: "EUR", Set: map[string]string{"b": "2", "a": "1"}, Remove: []string{"c"}}
	if got, want := edit.Words(), `"EUK" in bodies becomes "EUR", attribute a becomes "1", attribute b becomes "2", attribute c is removed`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (operate.Criteria{}).Words() + (operate.Rewrite{}).Words(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
