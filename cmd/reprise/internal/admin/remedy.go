package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Nothing is the body of an action that needs no more than its path.
type Nothing struct{}

// The actions on one message.
const (
	MessageRelease    = "release"
	MessageDelete     = "delete"
	MessageDeadLetter = "dead-letter"
	MessageDelay      = "delay"
)

// messageAction is an operation that does something to one message of the process's own queues, in whatever state it
// is.
func messageAction[T any](a *API, name string, do func(server *sqsserver.Server, queue string, info *sqsserver.MessageInfo, how T) error) func(*http.Request) (Nothing, error) {
	return func(r *http.Request) (done Nothing, err error) {
		server, err := a.server()
		if err != nil {
			return done, err
		}
		var how T
		if err := readBody(r, &how); err != nil {
			return done, err
		}
		queue, id := r.PathValue("queue"), r.PathValue("message")
		info, err := server.Message(queue, id)
		if err != nil {
			return done, inspectError(err)
		}
		if err = do(server, queue, &info, how); err != nil {
			if _, explained := errors.AsType[*Error](err); !explained {
				err = problem(http.StatusConflict, "refused", "%s", strings.TrimPrefix(err.Error(), "sqsserver: "))
			}
		}
		a.audit(r, name, queue, how, err, "message", id)
		return done, err
	}
}

func deleteMessage(server *sqsserver.Server, queue string, info *sqsserver.MessageInfo, _ Nothing) error {
	return server.Delete(queue, info.ID)
}

func deadLetterMessage(server *sqsserver.Server, queue string, info *sqsserver.MessageInfo, _ Nothing) error {
	return server.DeadLetter(queue, info.ID)
}

// Delay is the body that hides a visible message.
type Delay struct {
	For string `json:"for"` // such as 15m
}

func delayMessage(server *sqsserver.Server, queue string, info *sqsserver.MessageInfo, how Delay) error {
	d, err := time.ParseDuration(how.For)
	if err != nil || d <= 0 || d > maxDelay {
		return problem(http.StatusBadRequest, "bad-request", "for is %q: write a time of at most 12h, such as 90s or 15m", how.For)
	}
	return server.Hide(queue, info.ID, d)
}

// maxDelay is for how long SQS can hide a message.
const maxDelay = 12 * time.Hour

// releaseMessage makes a message visible now.
func (a *API) releaseMessage(server *sqsserver.Server, queue string, info *sqsserver.MessageInfo, _ Nothing) error {
	woken, err := a.release(queue, info)
	if err != nil || woken {
		return err
	}
	if info.State == sqsserver.Delayed {
		return server.EndDelay(queue, info.ID) // and no lease of who has received it meanwhile
	}
	return server.Release(queue, info.ID)
}

// release has the consumer of the process wake a message that it has hidden until its retry, or retry a copy before
// it is due, since it would hide again what is visible before that. It reports false for a message that the server
// can make visible, and an error for one that stays hidden.
func (a *API) release(queue string, info *sqsserver.MessageInfo) (woken bool, err error) {
	if info.State == sqsserver.Visible {
		return false, problem(http.StatusConflict, "refused", "the message is visible already")
	}
	asks := a.asker(queue)
	if asks.of == nil {
		return false, nil
	}
	held := heldBy(*asks.of, info.ID)
	switch {
	case held == nil:
		m := messageOf(queue, info)
		if m.WaitsAsCopy(a.cfg.Server.Now()) {
			return false, a.retryDelayed(asks.of, queue, &m)
		}
		return false, nil
	case held.Stage != reprise.StageBackoff.String():
		m := messageOf(queue, info)
		return false, problem(http.StatusConflict, "refused", "the consumer of this process has the message (%s): wait until its attempt has ended", asks.standing(&m, "").State)
	case !asks.of.WakeMessage(info.ID):
		return false, problem(http.StatusConflict, "refused", "the consumer of this process has hidden the message until its retry, and %s", notWoken)
	}
	return true, nil
}

// notWoken is why a consumer does not wake a message that waits for its retry.
const notWoken = "cannot wake it: it is due within 15 seconds, it is of a FIFO queue, its circuit breaker is open, the consumer stops, or SQS has not yet acknowledged that it is hidden"

// ActOnMessage does something to a message of the process's own queues: one of the actions above but a delay.
func (c *Client) ActOnMessage(ctx context.Context, queue, id, action string) error {
	return c.onMessage(ctx, queue, id, action, Nothing{})
}

// Delay hides a visible message of the process's own queues for a time such as 15m.
func (c *Client) Delay(ctx context.Context, queue, id, by string) error {
	return c.onMessage(ctx, queue, id, MessageDelay, Delay{by})
}

func (c *Client) onMessage(ctx context.Context, queue, id, action string, how any) error {
	return c.call(ctx, http.MethodPost, "queues/"+url.PathEscape(queue)+"/messages/"+url.PathEscape(id)+"/"+action, how, &Nothing{})
}
