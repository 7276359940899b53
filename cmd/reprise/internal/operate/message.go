package operate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/repriselambda"
)

// Message is a message as it is shown, exported, and read back. Its JSON form is one line of a file.
type Message struct {
	ID   string `json:"id,omitempty"`
	Body string `json:"body"`
	// Attributes are those of its sender, without those of consumers, which Death and Copy
	// describe.
	Attributes map[string]Attribute `json:"attributes,omitempty"`
	Group      string               `json:"group,omitempty"`
	// Deduplication is the id by which a FIFO queue knows a message that is sent twice.
	Deduplication string    `json:"deduplication,omitempty"`
	TraceHeader   string    `json:"trace_header,omitempty"`
	Sent          time.Time `json:"sent,omitzero"`
	FirstReceived time.Time `json:"first_received,omitzero"`
	// Receives is how often the message was received, this look included.
	Receives int    `json:"receives,omitempty"`
	Death    *Death `json:"death,omitempty"`
	Copy     *Copy  `json:"copy,omitempty"`
	// Standing is why it waits, if that was asked for.
	Standing *Standing `json:"standing,omitempty"`

	handle *string // of the receive that brought it, to delete it by; nil: it was not received
}

// Attribute is a message attribute. Binary ones have Binary in place of Value.
type Attribute struct {
	Type   string `json:"type"`
	Value  string `json:"value,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// SQS is the attribute as SQS takes it.
func (a Attribute) SQS() types.MessageAttributeValue {
	value := types.MessageAttributeValue{DataType: &a.Type, BinaryValue: a.Binary}
	if a.Binary == nil {
		value.StringValue = &a.Value
	}
	return value
}

// Death is why a message is in a dead-letter queue.
type Death struct {
	// Reason is that of the consumer's story; "receives" if SQS moved the message itself.
	Reason   string    `json:"reason"`
	Error    string    `json:"error,omitempty"`
	Attempts int       `json:"attempts,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Sent and First are when it was sent, and received first, on the queue that it came from.
	Sent  time.Time `json:"sent,omitzero"`
	First time.Time `json:"first,omitzero"`
	// Source is the queue that it came from: its ARN, or URL.
	Source string `json:"source,omitempty"`
	// Origin and Message are its ids, as it was sent first and as it was given up.
	Origin  string `json:"origin,omitempty"`
	Message string `json:"message,omitempty"`
	// Trusted reports that the story is signed, or that SQS itself moved the message.
	Trusted bool `json:"trusted"`
}

// reasonReceives is the reason if SQS has moved the message.
const reasonReceives = "receives"

// notShown are the attributes that Death and Copy tell of.
var notShown = []string{
	reprise.HistoryAttribute, reprise.StoryAttribute, repriselambda.ReasonAttribute, repriselambda.AttemptsAttribute, repriselambda.FirstAttribute,
	repriselambda.LastAttribute, repriselambda.ErrorTypeAttribute, repriselambda.ErrorMessageAttribute,
}

// Read returns a message that was received from the queue at url with all of its attributes.
func Read(url string, m types.Message, keys []reprise.SigningKey) Message {
	out := Message{
		ID: aws.ToString(m.MessageId), Body: aws.ToString(m.Body), handle: m.ReceiptHandle,
		Group: m.Attributes["MessageGroupId"], Deduplication: m.Attributes["MessageDeduplicationId"], TraceHeader: m.Attributes["AWSTraceHeader"],
		Sent: milliseconds(m.Attributes["SentTimestamp"]), FirstReceived: milliseconds(m.Attributes["ApproximateFirstReceiveTimestamp"]),
		Receives: number(m.Attributes["ApproximateReceiveCount"]),
	}
	for name, a := range m.MessageAttributes {
		if slices.Contains(notShown, name) {
			continue
		}
		if out.Attributes == nil {
			out.Attributes = make(map[string]Attribute)
		}
		out.Attributes[name] = Attribute{aws.ToString(a.DataType), aws.ToString(a.StringValue), a.BinaryValue}
	}
	out.Death, out.Copy = readDeath(url, m, keys), readCopy(m)
	return out
}

