package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

const aboutShown = `A reprise server shows this machine the messages of its own queue without a receive, unless
it has an access key or keys for signatures are given.`

// insideLook is a look that receives nothing: the server of the queue shows its messages.
type insideLook struct {
	server *admin.Client
	// state is which messages are shown; empty: all.
	state     sqsserver.MessageState
	selection operate.Criteria
}

// fromServer has the server of the queue show the messages, if it is a reprise server that does this for
// this machine; otherwise they will be received. If it does not answer, that is an error: receives would
// raise the receive counts.
func (l *look) fromServer(ctx context.Context, state sqsserver.MessageState, selection *selectionFlags) error {
	at := l.target.found.Endpoint.URL
	if at == "" || len(l.pass.Keys) > 0 {
		return nil
	}
	server, err := admin.NewClient(at, "")
	if err != nil {
		return nil //nolint:nilerr // the endpoint has a path: it is another server's
	}
	inside := &insideLook{server: server, state: state}
	if inside.selection, err = selection.criteria(); err != nil {
		return usage(err)
	}
	_, err = server.Messages(ctx, l.target.url, admin.MessagesPage{Limit: 1, Body: 1})
	switch {
	case err == nil:
		l.inside = inside
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case mayKnow(err):
		return l.unshown(err)
	}
	return nil // it is another server, or does not permit it, or does not have the queue
}

// unshown is the error of a server that did not show its messages.
func (l *look) unshown(err error) error {
	return fmt.Errorf("the server at %s has not shown the messages: %w: run it again", l.target.found.Endpoint.URL, withoutHint(err))
}

const (
	insidePage = 500      // messages that are asked for at once
	wholeBody  = 16 << 20 // bytes: no body is longer
)

// each hands the messages of the queue to visit, some at a time. Without receives it has no use for
// verdicts. It ends although others may be sent faster than they can be printed: see admin.Messages.Next.
func (l *look) each(visit func([]operate.Message, time.Time) ([]operate.Verdict, error)) (o operate.Outcome, err error) {
	if l.inside == nil {
		return l.pass.Run(l.app.ctx, l.app.drain, visit)
	}
	ctx, stop := l.app.interruptible()
	defer stop()
	matched := 0
	for page := (admin.MessagesPage{State: string(l.inside.state), Selection: l.inside.selection, Limit: insidePage, Body: wholeBody}); ; {
		if l.pass.Most > 0 {
			page.Limit = min(insidePage, l.pass.Most-matched)
		}
		got, err := l.inside.server.Messages(ctx, l.target.url, page)
		switch {
		case err != nil && l.app.ctx.Err() != nil:
			return o, context.Cause(l.app.ctx)
		case err != nil && ctx.Err() != nil: // the first Ctrl-C
			o.Partial = "stopped"
			return o, nil
		case err != nil:
			return o, l.unshown(err)
		}
		o.Looked += got.Looked
		matched += len(got.Messages)
		batch := make([]operate.Message, len(got.Messages))
		for i := range got.Messages {
			batch[i] = got.Messages[i].Message
			if got.Messages[i].State == string(sqsserver.Visible) { // nothing keeps it from its consumer
				batch[i].Standing = nil
			}
		}
		_, err = visit(batch, got.At)
		switch {
		case errors.Is(err, operate.ErrEnough):
			return o, nil
		case err != nil:
			return o, err
		case got.Next == "" || l.pass.Most > 0 && matched >= l.pass.Most:
			return o, nil
		}
		page.After = got.Next
	}
}
