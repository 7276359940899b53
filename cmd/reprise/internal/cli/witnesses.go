package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

const aboutWitnesses = `Why a message waits is known to the process that consumes its queue: to reprise serve or
up at the endpoint, and to the process at --admin, by default what listens at
` + defaultAdminAddr + ` and consumes this very queue. SQS itself tells neither who
holds a message nor until when. What nobody who was asked can know is said.`

// witnesses are the processes that are asked why messages wait.
type witnesses struct {
	server  *admin.Client   // has the queues; nil: they are not those of a reprise server that answers
	clients []*admin.Client // may consume them
	failed  error           // why the server did not answer, if it may be a reprise server
}

// witnessTimeout bounds the wait for a process that was not named.
const witnessTimeout = 2 * time.Second

// witnesses returns the processes to ask about queues at the endpoint of t. One that was named has
// to answer.
func (f *controlFlags) witnesses(ctx context.Context, a *app, t target) (w witnesses, err error) {
	named := cmp.Or(f.address, os.Getenv(adminVariable)) != ""
	if t.found.Endpoint.URL != "" {
		server, err := admin.NewClient(t.found.Endpoint.URL, "")
		if err == nil {
			if w.failed = answers(ctx, server); w.failed == nil {
				w.server, w.clients = server, append(w.clients, server)
			} else if !mayKnow(w.failed) {
				w.failed = nil // another server, or one that does not permit it
			}
		}
	}
	if !named {
		if local, err := admin.NewClient("http://"+defaultAdminAddr, ""); err == nil && answers(ctx, local) == nil {
			w.clients = append(w.clients, local)
		}
		return w, nil
	}
	client, err := f.client(ctx, a)
	if err != nil {
		return w, err
	}
	if err := answers(ctx, client); err != nil {
		return w, fmt.Errorf("--admin: %w", err)
	}
	w.clients = append(w.clients, client)
	return w, nil
}

// mayKnow reports whether a request failed although the server may be a reprise server that permits
// it: it did not answer, or said that it failed.
func mayKnow(err error) bool {
	failed, answered := errors.AsType[*admin.Error](err)
	_, silent := errors.AsType[*admin.NoReplyError](err)
	return silent || answered && failed.Broken()
}

// withoutHint is what happened to a request, without the advice to name another process.
func withoutHint(err error) error {
	if unanswered, silent := errors.AsType[*admin.NoReplyError](err); silent {
		return unanswered.Unwrap()
	}
	return err
}

func answers(ctx context.Context, c *admin.Client) error {
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	_, err := c.Consumers(ctx)
	return err
}

// held asks who holds a message, or has hidden it.
func (w *witnesses) held(ctx context.Context, queueURL, id string, f *operate.Facts) {
	for _, c := range w.clients {
		if held, err := c.Held(ctx, queueURL, id); err == nil {
			f.Held, f.Address = &held, c.Address()
			return
		}
	}
}

// explain completes f with what the processes know, and returns where the message stands.
func (w *witnesses) explain(ctx context.Context, queueURL, id string, f operate.Facts) *operate.Standing {
	w.held(ctx, queueURL, id, &f)
	for _, c := range w.clients {
		if f.Held != nil || f.Consumer != nil {
			break
		}
		if of, err := c.Consumer(ctx, queueURL); err == nil {
			f.Consumer, f.Address = of.Busy(), c.Address()
		}
	}
	s := f.Explain()
	return &s
}

// hidden returns messages of a queue that no look can find: at most most of those that are in
// flight or delayed.
func (w *witnesses) hidden(ctx context.Context, t target, most int) ([]operate.Message, error) {
	if w.server == nil {
		return nil, errors.New("--hidden: SQS shows a message that is in flight or delayed to nobody, and no reprise server of this machine answers at the endpoint: reprise queues counts them, and reprise trace with --admin asks the process that consumes the queue about one of them")
	}
	found, err := w.server.Hidden(ctx, t.url, most)
	if err != nil {
		return nil, err
	}
	messages := make([]operate.Message, len(found))
	for i := range found {
		m := &found[i]
		messages[i] = m.Message
		messages[i].Standing = w.explain(ctx, t.url, m.ID, operate.Facts{Message: &m.Message, State: m.State, Due: m.Due, DelayedLater: m.DelayedLater})
	}
	return messages, nil
}

// traceOfServer returns the events of a message that the server of the endpoint knows, or of which
// a process that was asked does, and reports whether there is such a server.
func (w *witnesses) traceOfServer(ctx context.Context, id string, looks []*look) (events []operate.Event, known bool, err error) {
	if w.failed != nil {
		return nil, true, untold(looks, w.failed)
	}
	if w.server == nil {
		return nil, false, nil
	}
	story, err := w.server.Story(ctx, id)
	if failed, ok := errors.AsType[*admin.Error](err); ok && failed.Code == "no-such-message" {
		found := w.holders(ctx, id, looks)
		return operate.Trace(found, time.Now()), true, nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case err != nil && mayKnow(err):
		return nil, true, untold(looks, err)
	case err != nil:
		return nil, false, nil //nolint:nilerr // the server does not have stories: the messages are received
	}
	for _, p := range story.Places {
		url := strings.TrimSuffix(looks[0].target.url, operate.NameOf(looks[0].target.url)) + p.Queue
		standing := w.explain(ctx, url, p.Message.ID, operate.Facts{Message: &p.Message.Message, State: p.Message.State, Due: p.Message.Due, DelayedLater: p.Message.DelayedLater, Head: p.Head})
		for i := range story.Events {
			e := &story.Events[i]
			if e.ID == p.Message.ID && e.Queue == p.Queue && e.Standing != nil {
				e.Detail = strings.Replace(e.Detail, e.Standing.State+",", standing.State+",", 1)
				e.Standing = standing
			}
		}
	}
	return story.Events, true, nil
}

// untold is the error of a story that the server did not tell. The messages are not received instead: that
// would raise their receive counts.
func untold(looks []*look, err error) error {
	return fmt.Errorf("the server at %s has not told the story: %w: run it again", looks[0].target.found.Endpoint.URL, withoutHint(err))
}

// holders returns what the processes know of a message that no look has found.
func (w *witnesses) holders(ctx context.Context, id string, looks []*look) (found []operate.Found) {
	for _, l := range looks {
		var f operate.Facts
		if w.held(ctx, l.target.url, id, &f); f.Held != nil {
			standing := f.Explain()
			found = append(found, operate.Found{Queue: operate.NameOf(l.target.url), Message: operate.Message{ID: f.Held.ID}, Standing: &standing})
		}
	}
	return found
}
