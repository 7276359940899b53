package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Message is a message of the process's own server, in whatever state it is.
type Message struct {
	operate.Message
	// State is visible, delayed or in flight; Due is when it becomes visible, if it is not.
	State string    `json:"state"`
	Due   time.Time `json:"due,omitzero"`
	// DelayedLater reports that it is delayed by an operator, not by its sender or its queue.
	DelayedLater bool `json:"delayed_later,omitempty"`
	// BodyBytes is the length of the body, of which a list has only the beginning.
	BodyBytes int `json:"body_bytes"`
}

// early is how long before its time a consumer holds a copy, and does not hide it again.
const early = 2 * time.Second

// WaitsAsCopy reports that the message is a copy that waits for its retry: a consumer that receives it before
// hides it again.
func (m *Message) WaitsAsCopy(now time.Time) bool {
	return m.State != string(sqsserver.Visible) && m.Copy != nil && m.Copy.Due.Sub(now) > early
}

// Messages is a page of a queue.
type Messages struct {
	// At is the server's time, by which ages are told.
	At       time.Time `json:"at"`
	Messages []Message `json:"messages"`
	// Looked is how many messages were looked at for this page.
	Looked int `json:"looked"`
	// Next is the value of after for the next page; empty: there is none. The pages have all messages that were in the
	// queue at the first, and are there still. They end with these, however many are sent meanwhile.
	Next string `json:"next,omitempty"`
}

const (
	defaultLimit, maxLimit = 100, 1000      // messages of a page
	defaultBody, maxBodies = 1000, 16 << 20 // bytes of a body
	// maxPage is how many bytes the messages of a page have before it ends, bodies, attributes and all. JSON
	// makes six bytes of some characters; with those, too, a page is shorter than maxReply.
	maxPage = 8 << 20
	// scanned is how many messages one request looks at for those of a state.
	scanned = 20_000
	// pageSize is how many messages a look at a queue has in memory at a time: they can have a megabyte each.
	pageSize = 64
	// lookTimeout bounds a look at all messages.
	lookTimeout = 50 * time.Second
)

// server returns the server of the process.
func (a *API) server() (*sqsserver.Server, error) {
	if a.cfg.Server == nil {
		return nil, problem(http.StatusNotImplemented, "no-server", "this process has no queues of its own, and SQS shows a message only to its receiver: "+
			"use reprise peek, search, dead or trace, which receive messages and give them back")
	}
	return a.cfg.Server, nil
}

func (a *API) messages(r *http.Request) (page Messages, err error) {
	server, err := a.server()
	if err != nil {
		return page, err
	}
	query := r.URL.Query()
	limit, err := number(query, "limit", defaultLimit, maxLimit)
	if err != nil {
		return page, err
	}
	shown, err := number(query, "body", defaultBody, maxBodies)
	if err != nil {
		return page, err
	}
	state := query.Get("state")
	if state != "" && state != string(sqsserver.Visible) && state != string(sqsserver.Delayed) && state != string(sqsserver.InFlight) {
		return page, problem(http.StatusBadRequest, "bad-request", "state is %q: pass visible, delayed or in flight, or leave it out for all", state)
	}
	after, err := placeOf(query.Get("after"))
	if err != nil {
		return page, err
	}
	selection, err := selectionOf(query)
	if err != nil {
		return page, err
	}
	queue, look := r.PathValue("queue"), min(limit, pageSize)
	if state != "" || !selection.Empty() {
		look = pageSize
	}
	asks := a.asker(queue)
	page.At, page.Messages = server.Now().UTC(), []Message{}
	if after.bound == 0 {
		if after.bound, err = server.Bound(queue); err != nil {
			return page, inspectError(err)
		}
	}
	bytes := 0
	for page.Looked < scanned {
		infos, err := server.Messages(queue, sqsserver.Page{After: after.number, Limit: look})
		if err != nil {
			return page, inspectError(err)
		}
		for i := range infos {
			if infos[i].Number >= after.bound {
				return page, nil
			}
			page.Looked++
			after.number = infos[i].Number
			if state != "" && string(infos[i].State) != state {
				continue
			}
			m := messageOf(queue, &infos[i])
			if !selection.Empty() && !selection.Matches(&m.Message, server.Now()) {
				continue
			}
			if query.Has("standing") {
				standing := asks.standing(&m, "")
				m.Standing = &standing
			}
			m.Body = beginning(m.Body, shown)
			page.Messages = append(page.Messages, m)
			if bytes += m.Size(); len(page.Messages) == limit || bytes >= maxPage {
				page.Next = after.String()
				return page, nil
			}
		}
		if len(infos) < look {
			return page, nil
		}
		if r.Context().Err() != nil {
			return page, r.Context().Err()
		}
	}
	page.Next = after.String()
	return page, nil
}

