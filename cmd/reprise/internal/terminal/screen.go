package terminal

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen is the whole of a terminal, which shows text that is drawn anew again and again. While it is
// open, keys are not echoed, and Ctrl-C is a key like any other.
type Screen struct {
	in, out *os.File
	t       *Terminal
	before  *term.State
	keys    chan byte
}

// CtrlC is the key of that name.
const CtrlC = 3

// OpenScreen takes over the terminal of which in and out are the two ends. It must be closed, or the
// terminal stays unusable.
func OpenScreen(in, out *os.File, getenv func(string) string) (*Screen, error) {
	t := New(out, getenv)
	if !t.Live() || !Is(in) {
		return nil, errors.New("this is not a terminal that can be drawn on")
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	s := &Screen{in: in, out: out, t: t, before: before, keys: make(chan byte)}
	// The other screen, so that what was shown before comes back; no cursor, no wrapped lines.
	_, err = io.WriteString(out, "\x1b[?1049h\x1b[?25l\x1b[?7l")
	go s.read()
	return s, err
}

// Keys returns the keys that are pressed. It is closed when the input ends.
func (s *Screen) Keys() <-chan byte { return s.keys }

// read hands on keys for as long as the program runs: a read of a terminal cannot be ended.
func (s *Screen) read() {
	defer close(s.keys)
	var key [1]byte
	for {
		if n, err := s.in.Read(key[:]); err != nil || n == 0 {
			return
		}
		s.keys <- key[0]
	}
}

// Size returns the columns and lines of the terminal now.
func (s *Screen) Size() (width, height int) {
	_, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || height <= 0 {
		height = 24
	}
	return s.t.Width(), height
}

// Draw replaces what the screen shows by text, of which it cuts off what has no room. Text of others
// has to be escaped already.
func (s *Screen) Draw(text string) error {
	width, height := s.Size()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(cut(line, width) + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(s.out, b.String())
	return err
}

// Close gives the terminal back as it was.
func (s *Screen) Close() error {
	_, err := io.WriteString(s.out, "\x1b[?7h\x1b[?25h\x1b[?1049l")
	return errors.Join(err, term.Restore(int(s.in.Fd()), s.before))
}
