package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text that others have written must not control the terminal that shows it: it must not
// move the cursor, change the title or the clipboard, or change the order of characters.
// Such text is in messages, names of queues, replies of endpoints and the output of commands
// and functions. [Safe] is the only rule; [Escape], [Line] and [Writer] apply it. [Quote] is
// stricter.

// Safe reports whether r may be shown unchanged. Unsafe are C0 controls, such as ESC, except
// tab and newline; DEL; C1 controls, of which U+009B begins the same sequences as ESC [; the
// characters that change the direction of text; and Unicode's separators of lines and
// paragraphs.
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

// Escape returns text in which characters that are not [Safe] are written like \u001b, and
// bytes that are not UTF-8 like \x9b. A line may end in CR LF. JSON has the first form too,
// so escaped JSON keeps its meaning.
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

// unsafeAt returns the index of the first character to escape, or the length of text.
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

// Line returns text as one escaped line of at most about n bytes, with the number of bytes
// that were cut off.
func Line(text string, n int) string {
	return Escape(strings.Join(strings.Fields(Shorten(text, n)), " "))
}

// Quote returns at most about n bytes of text as a quoted string of Go, with the number of
// bytes that were cut off.
func Quote(text string, n int) string { return strconv.Quote(Shorten(text, n)) }

// Shorten returns at most n bytes of text, cut between characters, with the number of bytes
// that were cut off.
func Shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d more bytes)", text[:n], len(text)-n)
}

// Writer returns a writer that escapes the text written to it, see [Escape]. Each Write must
// consist of complete characters.
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