// readDeath returns nil if nothing says that m is a dead letter.
func readDeath(url string, m types.Message, keys []reprise.SigningKey) *Death {
	text := func(name string) string { return aws.ToString(m.MessageAttributes[name].StringValue) }
	moved := m.Attributes["DeadLetterQueueSourceArn"]
	if story, trusted, err := reprise.ReadStory(url, &m, keys); err == nil {
		d := Death{
			Reason: story.Reason, Error: story.Error, Attempts: story.Attempts, At: story.Last, Sent: story.Sent, First: story.First, Source: story.Source,
			Origin: story.Origin, Message: story.Message, Trusted: trusted,
		}
		if d = d.withoutPrefix(); !trusted {
			d = d.movedFrom(moved)
		}
		return &d
	}
	if reason := text(repriselambda.ReasonAttribute); reason != "" {
		d := Death{Reason: reason, Error: text(repriselambda.ErrorMessageAttribute), Attempts: number(text(repriselambda.AttemptsAttribute)), Source: text(repriselambda.FunctionAttribute)}
		if kind := text(repriselambda.ErrorTypeAttribute); kind != "" {
			d.Error = kind + ": " + d.Error
		}
		d.At, _ = time.Parse(time.RFC3339, text(repriselambda.LastAttribute)) // zero: not known
		return &d
	}
	if moved != "" {
		return &Death{Reason: reasonReceives, Source: moved, Trusted: true}
	}
	return nil
}

// Size is about how many bytes m takes, in memory and as JSON: everything in it that its sender chose, whose
// texts can each have a megabyte, and a thousand for the rest.
func (m *Message) Size() int {
	n := 1000 + len(m.Body) + len(m.Group) + len(m.Deduplication) + len(m.TraceHeader)
	for name, a := range m.Attributes {
		n += len(name) + len(a.Type) + len(a.Value) + len(a.Binary)*4/3
	}
	if d := m.Death; d != nil {
		n += len(d.Reason) + len(d.Error) + len(d.Source) + len(d.Origin) + len(d.Message)
	}
	return n
}

// AttributeNames are the names of m's attributes, sorted.
func (m *Message) AttributeNames() []string { return slices.Sorted(maps.Keys(m.Attributes)) }

func milliseconds(text string) time.Time {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// MessagesTable is a line for each message. maxReceives is the queue's, which is
// shown beside it: SQS moves a message at the receive after those. 0: none.
func MessagesTable(messages []Message, maxReceives int, now time.Time) Table {
	t := Table{Header: []string{"id", "sent", "receives", "group", "why", "state", "body"}, Right: make([]bool, 7)}
	t.Right[1], t.Right[2] = true, true
	for i := range messages {
		m := &messages[i]
		receives := strconv.Itoa(m.Receives)
		if maxReceives > 0 {
			receives += "/" + strconv.Itoa(maxReceives)
		}
		why := ""
		if m.Death != nil {
			why = m.Death.Reason
		}
		state := ""
		if m.Standing != nil && m.Death == nil {
			state = m.Standing.State
		}
		t.Rows = append(t.Rows, []string{m.ID, Ago(now.Sub(m.Sent)), receives, m.Group, why, state, m.Body})
	}
	return t.WithoutEmpty()
}

// maxReasons is how many reasons WaitsText has, at most.
const maxReasons = 8

// WaitsText has a line for each reason for which messages wait: how many, in which state, until when,
// and why.
func WaitsText(messages []Message, now time.Time) string {
	type reason struct{ state, why, pattern string }
	type wait struct {
		messages    int
		first, last time.Time
		problem     string // the pattern, if errors differ in their ids and numbers
	}
	var order []reason
	waits := make(map[reason]*wait)
	for i := range messages {
		s := messages[i].Standing
		if s == nil || s.State == StandingDead {
			continue
		}
		r := reason{s.State, s.Why, Pattern(s.Error)}
		w := waits[r]
		if w == nil {
			w = &wait{first: s.Until, last: s.Until, problem: s.Error}
			waits[r], order = w, append(order, r)
		}
		w.messages++
		if s.Error != w.problem {
			w.problem = r.pattern
		}
		if s.Until.Before(w.first) {
			w.first = s.Until
		}
		w.last = latest(w.last, s.Until)
	}
	var b strings.Builder
	for i, r := range order {
		if i == maxReasons {
			fmt.Fprintf(&b, "and %s: -o json has the reason of each message\n", plural.Of(len(order)-i, "more reason"))
			break
		}
		w := waits[r]
		text := fmt.Sprintf("%d %s%s: %s", w.messages, r.state, untilText(w.first, w.last, now), r.why)
		if w.problem != "" {
			text += "; last error: " + w.problem
		}
		b.WriteString(terminal.Line(text, maxCell) + "\n")
	}
	return b.String()
}

// untilText is the end of waits of which the first ends at one time and the last at another.
func untilText(first, last, now time.Time) string {
	switch {
	case last.IsZero():
		return ""
	case first.IsZero():
		return ", the last until " + Clock(last, now)
	case Clock(first, now) == Clock(last, now):
		return " until " + Clock(last, now)
	}
	return ", the first until " + Clock(first, now) + ", the last until " + Clock(last, now)
}
