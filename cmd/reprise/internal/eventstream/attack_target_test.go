// The attacker chooses text that is streamed to browsers: errors, names, outage keys, bodies.

package eventstream_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/eventstream"
)

// dispatched is an event as a browser dispatches it.
type dispatched struct{ name, data string }

// browser reads a stream by the rules of the HTML standard (section 9.2.6, "Interpreting an event stream"). It
// returns what is dispatched, and the last id and retry that the stream has set.
func browser(stream string) (events []dispatched, id, retry string) {
	text := string([]rune(stream)) // "decoded using the UTF-8 decode algorithm", without one byte order mark
	text = strings.TrimPrefix(text, "\ufeff")
	var data, name strings.Builder
	for text != "" {
		// "separated by either a CRLF pair, a single LF, or a single CR"; without one the rest is no line yet.
		at := strings.IndexAny(text, "\r\n")
		if at < 0 {
			break
		}
		line, end := text[:at], 1
		if strings.HasPrefix(text[at:], "\r\n") {
			end = 2
		}
		text = text[at+end:]
		if line == "" { // "dispatch the event"
			if data.Len() > 0 {
				events = append(events, dispatched{name.String(), strings.TrimSuffix(data.String(), "\n")})
			}
			data.Reset()
			name.Reset()
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		if field == "" {
			continue // a comment
		}
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name.Reset()
			name.WriteString(value)
		case "data":
			data.WriteString(value + "\n")
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		case "retry":
			if value != "" && strings.Trim(value, "0123456789") == "" {
				retry = value
			}
		}
	}
	return events, id, retry
}

// FuzzAttackEvents: whatever an event contains, a browser dispatches it as one event, with its data, and those before
// and after it as they are.
func FuzzAttackEvents(f *testing.F) {
	for _, data := range []string{
		"", "text", "two\nlines", "\n", "\n\n", "a\r\rdata: forged\r\r", "a\r\n\r\nb", "a\n\rb", "\r", "\r\r", "\r\n", "ends\r", "ends\n",
		"\ufefftext", "\x00", " leading", ": comment", "id: 7\r\rretry: 1", "event: forged\rdata: x\r\r", "\xff\r\xc3\n", "\u2028\u2029\u0085\v\f",
	} {
		f.Add("", data)
		f.Add("job", data)
	}
	f.Add("forged\rdata: x\r\r", "text")
	f.Add("\ufeffname\n\nid: 1", "text")
	lf := strings.NewReplacer("\r\n", "\n", "\r", "\n")
	spaces := strings.NewReplacer("\r", " ", "\n", " ")
	f.Fuzz(func(t *testing.T, name, data string) {
		event := eventstream.Event(name, data)
		want := dispatched{string([]rune(spaces.Replace(name))), string([]rune(lf.Replace(data)))}
		before, after := dispatched{"", "before"}, dispatched{"named", "after"}
		got, id, retry := browser(eventstream.Retry(2*time.Second) + eventstream.Event("", "before") + eventstream.Ping + event + eventstream.Event("named", "after"))
		if !slices.Equal(got, []dispatched{before, want, after}) || id != "" || retry != "2000" {
			t.Errorf("the event %q, %q is dispatched as %q with the id %q and the retry %q", name, data, got, id, retry)
		}
		if got, _, _ := browser(event); !slices.Equal(got, []dispatched{want}) {
			t.Errorf("as the first of a stream, the event %q, %q is dispatched as %q", name, data, got)
		}
	})
}
