package operate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

// Copy has the facts about earlier messages that a message which was sent back as a copy carries.
// Any sender can write them.
type Copy struct {
	Origin   string    `json:"origin"`             // the id of the first message
	Attempts int       `json:"attempts,omitempty"` // runs of the handler before this copy
	Sent     time.Time `json:"sent,omitzero"`      // when the first message was sent and received
	First    time.Time `json:"first,omitzero"`
	Due      time.Time `json:"due,omitzero"`
	Error    string    `json:"error,omitempty"` // of the last attempt
}

// readCopy returns nil if m is not a copy.
func readCopy(m types.Message) *Copy {
	var h struct {
		Origin              string
		Attempt             int
		Sent, First, SentAt int64
		NotBefore           int64
		Error               string
	}
	text := aws.ToString(m.MessageAttributes[reprise.HistoryAttribute].StringValue)
	if text == "" || json.Unmarshal([]byte(text), &h) != nil {
		return nil
	}
	at := func(ms int64) time.Time {
		if ms <= 0 || ms > 1<<43 { // the year 2248
			return time.Time{}
		}
		return time.UnixMilli(ms).UTC()
	}
	return &Copy{Origin: h.Origin, Attempts: h.Attempt, Sent: at(h.Sent), First: at(h.First), Due: at(h.NotBefore), Error: h.Error}
}

// Found is a message of a trace, and the name of the queue that it is in.
type Found struct {
	Queue   string
	Message Message
	// Standing is why it is there. Default: it is visible, and no more is known.
	Standing *Standing
}

// Event is something that happened to a message.
type Event struct {
	At     time.Time `json:"at,omitzero"`
	Queue  string    `json:"queue,omitempty"`
	Event  string    `json:"event"`
	ID     string    `json:"id,omitempty"` // of the message, as it was called then
	Detail string    `json:"detail,omitempty"`
	// Standing is why the message is where it is, of the event that says where.
	Standing *Standing `json:"standing,omitempty"`
}

// Trace returns the events of a message, as the found messages describe them, in the order of
// their times; now is SQS's. Several messages may describe the same event.
func Trace(found []Found, now time.Time) []Event {
	var events []Event
	for _, f := range found {
		events = append(events, f.events(now)...)
	}
	slices.SortStableFunc(events, func(a, b Event) int { return a.At.Compare(b.At) })
	return slices.Compact(events)
}

func (f *Found) events(now time.Time) (events []Event) {
	m := &f.Message
	add := func(at time.Time, queue, event, id string, details ...string) {
		details = slices.DeleteFunc(details, func(text string) bool { return text == "" })
		events = append(events, Event{at, queue, event, id, strings.Join(details, ": "), nil})
	}
	defer func() {
		if len(events) > 0 {
			events[len(events)-1].Standing = f.Standing
		}
	}()
	if m.Sent.IsZero() { // a consumer alone knows it
		add(now, f.Queue, "is here", m.ID, f.Standing.place())
		return events
	}
	if c := m.Copy; c != nil && m.Death == nil {
		add(c.Sent, f.Queue, "sent", c.Origin)
		if !c.First.IsZero() {
			add(c.First, f.Queue, "received first", c.Origin)
		}
		due := ""
		if !c.Due.IsZero() {
			due = "due " + c.Due.Format(time.RFC3339)
		}
		failed := ""
		if c.Attempts > 0 {
			failed = "after " + plural.Of(c.Attempts, "attempt")
		}
		add(m.Sent, f.Queue, "sent back as a copy", m.ID, failed, due, c.Error)
	} else if m.Death == nil {
		add(m.Sent, f.Queue, "sent", m.ID)
	}
	if m.Death == nil && !m.FirstReceived.IsZero() { // a dead letter is received by those who look at it
		add(m.FirstReceived, f.Queue, "received first", m.ID)
	}
	if d := m.Death; d != nil {
		from, first := NameOf(lastPart(d.Source)), cmp.Or(d.Origin, d.Message)
		if !d.Sent.IsZero() {
			add(d.Sent, from, "sent", first)
		}
		if !d.First.IsZero() {
			add(d.First, from, "received first", first)
		}
		after := ""
		if d.Attempts > 0 {
			after = "after " + plural.Of(d.Attempts, "attempt")
		}
		switch {
		case d.At.IsZero():
			add(m.Sent, from, "sent", m.ID, "SQS moved it to "+f.Queue+" later, at a time that it does not report")
		default:
			// Consumers are more exact than SQS, whose milliseconds would come before their own event.
			add(d.At.Truncate(time.Millisecond), from, "given up", d.Message, strings.TrimSpace(d.Reason+" "+after), d.Error)
			add(m.Sent, f.Queue, "dead-lettered", m.ID)
		}
	}
	if now.Before(m.Sent) {
		now = m.Sent // the server's clock is ahead of ours
	}
	add(now, f.Queue, "is here", m.ID, f.Standing.place()+", received "+plural.Of(m.Receives, "time"))
	return events
}

// TraceTable is a line for each event, for so many columns.
func TraceTable(events []Event, width int) Table {
	t := Table{Header: []string{"at", "queue", "event", "id", "detail"}, Right: make([]bool, 5)}
	for _, e := range events {
		at, id := "not known", ""
		if !e.At.IsZero() {
			at = e.At.UTC().Format(time.RFC3339)
		}
		if width >= wideTable {
			id = e.ID
		}
		t.Rows = append(t.Rows, []string{at, e.Queue, e.Event, id, e.Detail})
	}
	return t.WithoutEmpty()
}
