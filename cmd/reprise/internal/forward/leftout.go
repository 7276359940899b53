package forward

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/reprise-sqs/reprise"
)

// mostNames bounds how many names of attributes are remembered and logged: whoever may
// send to the queue makes them up.
const mostNames = 100

// leftOut logs which attributes a target is not told of, each name once.
type leftOut struct {
	log     *slog.Logger // nil: nothing is logged
	carrier string       // of attributes: an HTTP header, an environment variable

	mu    sync.Mutex
	names map[string]bool
}

// say logs that the attribute of m with the name is left out, for the reason given.
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
		l.names[strings.Clone(name)] = true // not all of the message
	}
	last := first && len(l.names) == mostNames
	l.mu.Unlock()
	if !first {
		return
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		name = strconv.Quote(name) // the text handler lets DEL pass
	}
	l.log.Warn("attribute left out: no "+l.carrier+" can carry it; the message is delivered without it", "message", m.ID, "attribute", name, "reason", reason)
	if last {
		l.log.Warn("attributes of more names are left out without a line", "names", mostNames)
	}
}

// Why an attribute is left out.
const (
	badName   = "its name has characters other than letters and digits of ASCII and !#$%&'*+-.^_`|~"
	badValue  = "its value has control characters"
	zeroByte  = "its value has a zero byte"
	longValue = "its value is longer than 32 KiB"

	manyHeaders = "the headers of the message's attributes would have more than 8 KiB together"

	sharedName = "its variable would be that of another attribute, too: REPRISE_ATTRIBUTES has both"
)

// token says that s can stand in the name of an HTTP header (RFC 9110, §5.6.2).
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

// isControl says that no header's value can have r (RFC 9110, §5.5).
func isControl(r rune) bool { return r != '\t' && (r < ' ' || r == 0x7f) }
