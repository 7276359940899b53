package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text of others must not steer the terminal that shows it: not move the
// cursor, not change the title or the clipboard, not show text in another order than
// it has. That holds for messages, for the names of queues, for replies of endpoints
// and for what commands and functions print. The rule is here, and nowhere else:
// [Safe], which [Escape], [Line] and [Writer] apply. [Quote] is stricter.

// Safe reports whether r may be shown as it is. These may not: C0 controls but for
// tab and newline, of which ESC is one; DEL; C1 controls, of which U+009B begins
// the same sequences as ESC [; the characters that change the direction of text; and
// Unicode's separators of lines and paragraphs.
func Safe(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return true
	case r < ' ', 0x7f <= r && r <= 0x9f:
		return false
	case r == 0x061c, r == 0x200e, r == 0x200f, 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069: // directions
		return false
	case r == 0x2028, r == 0x2029:
		return false
	}
	return true
}

// Escape returns text with what is not [Safe] as \u001b, and with bytes that are not
// UTF-8 as \x9b. A line may end in CR LF. The first form is that of JSON too: JSON
// that is escaped says the same as before.
func Escape(text string) string {
	i := unsafeAt(text)
	if i == len(text) {
		return text
	}
	var b strings.Builder
	for i < len(text) {
		b.WriteString(text[:i])
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, text[i])
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[i+size:]
		i = unsafeAt(text)
	}
	b.WriteString(text)
	return b.String()
}

// unsafeAt is where text has the first character to be escaped, or its length.
func unsafeAt(text string) int {
	for i, r := range text {
		switch {
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"):
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)), !Safe(r):
			return i
		}
	}
	return len(text)
}

// Line returns text as one line of at most about n bytes, escaped: what is behind them
// is counted.
func Line(text string, n int) string {
	return Escape(strings.Join(strings.Fields(Shorten(text, n)), " "))
}

// Quote returns text between double quotes, as Go quotes what is not printable, after
// at most about n bytes of it cut: what is behind them is counted.
func Quote(text string, n int) string { return strconv.Quote(Shorten(text, n)) }

// Shorten returns at most n bytes of text, cut between characters, and says how many
// more there are.
func Shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d more bytes)", text[:n], len(text)-n)
}

// Writer returns a writer that escapes what is written to it, see [Escape]. Each Write
// must have whole characters.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ to io.Writer }

func (w writer) Write(p []byte) (int, error) {
	text := string(p)
	if escaped := Escape(text); len(escaped) != len(text) {
		if _, err := io.WriteString(w.to, escaped); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return w.to.Write(p)
}
