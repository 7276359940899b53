package sqsserver

import (
	"context"
	"net/http"
	"time"
)

// Request describes a request over HTTP that has ended. It contains nothing from messages and no
// secrets. See Config.OnRequest.
type Request struct {
	ID        string // in the reply too, as x-amzn-RequestId
	Started   time.Time
	Duration  time.Duration // long polls wait
	Remote    string        // address of the client
	Protocol  string        // "json" or "query"
	Action    string        // such as "SendMessage"; "": none that the server knows
	Region    string        // of the queues
	Account   string        // of the caller
	AccessKey string        // as the request gives it; "": it has no credentials
	Queue     string        // name; "": none, or none that exists

	Status int    // of the reply; 0: the connection was cut
	Code   string // of the error, such as "OverLimit"; "": none

	BytesIn  int // of the body
	BytesOut int

	Messages int // sent, received, deleted or hidden
	Failed   int // entries of a batch that were not
}

// observation is what is known of a Request while it is carried out.
type observation struct {
	Request
}

// observe begins the observation of a call, if there is a Config.OnRequest.
func (c *call) observe(r *http.Request) {
	if c.server.config.OnRequest == nil {
		return
	}
	c.seen = &observation{Request{
		ID: c.requestID, Started: time.Now(), Remote: r.RemoteAddr, Protocol: "json",
		Region: c.from.region, Account: c.from.account, AccessKey: c.from.accessKey,
	}}
	if c.query {
		c.seen.Protocol = "query"
	}
}

// note adds the queue's name to the observation of a request.
func (s *Server) note(ctx context.Context, queue string) {
	if s.config.OnRequest == nil {
		return
	}
	if c := callOf(ctx); c != nil {
		c.seen.Queue = queue
	}
}

// count counts the messages of a reply; out is nil if the action answers nothing.
func (seen *observation) count(action string, out output) {
	switch out := out.(type) {
	case *SendMessageOutput:
		seen.Messages = 1
	case *received:
		seen.Messages = len(out.messages)
	case *SendMessageBatchOutput:
		seen.Messages, seen.Failed = len(out.Successful), len(out.Failed)
	case *DeleteMessageBatchOutput:
		seen.Messages, seen.Failed = len(out.Successful), len(out.Failed)
	case *ChangeMessageVisibilityBatchOutput:
		seen.Messages, seen.Failed = len(out.Successful), len(out.Failed)
	case nil:
		if action == actionDeleteMessage || action == actionChangeMessageVisibility {
			seen.Messages = 1
		}
	}
}

// report passes the observation to Config.OnRequest when the call has ended.
func (c *call) report() {
	if c.seen == nil {
		return
	}
	c.seen.Duration = time.Since(c.seen.Started)
	if actions[c.action] != nil {
		c.seen.Action = c.action
	}
	c.seen.BytesIn = len(c.request)
	c.server.config.OnRequest(c.seen.Request)
}
