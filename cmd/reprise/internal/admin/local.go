package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// These operations are for trying something out. They send to queues and purge them; on the process's own server
// they set the faults and move the time on.

// OwnServer is the state of the process's own server.
type OwnServer struct {
	Now time.Time `json:"now"`
	// CanAdvance reports whether its time can be moved on: only that of a server without a journal can.
	CanAdvance bool `json:"can_advance"`
	// Faults are those that are set, by the name of the queue; "*" is every queue.
	Faults map[string][]sqsserver.FaultCount `json:"faults"`
}

func (a *API) ownServer(*http.Request) (OwnServer, error) {
	server, err := a.server()
	if err != nil {
		return OwnServer{}, err
	}
	return OwnServer{Now: server.Now().UTC(), CanAdvance: a.cfg.CanAdvance, Faults: server.AllFaults()}, nil
}

// FaultList is the body that sets the faults of a queue: these, and no others.
type FaultList struct {
	Faults []sqsserver.Fault `json:"faults"`
}

func (l FaultList) check() error {
	if l.Faults == nil {
		return errors.New("faults is missing: send those that the queue is to have, [] for none")
	}
	for _, f := range l.Faults {
		if err := f.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func (a *API) setFaults(r *http.Request) (now OwnServer, err error) {
	var list FaultList
	server, err := a.server()
	if err == nil {
		err = readBody(r, &list)
	}
	if err != nil {
		return now, err
	}
	queue := r.PathValue("queue")
	if len(list.Faults) > 0 && len(server.MissingQueues(queue)) > 0 {
		return now, problem(http.StatusNotFound, "no-such-queue", `the server has no queue %q: GET %squeues lists those that it has, and "*" is every one`, queue, Path)
	}
	err = server.SetFaults(queue, list.Faults...)
	a.audit(r, "faults", queue, list, err)
	if err != nil {
		return now, problem(http.StatusBadRequest, "bad-request", "%s", strings.TrimPrefix(err.Error(), "sqsserver: "))
	}
	return a.ownServer(r)
}

// Advance is the body that moves the server's time on.
type Advance struct {
	By string `json:"by"` // such as 12h
}

func (a *API) advance(r *http.Request) (now OwnServer, err error) {
	var how Advance
	server, err := a.server()
	if err == nil {
		err = readBody(r, &how)
	}
	if err != nil {
		return now, err
	}
	by, err := time.ParseDuration(how.By)
	if err != nil {
		return now, problem(http.StatusBadRequest, "bad-request", "by is %q: write a time such as 90s or 12h", how.By)
	}
	err = server.Advance(by)
	a.audit(r, "advance", "", how, err)
	if err != nil {
		return now, problem(http.StatusBadRequest, "bad-request", "%s", strings.TrimPrefix(err.Error(), "sqsserver: "))
	}
	return a.ownServer(r)
}

// NewMessage is a message to send.
type NewMessage struct {
	Body string `json:"body"`
	// Attributes are its message attributes.
	Attributes map[string]operate.Attribute `json:"attributes,omitempty"`
	// Group and Deduplication are of messages to FIFO queues, which need the group.
	Group         string `json:"group,omitempty"`
	Deduplication string `json:"deduplication,omitempty"`
	// DelaySeconds hides it at first. Default: as long as the queue says.
	DelaySeconds *int32 `json:"delay_seconds,omitempty"`
}

func (m NewMessage) check() error {
	if m.Body == "" {
		return errors.New("body is missing: SQS has no empty messages")
	}
	return nil
}

// Sent is a message that was sent.
type Sent struct {
	ID string `json:"id"`
}

func (a *API) sendMessage(r *http.Request) (sent Sent, err error) {
	var m NewMessage
	if err := readBody(r, &m); err != nil {
		return sent, err
	}
	q, err := a.cfg.JobQueue(r.Context(), r.PathValue("queue"))
	if err != nil {
		return sent, err
	}
	in := &sqs.SendMessageInput{QueueUrl: &q.URL, MessageBody: &m.Body}
	if m.DelaySeconds != nil {
		in.DelaySeconds = *m.DelaySeconds
	}
	if m.Group != "" {
		in.MessageGroupId = &m.Group
	}
	if m.Deduplication != "" {
		in.MessageDeduplicationId = &m.Deduplication
	}
	for name, value := range m.Attributes {
		if in.MessageAttributes == nil {
			in.MessageAttributes = make(map[string]types.MessageAttributeValue)
		}
		in.MessageAttributes[name] = value.SQS()
	}
	ctx, cancel := context.WithTimeout(r.Context(), queuesTimeout)
	defer cancel()
	out, err := q.Client.SendMessage(ctx, in)
	// The log does not get the body, which may be secret.
	a.audit(r, "send", q.URL, map[string]any{"bytes": len(m.Body), "group": m.Group}, err)
	if failed, ok := errors.AsType[smithy.APIError](err); ok && failed.ErrorFault() == smithy.FaultClient {
		return sent, problem(http.StatusBadRequest, "bad-request", "the message cannot be sent as it is: %s", failed.ErrorMessage())
	}
	if err != nil {
		return sent, problem(http.StatusBadGateway, "sqs-failed", "the message was not sent: %v", err)
	}
	return Sent{ID: *out.MessageId}, nil
}

// Purge is the body of a purge.
type Purge struct{}

// Purged is how many messages a queue had that was purged.
type Purged struct {
	Visible  int `json:"visible"`
	InFlight int `json:"in_flight"`
	Delayed  int `json:"delayed"`
}

func (a *API) purge(r *http.Request) (had Purged, err error) {
	if err := readBody(r, new(Purge)); err != nil {
		return had, err
	}
	q, err := a.cfg.JobQueue(r.Context(), r.PathValue("queue"))
	if err != nil {
		return had, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), queuesTimeout)
	defer cancel()
	attributes, err := operate.Ref{URL: q.URL, Client: q.Client}.Attributes(ctx)
	if err == nil {
		before := operate.Queues([]operate.Described{{URL: q.URL, Attributes: attributes}}, false)[0]
		had = Purged{before.Visible, before.InFlight, before.Delayed}
		_, err = q.Client.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &q.URL})
	}
	a.audit(r, "purge", q.URL, had, err)
	if _, busy := errors.AsType[*types.PurgeQueueInProgress](err); busy {
		return had, problem(http.StatusConflict, "busy", "the queue was purged less than 60 seconds ago: messages sent since then are still there, so purge it again in a minute")
	}
	if err != nil {
		return had, problem(http.StatusBadGateway, "sqs-failed", "the queue was not purged: %v", err)
	}
	return had, nil
}

