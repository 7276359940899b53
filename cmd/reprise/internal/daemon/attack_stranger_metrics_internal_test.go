package daemon

// Holds off: a client without a key, whose words must not break what operators read.

import (
	"bufio"
	"strings"
	"testing"
)

// TestAttackLabelValues: no value of a label, which an older journal may bring, makes a
// scrape fail or a line of its own.
func TestAttackLabelValues(t *testing.T) {
	var text strings.Builder
	out := exposition{bufio.NewWriter(&text)}
	out.sample("m", 1, "arn", "eu\xff\x00\x1b\u009b\n\"\\é")
	if err := out.w.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := `m{arn="eu` + strings.Repeat("\uFFFD", 4) + `\n\"\\é"} 1` + "\n"; text.String() != want {
		t.Errorf("wrote %q, want %q", text.String(), want)
	}
}
