package dashboard

import (
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// The page of a message. Where it stands is kept up to date; its story is loaded apart from it, since all queues are
// looked through for it.
var messagePage = page{
	path: Path + "queues/{queue}/messages/{message}", template: "message", live: 2 * time.Second,
	data: func(v *view) (string, any, error) {
		m, err := v.message()
		return "Message " + v.PathValue("message"), m, err
	},
	parts: map[string]func(*view) (any, error){
		"story": (*view).story,
		"whole": func(v *view) (any, error) { return v.message() },
		"image": func(v *view) (any, error) { return v.message() },
		"edit":  func(v *view) (any, error) { return v.message() },
	},
	actions: map[string]func(*view) (string, error){
		"retry": func(v *view) (string, error) { // the API has the consumer wake it
			return "The consumer starts the next attempt as soon as a handler is free.", v.onMessage(admin.MessageRelease)
		},
		admin.MessageRelease: func(v *view) (string, error) {
			return "The message is visible now.", v.onMessage(admin.MessageRelease)
		},
		admin.MessageDelay: func(v *view) (string, error) {
			by := v.PostFormValue("for")
			defer v.samples.forget()
			return "The message is hidden for " + by + ".", v.api.Delay(v.Context(), v.PathValue("queue"), v.PathValue("message"), by)
		},
		"resend": resend,
		admin.MessageDelete: func(v *view) (string, error) {
			return "The message is deleted.", v.onMessage(admin.MessageDelete)
		},
		admin.MessageDeadLetter: func(v *view) (string, error) {
			return "The message is in the dead-letter queue now.", v.onMessage(admin.MessageDeadLetter)
		},
	},
}

// story is the story of a message, and empty if no queue has it any more.
func (v *view) story() (any, error) {
	story, err := v.api.Story(v.Context(), v.PathValue("message"))
	if failed, ok := errors.AsType[*admin.Error](err); ok && failed.Code == "no-such-message" {
		err = nil
	}
	return story, err
}

// message is what the page of a message, its stream and its parts show.
func (v *view) message() (*messageView, error) {
	queue, id := v.PathValue("queue"), v.PathValue("message")
	p := &messageView{Queue: queue, Now: v.now}
	var sources []string
	if q, err := v.queue(queue); err == nil {
		p.DeadQueue, p.IsDead, p.Consumed, p.FIFO = q.DeadQueue, len(q.DeadLettersOf) > 0, q.Consumer != nil || q.Lane, q.FIFO
		sources = q.DeadLettersOf
	}
	m, err := v.api.Message(v.Context(), queue, id)
	if failed, ok := errors.AsType[*admin.Error](err); ok && failed.Code == "no-such-message" && v.isStream() {
		p.gone(v, id, append(slices.Clone(sources), p.DeadQueue))
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.Message, p.Body.Bytes = m, len(m.Body)
	if !v.isStream() {
		p.Body, p.Resend = newBody(m.Body), newResendForm(queue, &m.Message, sources)
	}
	return p, nil
}

// gone looks for a message that has left its queue in others, where it has the same id.
func (m *messageView) gone(v *view, id string, others []string) {
	m.Gone, m.Message.ID = true, id
	for _, other := range others {
		if _, err := v.api.Message(v.Context(), other, id); other != "" && err == nil {
			m.Elsewhere = other
		}
	}
}

func (v *view) onMessage(action string) error {
	defer v.samples.forget()
	return v.api.ActOnMessage(v.Context(), v.PathValue("queue"), v.PathValue("message"), action)
}

// messageView is what the page shows.
type messageView struct {
	Queue   string
	Message admin.Message
	Body    body // of what is kept up to date only its length
	// Gone reports that it was here, and Elsewhere is the queue where it is now; empty: that is not known.
	Gone      bool
	Elsewhere string
	// DeadQueue is the dead-letter queue of its queue, and IsDead reports that its queue is one itself.
	DeadQueue string
	IsDead    bool
	Consumed  bool // by this process
	FIFO      bool
	Now       time.Time
	Resend    resendForm
}

// URL is that of the page.
func (m *messageView) URL() string { return messageURL(m.Queue, m.Message.ID) }

// SelectURL is the form about dead letters, for this one.
func (m *messageView) SelectURL() string {
	return deadURL(m.Queue) + "?" + url.Values{"ids": {m.Message.ID}}.Encode() + "#select"
}

// Known reports that the consumer of this process knows the message, and hides it again until it is due.
func (m *messageView) Known() bool {
	s := m.Message.Standing
	return s != nil && (s.State == operate.StandingRetry || leased(s.State)) && m.Consumed
}

// leased reports that a consumer holds messages that are hidden in a state: they do not come when their lease ends,
// since the consumer renews it.
func leased(state string) bool {
	return state == operate.StandingWorking || state == operate.StandingSettling || state == operate.StandingHeld
}

// Retry reports that the consumer of this process has hidden it until its next attempt, and NoRetry why it cannot be
// made to start that now; empty: it can.
func (m *messageView) Retry() bool {
	return m.Known() && m.Message.Standing.State == operate.StandingRetry
}

// wakeMargin is how long before its retry a consumer does not wake a message that it has hidden: see
// reprise.Consumer.Wake.
const wakeMargin = 15 * time.Second

func (m *messageView) NoRetry() string {
	switch {
	case m.FIFO:
		return "on a FIFO queue a message that is made visible early could change places with the others of its group."
	case m.Message.State == string(sqsserver.Delayed) && m.Message.WaitsAsCopy(m.Now):
		return "" // the server ends its delay, and not the receipt handle that the consumer had: see wakeMargin
	case m.Message.Standing.Until.Sub(m.Now) <= wakeMargin:
		return "it is due within 15 seconds."
	}
	return ""
}

// Hidden reports that it is not visible.
func (m *messageView) Hidden() bool { return m.Message.State != "visible" }

// Expected is when it comes next; zero: that is not known, or it is here. The end of a lease is neither: what holds
// the message renews it.
func (m *messageView) Expected() time.Time {
	s := m.Message.Standing
	if s == nil {
		return m.Message.Due
	}
	switch s.State {
	case operate.StandingRetry, operate.StandingDelayed, operate.StandingInFlight:
		return s.Until
	}
	return time.Time{}
}
