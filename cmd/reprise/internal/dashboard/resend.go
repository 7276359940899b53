package dashboard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// The form that sends a message again, edited: a copy is sent, and then the original is deleted if the form says so. A
// failure between both leaves two messages, never none.

// resendForm is what the form begins with.
type resendForm struct {
	// Refused is why the message cannot be edited here; empty: it can.
	Refused    string
	Body       string
	Attributes []resendAttribute
	// To are the queues that the copy may be sent to, the first by default.
	To []string
	// Replaces reports whether the original is deleted by default, once the copy is sent: a letter that stayed would go
	// back with the next redrive, and be handled beside the copy. A message that is alive stays by default, since an
	// attempt at it may be under way.
	Replaces bool
}

type resendAttribute struct {
	Name, Type string
	Value      string
	Kept       string // why it can only be kept or removed; empty: it can be edited
}

// maxEdited is the longest text that a form has: with what HTML escapes, a page stays within some hundred KiB.
const maxEdited = 64 << 10

// newResendForm returns the form for a message of a queue; sources are the queues whose dead letters that takes.
func newResendForm(queue string, m *operate.Message, sources []string) resendForm {
	f := resendForm{Body: m.Body, Refused: unfit(m.Body), Replaces: len(sources) > 0}
	if f.Refused != "" {
		f.Body = ""
		return f
	}
	for _, name := range m.AttributeNames() {
		a := resendAttribute{Name: name, Type: m.Attributes[name].Type, Kept: unfit(m.Attributes[name].Value)}
		if strings.HasPrefix(a.Type, "Binary") {
			a.Kept = "it is binary"
		}
		if a.Kept == "" {
			a.Value = m.Attributes[name].Value
		}
		f.Attributes = append(f.Attributes, a)
	}
	f.To = append(slices.Clone(sources), queue) // of a dead letter, where it failed comes first
	if m.Death != nil {
		for i, source := range sources {
			if operate.NameOf(m.Death.Source) == source || strings.HasSuffix(m.Death.Source, ":"+source) {
				f.To[0], f.To[i] = f.To[i], f.To[0]
			}
		}
	}
	return f
}

// unfit returns why a form would change a text, or could not show it as it is; empty: neither.
func unfit(text string) string {
	switch {
	case len(text) > maxEdited:
		return fmt.Sprintf("it has more than %d KiB", maxEdited>>10)
	case terminal.Escape(text) != text:
		return "it has control characters, or characters that change the direction of text"
	case strings.Contains(text, "\r") && strings.Count(text, "\n") != strings.Count(text, "\r\n"):
		return "its lines end in different ways"
	}
	return ""
}

// fromForm returns a text that a form has sent, with the ends of lines of the text that it began with: browsers send
// CR LF for all.
func fromForm(sent, began string) string {
	sent = strings.ReplaceAll(sent, "\r\n", "\n")
	if strings.Contains(began, "\r\n") {
		sent = strings.ReplaceAll(sent, "\n", "\r\n")
	}
	return sent
}

// resend sends the edited copy.
func resend(v *view) (string, error) {
	queue, id := v.PathValue("queue"), v.PathValue("message")
	m, err := v.api.Message(v.Context(), queue, id)
	if err != nil {
		return "", err
	}
	edited, err := v.edited(&m.Message)
	if err != nil {
		return "", err
	}
	to, deletes := v.PostForm.Get("to"), v.PostForm.Get("delete")
	switch {
	case to == "":
		return "", errors.New("Nothing was sent: choose the queue that the copy is sent to.")
	case deletes != "" && deletes != "yes":
		return "", fmt.Errorf("Nothing was sent: the form has %q for whether the original is deleted: load the page again.", deletes)
	}
	again := admin.NewMessage{Body: edited.Body, Attributes: edited.Attributes, Group: edited.Group}
	if strings.HasSuffix(to, ".fifo") {
		again.Deduplication = fmt.Sprintf("resent-%d", v.now.UnixNano()) // with the original's it would be dropped as a duplicate
	}
	defer v.samples.forget()
	sent, err := v.api.Send(v.Context(), to, again)
	if err != nil {
		return "", err
	}
	done := fmt.Sprintf("Sent to %s as %s.", to, sent.ID)
	v.led = link{messageURL(to, sent.ID), sent.ID}
	if deletes == "" {
		return done + " The original is still here.", nil
	}
	if err := v.api.ActOnMessage(v.Context(), queue, id, admin.MessageDelete); err != nil {
		return "", fmt.Errorf("%s The original was not deleted: %w", done, err)
	}
	return done + " The original is deleted.", nil
}

// edited is the message as the form wants it.
func (v *view) edited(m *operate.Message) (operate.Message, error) {
	if err := v.ParseForm(); err != nil {
		return *m, fmt.Errorf("the form cannot be read: %w", err)
	}
	if why := unfit(m.Body); why != "" {
		return *m, fmt.Errorf("this body cannot be edited here, because %s", why)
	}
	body := fromForm(v.PostForm.Get("body"), m.Body)
	edit := operate.Edit{Body: &body, Set: make(map[string]string), Remove: v.PostForm["remove"]}
	names, values := v.PostForm["name"], v.PostForm["value"]
	if len(names) != len(values) {
		return *m, errors.New("the form has not a value for each attribute: load the page again")
	}
	for i, name := range names {
		if value := fromForm(values[i], m.Attributes[name].Value); value != m.Attributes[name].Value && !slices.Contains(edit.Remove, name) {
			edit.Set[name] = value
		}
	}
	if name := strings.TrimSpace(v.PostForm.Get("new-name")); name != "" {
		if _, has := m.Attributes[name]; has {
			return *m, fmt.Errorf("the message has an attribute %q already: change its value", name)
		}
		edit.Set[name] = fromForm(v.PostForm.Get("new-value"), "")
	}
	return edit.Apply(*m)
}
