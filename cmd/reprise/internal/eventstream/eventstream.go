// Package eventstream writes server-sent events, the text/event-stream of the HTML standard.
// Everything that the program streams to browsers and commands passes through it, because
// its data is the text of others: whatever it contains, it is the data of one event.
package eventstream

import (
	"fmt"
	"strings"
	"time"
)

// ContentType is the type of a stream.
const ContentType = "text/event-stream"

// Ping is a comment, which says nothing: it keeps proxies and clients from closing a quiet
// stream as dead.
const Ping = ": still here\n\n"

// Retry tells a client to wait for d, in whole milliseconds, before it connects again.
func Retry(d time.Duration) string { return fmt.Sprintf("retry: %d\n\n", d.Milliseconds()) }

// Event is an event with a name, empty for the default ("message"), and data of any length and
// content. A client gets the data as it is, except that all its line ends become LF: a reader
// of the stream ends lines at CR, LF and CR LF, so a CR within a line would begin another
// field, or end the event. Line ends in the name become spaces.
func Event(name, data string) string {
	var b strings.Builder
	b.Grow(len(name) + len(data) + len(data)/8 + 32)
	if name != "" {
		b.WriteString("event: " + strings.NewReplacer("\r", " ", "\n", " ").Replace(name) + "\n")
	}
	for more := true; more; {
		line := data
		at := strings.IndexAny(data, "\r\n")
		if more = at >= 0; more {
			line, data = data[:at], strings.TrimPrefix(data[at:], "\r")
			// Of CR LF both are one end; after a lone CR or LF the next line begins.
			data = strings.TrimPrefix(data, "\n")
		}
		b.WriteString("data: ")
		b.WriteString(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.String()
}
