package operate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// Edit is what is changed of a message.
type Edit struct {
	// Body replaces the body; nil: it stays.
	Body *string
	// Set gives attributes new values, by name. One that does not exist becomes a String.
	Set map[string]string
	// Remove are names of attributes that are removed.
	Remove []string
}

// MaxAttributes is how many attributes SQS permits.
const MaxAttributes = 10

// Apply returns the message as it is afterwards.
func (e *Edit) Apply(m Message) (Message, error) {
	m.Attributes = maps.Clone(m.Attributes)
	if e.Body != nil {
		m.Body = *e.Body
	}
	if m.Body == "" {
		return m, fmt.Errorf("the new body is empty: SQS has no empty messages")
	}
	for _, name := range e.Remove {
		if _, has := m.Attributes[name]; !has {
			return m, fmt.Errorf("the message has no attribute %q to remove: it has %q", name, m.AttributeNames())
		}
		delete(m.Attributes, name)
	}
	for name, value := range e.Set {
		if slices.Contains(notShown, name) {
			return m, fmt.Errorf("attribute %q is written by consumers: choose another name", name)
		}
		a, has := m.Attributes[name]
		if !has {
			a.Type = "String"
		}
		if strings.HasPrefix(a.Type, "Binary") {
			return m, fmt.Errorf("attribute %q is binary: it cannot be set to a text; remove it, or set another", name)
		}
		a.Value = value
		if m.Attributes == nil {
			m.Attributes = make(map[string]Attribute)
		}
		m.Attributes[name] = a
	}
	if n := len(m.Attributes); n > MaxAttributes {
		return m, fmt.Errorf("the message would have %d attributes, and SQS permits %d: remove some", n, MaxAttributes)
	}
	return m, nil
}

// Become makes out, which is about to be sent for m, what m was edited to. Its deduplication id is bound to the content,
// or a FIFO queue would drop it for a redrive of the same letter, and the letter would be deleted.
func (m *Message) Become(out *reprise.Outgoing) {
	out.Body, out.Attributes = m.Body, make(map[string]types.MessageAttributeValue, len(m.Attributes))
	digest := sha256.New()
	fmt.Fprintf(digest, "%q", m.Body)
	for _, name := range m.AttributeNames() {
		attribute := m.Attributes[name]
		out.Attributes[name] = attribute.SQS()
		fmt.Fprintf(digest, "%q%q%q%q", name, attribute.Type, attribute.Value, attribute.Binary)
	}
	if out.DeduplicationID != "" {
		out.DeduplicationID = "edit-" + m.ID + "-" + hex.EncodeToString(digest.Sum(nil)[:16])
	}
}

// Difference returns what differs between two forms of a message, line by line, behind - and +; empty:
// nothing does. Bodies that are both JSON are compared as they read indented, and shown whole if only
// their spacing differs.
func Difference(before, after *Message) string {
	var b strings.Builder
	if before.Body != after.Body {
		old, changed := before.Body, after.Body
		if o, c := indented(old), indented(changed); o != "" && c != "" && o != c {
			old, changed = o, c
		}
		b.WriteString("body\n" + lines(old, changed))
	}
	names := slices.Sorted(maps.Keys(before.Attributes))
	for _, name := range slices.Sorted(maps.Keys(after.Attributes)) {
		if _, both := before.Attributes[name]; !both {
			names = append(names, name)
		}
	}
	text := func(m *Message, name string) string {
		a, has := m.Attributes[name]
		if !has {
			return ""
		}
		return fmt.Sprintf("%s %s", a.Type, a.Value+string(a.Binary))
	}
	for _, name := range names {
		if old, changed := text(before, name), text(after, name); old != changed {
			fmt.Fprintf(&b, "attribute %s\n%s", name, lines(old, changed))
		}
	}
	return b.String()
}

// indented is JSON over several lines; empty if text is none.
func indented(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(strings.TrimSpace(text)), "", "  ") != nil {
		return ""
	}
	return b.String()
}

// lines shows the lines that differ, between those that are the same at both ends.
func lines(before, after string) string {
	old, changed := split(before), split(after)
	for len(old) > 0 && len(changed) > 0 && old[0] == changed[0] {
		old, changed = old[1:], changed[1:]
	}
	for len(old) > 0 && len(changed) > 0 && old[len(old)-1] == changed[len(changed)-1] {
		old, changed = old[:len(old)-1], changed[:len(changed)-1]
	}
	var b strings.Builder
	for _, line := range old {
		b.WriteString("- " + line + "\n")
	}
	for _, line := range changed {
		b.WriteString("+ " + line + "\n")
	}
	return b.String()
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Story is the attribute by which consumers and redrives know how a letter died; empty if it is none.
// It is not signed.
func (d *Death) Story() (string, error) {
	if d == nil {
		return "", nil
	}
	text, err := json.Marshal(reprise.Story{
		Reason: d.Reason, Attempts: d.Attempts, Sent: d.Sent, First: d.First, Last: d.At, Error: d.Error,
		Source: d.Source, Message: d.Message, Origin: d.Origin,
	})
	return string(text), err
}
