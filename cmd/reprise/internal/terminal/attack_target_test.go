// This file holds off whoever can have text shown on an operator's terminal: the sender
// of a message, the target that it is delivered to, the service that is called. They may
// choose the text, and nothing else of what the terminal does.

package terminal_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// TestAttackTextIsEscaped: controls and directions are shown, not carried out.
func TestAttackTextIsEscaped(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"plain, שלום, 日本語, 👩‍🚀 \\u001b\tand\nmore", "plain, שלום, 日本語, 👩‍🚀 \\u001b\tand\nmore"},
		{"\x1b]0;title\x07\x1b[2J", `\u001b]0;title\u0007\u001b[2J`},
		{"\u009b2J and \u0085", `\u009b2J and \u0085`},
		{"raw \x9b2J", `raw \x9b2J`},
		{"sent to \u202edaolyap", `sent to \u202edaolyap`},
		{"\u2066\u2069\u200f\u061c", `\u2066\u2069\u200f\u061c`},
		{"gone\rreprise: done", `gone\u000dreprise: done`},
		{"of Windows\r\n", "of Windows\r\n"},
		{"\r", `\u000d`},
		{"a\u2028b", `a\u2028b`},
		{"del \x7f, nul \x00", `del \u007f, nul \u0000`},
		{"\uFFFD is a character", "\uFFFD is a character"},
	} {
		if got := terminal.Escape(test.text); got != test.want {
			t.Errorf("Escape(%q) = %q, want %q", test.text, got, test.want)
		}
		var b bytes.Buffer
		if n, err := terminal.Writer(&b).Write([]byte(test.text)); n != len(test.text) || err != nil || b.String() != test.want {
			t.Errorf("Writer wrote %q, %d, %v, want %q", b.String(), n, err, test.want)
		}
	}
}

// TestAttackTextIsBounded: what is quoted is one short line, however long it is.
func TestAttackTextIsBounded(t *testing.T) {
	long := strings.Repeat("é\n\u202e", 1<<20)
	for name, got := range map[string]string{"Line": terminal.Line(long, 101), "Quote": terminal.Quote(long, 101)} {
		if len(got) > 400 || strings.ContainsAny(got, "\n\u202e") || !utf8.ValidString(got) || !strings.Contains(got, "more bytes)") {
			t.Errorf("%s of 6 MiB: %.500q", name, got)
		}
	}
	if got := terminal.Line("two\n lines\x1b", 100); got != `two lines\u001b` {
		t.Errorf("Line = %q", got)
	}
}

// FuzzAttackEscape: nothing that a terminal obeys is left, what is harmless stays, and JSON
// says the same as before.
func FuzzAttackEscape(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[2J", "\u009b", "\x9b", "\r\n\r", "\u202e", "\uFFFD", "\xe2\x80", "\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := terminal.Escape(text)
		if !utf8.ValidString(got) {
			t.Fatalf("Escape(%q) = %q, which is not UTF-8", text, got)
		}
		for _, r := range strings.ReplaceAll(got, "\r\n", "") {
			if !terminal.Safe(r) {
				t.Fatalf("Escape(%q) = %q, which has %q", text, got, r)
			}
		}
		if terminal.Escape(got) != got {
			t.Fatalf("Escape(%q) = %q, which it escapes again", text, got)
		}
		before, _ := json.Marshal(text)
		var same string
		if err := json.Unmarshal([]byte(terminal.Escape(string(before))), &same); err != nil || same != strings.ToValidUTF8(text, "\uFFFD") && utf8.ValidString(text) {
			t.Fatalf("%s became %s: %v", before, terminal.Escape(string(before)), err)
		}
	})
}