// place is where the next page of a queue begins: after the message with a number. Pages end at the bound that the queue
// had at the first of them, since messages can come faster than pages are read.
type place struct{ number, bound uint64 }

func (p place) String() string { return fmt.Sprintf("%d-%d", p.number, p.bound) }

// placeOf reads the parameter after; empty: the first page is asked for.
func placeOf(text string) (p place, err error) {
	if text == "" {
		return p, nil
	}
	number, bound, bounded := strings.Cut(text, "-")
	if p.number, err = strconv.ParseUint(number, 10, 64); err == nil && bounded {
		p.bound, err = strconv.ParseUint(bound, 10, 64)
	}
	if err != nil {
		return p, problem(http.StatusBadRequest, "bad-request", "after is %q: pass next of the page before", text)
	}
	return p, nil
}

func (a *API) message(r *http.Request) (m Message, err error) {
	server, err := a.server()
	if err != nil {
		return m, err
	}
	queue := r.PathValue("queue")
	info, err := server.Message(queue, r.PathValue("message"))
	if err != nil {
		return m, inspectError(err)
	}
	m = messageOf(queue, &info)
	if r.URL.Query().Has("standing") {
		standing := a.asker(queue).standing(&m, "")
		m.Standing = &standing
	}
	return m, nil
}

// selectionOf reads the parameter selection; empty: all messages are meant.
func selectionOf(query url.Values) (s operate.Selection, err error) {
	text := query.Get("selection")
	if text == "" {
		return s, nil
	}
	var criteria operate.Criteria
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&criteria); err == nil {
		s, err = criteria.Selection()
	}
	if err != nil {
		return s, problem(http.StatusBadRequest, "bad-request", "selection cannot be used: %v", err)
	}
	return s, nil
}

func tooMany(queue string) *Error {
	return problem(http.StatusServiceUnavailable, "failed", "not all messages of queue %q could be looked at within %v", queue, lookTimeout)
}

// messageOf is a message as the commands of operators know it.
func messageOf(queue string, info *sqsserver.MessageInfo) Message {
	m := redrive.Wire(info)
	return Message{operate.Read(queue, m, nil), string(info.State), info.Due.UTC(), info.DelayedLater, len(info.Body)}
}

// inspectError explains why messages cannot be seen.
func inspectError(err error) error {
	if _, noQueue := errors.AsType[*sqsserver.Error](err); noQueue {
		return problem(http.StatusNotFound, "no-such-queue", "%v: GET %squeues lists those that do", err, Path)
	}
	return problem(http.StatusNotFound, "no-such-message", "%s", strings.TrimPrefix(err.Error(), "sqsserver: "))
}

// number reads a parameter, from 1 to most.
func number(query url.Values, name string, otherwise, most int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, problem(http.StatusBadRequest, "bad-request", "%s is %q: pass 1 to %d, or leave it out for %d", name, text, most, otherwise)
	}
	return n, nil
}

// beginning is at most n bytes of text, of whole characters. It does not keep the rest in memory.
func beginning(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}
