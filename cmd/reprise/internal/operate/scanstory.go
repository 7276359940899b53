package operate

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
)

// Letter is what a message says about why it is a dead letter, as its own server knows it: what
// [Groups] needs of a message, and nothing that has to be made for each of a million.
type Letter struct {
	ID   string
	Sent time.Time
	// Moved is the ARN of the queue from which SQS has moved it; empty: it was sent here.
	Moved string
	// Attribute returns the text of a message attribute; empty: it has none.
	Attribute func(name string) string
}

// death is readDeath of a letter, without keys and without what groups do not need; false: nothing
// says that it is a dead letter.
func (l *Letter) death() (d Death, isDead bool) {
	if text := l.Attribute(reprise.StoryAttribute); text != "" {
		if d, ok := scanStory(text); ok {
			return d.withoutPrefix().movedFrom(l.Moved), true
		}
	}
	if l.Attribute(reprise.StoryAttribute) == "" && l.Attribute(repriselambda.ReasonAttribute) == "" {
		return Death{Reason: reasonReceives, Source: l.Moved}, l.Moved != ""
	}
	m := types.Message{Attributes: map[string]string{"DeadLetterQueueSourceArn": l.Moved}, MessageAttributes: make(map[string]types.MessageAttributeValue)}
	for _, name := range explaining {
		if text := l.Attribute(name); text != "" {
			m.MessageAttributes[name] = types.MessageAttributeValue{StringValue: &text}
		}
	}
	if death := readDeath("", m, nil); death != nil {
		return *death, true
	}
	return Death{}, false
}

// explaining are the attributes that say why a message died.
var explaining = []string{
	reprise.StoryAttribute, repriselambda.ReasonAttribute, repriselambda.AttemptsAttribute, repriselambda.LastAttribute,
	repriselambda.ErrorTypeAttribute, repriselambda.ErrorMessageAttribute, repriselambda.FunctionAttribute,
}

// withoutPrefix leaves out what the text of reprise.Permanent says again.
func (d Death) withoutPrefix() Death {
	if d.Reason == "permanent" {
		d.Error = strings.TrimPrefix(d.Error, "permanent: ")
	}
	return d
}

// movedFrom is d of an unsigned story in a message that SQS has moved: then SQS knows its source, whatever
// its sender wrote.
func (d Death) movedFrom(source string) Death {
	if source != "" {
		d.Source = source
	}
	return d
}

// scanStory reads of a story what groups need. Reading it as JSON of any form took half of the time of a
// million letters; this reads the form that consumers write, and returns false for any other, also for
// what is not JSON: then reprise.ReadStory decides.
func scanStory(text string) (d Death, ok bool) {
	s := storyScanner{rest: text}
	if !s.skip('{') {
		return d, false
	}
	for first := true; ; first = false {
		s.spaces()
		if first && s.skip('}') {
			break
		}
		name, isText := s.text()
		if s.spaces(); !isText || !s.skip(':') {
			return d, false
		}
		s.spaces()
		if !s.member(&d, name) {
			return d, false
		}
		if s.spaces(); s.skip('}') {
			break
		}
		if !s.skip(',') {
			return d, false
		}
	}
	s.spaces()
	return d, s.rest == ""
}

// storyScanner reads a story from its beginning.
type storyScanner struct{ rest string }

// member reads the value of a member into d.
func (s *storyScanner) member(d *Death, name string) (ok bool) {
	switch name {
	case "reason":
		d.Reason, ok = s.text()
	case "error":
		d.Error, ok = s.text()
	case "source":
		d.Source, ok = s.text()
	case "message", "origin", "consumer", "signature":
		_, ok = s.text()
	case "attempts", "receives":
		ok = s.number()
	case "last":
		d.At, ok = s.time()
	case "sent", "first":
		_, ok = s.time()
	}
	return ok // another name may mean one of these in other letters
}

func (s *storyScanner) skip(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *storyScanner) spaces() {
	for s.rest != "" && (s.rest[0] == ' ' || s.rest[0] == '\n' || s.rest[0] == '\t' || s.rest[0] == '\r') {
		s.rest = s.rest[1:]
	}
}

// text reads a string. One without escapes is a part of the story, and costs no memory.
func (s *storyScanner) text() (text string, ok bool) {
	if !s.skip('"') {
		return "", false
	}
	ascii := true
	for i := range len(s.rest) {
		switch c := s.rest[i]; {
		case c == '"':
			text, s.rest = s.rest[:i], s.rest[i+1:]
			return text, ascii || utf8.ValidString(text)
		case c == '\\':
			return s.escaped(i)
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// escaped reads a string whose first escape is at i.
func (s *storyScanner) escaped(i int) (text string, ok bool) {
	end := i
	for end < len(s.rest) && s.rest[end] != '"' {
		if s.rest[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s.rest) || !utf8.ValidString(s.rest[:end]) {
		return "", false
	}
	b := append(make([]byte, 0, end), s.rest[:i]...)
	for ; i < end; i++ {
		c := s.rest[i]
		if c < ' ' {
			return "", false
		}
		if c == '\\' {
			i++
			if c = s.rest[i]; c == 'u' {
				r, isRune := hexadecimal(s.rest[i+1 : end])
				if !isRune {
					return "", false
				}
				b, i = utf8.AppendRune(b, r), i+4
				continue
			}
			at := strings.IndexByte(`"\/bfnrt`, c)
			if at < 0 {
				return "", false
			}
			c = "\"\\/\b\f\n\r\t"[at]
		}
		b = append(b, c)
	}
	s.rest = s.rest[end+1:]
	return string(b), true
}

// hexadecimal reads the four digits at the beginning of a text. Half of a pair is no character by itself.
func hexadecimal(text string) (r rune, ok bool) {
	const digits = 4
	if len(text) < digits {
		return 0, false
	}
	for i := range digits {
		c := text[i]
		switch {
		case isDigit(c):
			r = r<<4 + rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 + rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, utf8.ValidRune(r)
}

// number skips a whole number that surely is an int.
func (s *storyScanner) number() bool {
	const mostDigits = 9
	s.skip('-')
	n := 0
	for n < len(s.rest) && isDigit(s.rest[n]) {
		n++
	}
	if n == 0 || n > mostDigits || n > 1 && s.rest[0] == '0' {
		return false
	}
	s.rest = s.rest[n:]
	return true
}

// time reads a time, which JSON has without escapes.
func (s *storyScanner) time() (at time.Time, ok bool) {
	text, ok := "", s.skip('"')
	if ok {
		text, s.rest, ok = strings.Cut(s.rest, `"`)
	}
	return at, ok && at.UnmarshalText([]byte(text)) == nil
}
