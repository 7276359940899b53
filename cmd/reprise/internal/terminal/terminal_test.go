package terminal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		width, indent int
		text, want    string
	}{
		{40, 4, "  short", "  short\n"},
		{20, 4, "  one two three four five", "  one two three four\n    five\n"},
		{20, 4, "  12345678901234567890 then", "  12345678901234567890\n    then\n"}, // the first word stays where it is
		{20, 4, "see http://127.0.0.1:123 now", "see\nhttp://127.0.0.1:123\n    now\n"},
		{20, 2, "שלום 日本語 naïve ééééé ü", "שלום 日本語 naïve ééééé\n  ü\n"},
		{5, 0, "never less than twenty columns", "never less than\ntwenty columns\n"},
		{20, 4, "", "\n"},
	} {
		var b strings.Builder
		terminal.Plain(&b, test.width, true).Wrap(test.indent, test.text)
		if b.String() != test.want {
			t.Errorf("Wrap(%d, %q) on %d columns:\n%swant:\n%s", test.indent, test.text, test.width, b.String(), test.want)
		}
	}
}

func TestBar(t *testing.T) {
	for _, test := range []struct {
		part    float64
		width   int
		unicode bool
		want    string
	}{
		{0, 10, true, ""},
		{-1, 10, true, ""},
		{0.5, 0, true, ""},
		{1, 4, true, "████"},
		{2, 4, true, "████"},
		{0.5, 3, true, "█▌"},
		{0.0001, 10, true, "▏"},
		{0.4375, 2, true, "▉"},
		{1, 4, false, "####"},
		{0.5, 4, false, "##"},
		{0.0001, 10, false, "#"},
	} {
		if got := terminal.Plain(nil, 80, test.unicode).Bar(test.part, test.width); got != test.want {
			t.Errorf("Bar(%v, %d), unicode %v = %q, want %q", test.part, test.width, test.unicode, got, test.want)
		}
	}
}

// TestFile: what is no terminal is neither redrawn nor coloured, and is 80 wide.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := terminal.New(f, func(name string) string {
		return map[string]string{"TERM": "xterm", "LANG": "de_DE.utf8", "LC_ALL": ""}[name]
	})
	if out.Live() || out.Width() != 80 || out.Paint(terminal.Red, "x") != "x" || out.Bar(1, 1) != "█" {
		t.Errorf("a file is live %v, %d wide, paints %q and draws %q", out.Live(), out.Width(), out.Paint(terminal.Red, "x"), out.Bar(1, 1))
	}
	out.Redraw("progress")
	out.Printf("%d lines", 1)
	out.Done()
	text, err := os.ReadFile(name)
	if err != nil || string(text) != "1 lines\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if bar := terminal.New(f, func(string) string { return "" }).Bar(1, 1); bar != "#" {
		t.Errorf("without a locale a bar is %q, want #", bar)
	}
}