// OwnServer returns the state of the process's own server.
func (c *Client) OwnServer(ctx context.Context) (now OwnServer, err error) {
	err = c.call(ctx, http.MethodGet, "server", nil, &now)
	return now, err
}

// SetFaults replaces the faults of a queue of the process's own server; "*" is every queue.
func (c *Client) SetFaults(ctx context.Context, queue string, faults []sqsserver.Fault) (now OwnServer, err error) {
	err = c.call(ctx, http.MethodPut, "server/faults/"+url.PathEscape(queue), FaultList{append([]sqsserver.Fault{}, faults...)}, &now)
	return now, err
}

// Advance moves the time of the process's own server on.
func (c *Client) Advance(ctx context.Context, by string) (now OwnServer, err error) {
	err = c.call(ctx, http.MethodPost, "server/clock", Advance{by}, &now)
	return now, err
}

// Send sends a message to a queue.
func (c *Client) Send(ctx context.Context, queue string, m NewMessage) (sent Sent, err error) {
	err = c.call(ctx, http.MethodPost, "queues/"+url.PathEscape(queue)+"/messages", m, &sent)
	return sent, err
}

// Purge deletes all messages of a queue, and returns how many there were.
func (c *Client) Purge(ctx context.Context, queue string) (had Purged, err error) {
	err = c.call(ctx, http.MethodPost, "queues/"+url.PathEscape(queue)+"/purge", Purge{}, &had)
	return had, err
}

// String says how many there were.
func (p Purged) String() string {
	return fmt.Sprintf("%d visible, %d in flight, %d delayed", p.Visible, p.InFlight, p.Delayed)
}
