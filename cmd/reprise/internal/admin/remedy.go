package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Nothing is the body of an action that needs no more than its path.
type Nothing struct{}

// The actions on one message.
const (
	MessageRelease    = "release"
	MessageDelete     = "delete"
	MessageDeadLetter = "dead-letter"
)

// messageAction does something to one message of the process's own queues, in whatever state it is.
func (a *API) messageAction(name string, do func(server *sqsserver.Server, queue, message string) error) func(*http.Request) (Nothing, error) {
	return func(r *http.Request) (done Nothing, err error) {
		server, err := a.server()
		if err != nil {
			return done, err
		}
		var how Nothing
		if err := readBody(r, &how); err != nil {
			return done, err
		}
		queue, id := r.PathValue("queue"), r.PathValue("message")
		info, err := server.Message(queue, id)
		if err != nil {
			return done, inspectError(err)
		}
		if name == MessageRelease {
			err = a.releasable(queue, &info)
		}
		if err == nil {
			if err = do(server, queue, id); err != nil {
				err = problem(http.StatusConflict, "refused", "%s", strings.TrimPrefix(err.Error(), "sqsserver: "))
			}
		}
		a.audit(r, name, queue, how, err, "message", id)
		return done, err
	}
}

// releasable returns why it is of no use to make a message visible.
func (a *API) releasable(queue string, info *sqsserver.MessageInfo) error {
	if info.State == sqsserver.Visible {
		return problem(http.StatusConflict, "refused", "the message is visible already")
	}
	m := messageOf(queue, info)
	asks := a.asker(queue)
	if asks.of == nil || heldBy(*asks.of, info.ID) == nil {
		return nil
	}
	standing := asks.standing(&m, "")
	return problem(http.StatusConflict, "refused",
		"the consumer of this process knows the message (%s) and would hide it again until it is due: wake the consumer, which starts the next attempts of all messages that wait", standing.State)
}

// ActOnMessage does something to a message of the process's own queues: one of the actions above.
func (c *Client) ActOnMessage(ctx context.Context, queue, id, action string) error {
	return c.call(ctx, http.MethodPost, "queues/"+url.PathEscape(queue)+"/messages/"+url.PathEscape(id)+"/"+action, Nothing{}, &Nothing{})
}
