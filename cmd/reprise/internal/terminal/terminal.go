// Package terminal knows what an output can do: its width, and whether it can redraw a line,
// show colours and draw bars.
package terminal

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// Terminal is an output whose text stays within its width. It may be used by several
// goroutines at once.
type Terminal struct {
	w       io.Writer
	live    bool
	color   bool
	unicode bool
	width   func() int

	mu    sync.Mutex
	drawn bool // the live line is on the screen
}

// plainWidth is the width of outputs that are not terminals, such as a file.
const plainWidth = 80

// minWidth is the smallest width that text is laid out for.
const minWidth = 20

// New returns the terminal f; if f is not a terminal, or TERM is dumb, it gets plain text.
// NO_COLOR (see no-color.org) turns colours off, and a locale that is not UTF-8 turns block
// characters off.
func New(f *os.File, getenv func(string) string) *Terminal {
	fd := int(f.Fd())
	isTerminal := Is(f)
	live := isTerminal && getenv("TERM") != "dumb"
	t := &Terminal{
		w:       f,
		live:    live,
		color:   live && getenv("NO_COLOR") == "",
		unicode: isUTF8(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG"))),
		width:   func() int { return plainWidth },
	}
	if isTerminal {
		t.width = func() int {
			columns, _, err := term.GetSize(fd)
			if err != nil || columns <= 0 {
				return plainWidth
			}
			return columns
		}
	}
	return t
}

// Is reports whether f is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Plain returns w as plain text of the given width.
func Plain(w io.Writer, width int, unicode bool) *Terminal {
	return &Terminal{w: w, unicode: unicode, width: func() int { return width }}
}

func isUTF8(locale string) bool {
	locale = strings.ToLower(locale)
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

// Width returns the current number of columns.
func (t *Terminal) Width() int { return max(minWidth, t.width()) }

// Unicode reports whether the output shows block characters and lines.
func (t *Terminal) Unicode() bool { return t.unicode }

// Live reports whether [Terminal.Redraw] redraws.
func (t *Terminal) Live() bool { return t.live }

// Color is the colour of a piece of text.
type Color int

// The colours.
const (
	Red     Color = 31
	Green   Color = 32
	Yellow  Color = 33
	Blue    Color = 34
	Magenta Color = 35
	Cyan    Color = 36
	Gray    Color = 90
)

// Paint returns text in a colour, if the terminal shows colours.
func (t *Terminal) Paint(c Color, text string) string {
	if !t.color {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text)
}

// Printf prints a line. A live line is removed, and must be redrawn.
func (t *Terminal) Printf(format string, args ...any) { t.print(fmt.Sprintf(format, args...)) }

// print prints lines in place of the live line.
func (t *Terminal) print(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	fmt.Fprintln(t.w, text)
}

// Wrap prints text in lines that fit; the second line and those after it begin
// with indent spaces.
func (t *Terminal) Wrap(indent int, text string) {
	width, line := t.Width(), 0
	var b strings.Builder
	for i, word := range strings.Fields(text) {
		n := columns(word)
		switch {
		case i == 0:
			leading := len(text) - len(strings.TrimLeft(text, " "))
			b.WriteString(strings.Repeat(" ", leading))
			line = leading
		case line+1+n > width:
			line = max(0, min(indent, width-n)) // a long word may need the room of the indent
			b.WriteString("\n" + strings.Repeat(" ", line))
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += n
	}
	t.print(b.String())
}

// columns returns how many columns text takes, not counting escape sequences of Paint.
func columns(text string) int {
	n, escaped := 0, false
	for _, r := range text {
		switch {
		case r == '\x1b':
			escaped = true
		case !escaped:
			n++
		case r == 'm':
			escaped = false
		}
	}
	return n
}

// Redraw replaces the live line by text, cut to the width. It does nothing if the output
// cannot redraw.
func (t *Terminal) Redraw(text string) {
	if !t.live {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// One column less: a full line makes some terminals begin the next one.
	fmt.Fprintf(t.w, "\r\x1b[K%s", cut(text, t.Width()-1))
	t.drawn = true
}

// Done removes the live line.
func (t *Terminal) Done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
}

// clear removes the live line from the screen. The caller holds t.mu.
func (t *Terminal) clear() {
	if t.drawn {
		fmt.Fprint(t.w, "\r\x1b[K")
		t.drawn = false
	}
}

// cut returns at most n characters of text.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n])
}

// Bar returns a bar that fills the given part, 0 to 1, of width columns, in eighths of a
// column if the locale has block characters. Any part above 0 is visible.
func (t *Terminal) Bar(part float64, width int) string {
	if part <= 0 || width <= 0 {
		return ""
	}
	part = min(part, 1)
	if !t.unicode {
		return strings.Repeat("#", max(1, int(part*float64(width)+0.5)))
	}
	eighths := max(1, int(part*float64(width)*8+0.5))
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return bar
}
