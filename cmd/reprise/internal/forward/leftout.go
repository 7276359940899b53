package forward

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/reprise-sqs/reprise"
)

// mostNames bounds how many names of attributes are remembered and logged: senders choose them.
const mostNames = 100

// leftOut logs the attributes that a target does not get, each name once.
type leftOut struct {
	log     *slog.Logger // nil: nothing is logged
	carrier string       // of attributes: an HTTP header, an environment variable

	mu    sync.Mutex
	names map[string]bool
}

// say logs that an attribute of m is left out, and why.
func (l *leftOut) say(m *reprise.Message, name, reason string) {
	if l.log == nil {
		return
	}
	l.mu.Lock()
	if l.names == nil {
		l.names = make(map[string]bool)
	}
	first := !l.names[name] && len(l.names) < mostNames
	if first {
		l.names[strings.Clone(name)] = true // do not keep the whole message
	}
	last := first && len(l.names) == mostNames
	l.mu.Unlock()
	if !first {
		return
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		name = strconv.Quote(name) // slog's text handler does not escape DEL
	}
	l.log.Warn("attribute left out: no "+l.carrier+" can carry it; the message is delivered without it", "message", m.ID, "attribute", name, "reason", reason)
	if last {
		l.log.Warn("attributes of further names are left out without a line of their own", "names", mostNames)
	}
}

// Why an attribute is left out.
const (
	badName   = "its name has characters other than letters and digits of ASCII and !#$%&'*+-.^_`|~"
	badValue  = "its value has control characters"
	zeroByte  = "its value has a zero byte"
	longValue = "its value is longer than 32 KiB"

	manyHeaders = "the headers of the message's attributes would have more than 8 KiB together"

	sharedName = "its variable would have the name of another attribute's: REPRISE_ATTRIBUTES has both"
)

// token reports whether s can be part of the name of an HTTP header (RFC 9110, §5.6.2).
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return true
}

// isControl reports whether r is not permitted in the value of a header (RFC 9110, §5.5).
func isControl(r rune) bool { return r != '\t' && (r < ' ' || r == 0x7f) }
