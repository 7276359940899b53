package sqsserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/reprise-sqs/reprise/internal/sigv4"
)

// caller has the account and the region whose queues a request means, and how it addresses
// the server.
type caller struct {
	account     string // of the caller
	accessKey   string // as the request gives it
	region      string
	baseURL     string // up to the host
	host        string // "": it is in baseURL
	traceHeader string // of messages that are sent without one
}

// queueURL is the URL by which the sender of a request knows a queue.
func (from *caller) queueURL(name queueName) string {
	return from.baseURL + from.host + "/" + name.account + "/" + name.name
}

// queueName is the inverse of queueURL, for URLs of any host. A bare name means a
// queue of the caller's account.
func (from *caller) queueName(queueURL string) queueName {
	name := queueName{from.account, from.region, queueURL}
	if i := strings.LastIndexByte(queueURL, '/'); i >= 0 {
		name.name = queueURL[i+1:]
		name.account = queueURL[strings.LastIndexByte(queueURL[:i], '/')+1 : i]
	}
	return name
}

// callKey is the key under which the context of an action has its call.
type callKey struct{}

// Value makes a call the context of its own action, so that the action's method finds the
// caller in it.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns the call that came over HTTP, or nil for a direct one.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// callerOf returns the caller of an action.
func (s *Server) callerOf(ctx context.Context) *caller {
	if c := callOf(ctx); c != nil {
		return &c.from
	}
	return &s.direct
}

// readCaller reads the caller from a request over HTTP. If the credential is malformed it
// returns the error, and a caller without it, for the reply.
func (s *Server) readCaller(r *http.Request) (caller, error) {
	from := s.direct
	accessKey, region, err := sigv4.Scope(r)
	if err != nil {
		err = errRefused(err)
	}
	from.accessKey = accessKey
	if isAccount(accessKey) {
		from.account = accessKey
	}
	if region != "" {
		from.region = region
	}
	if len(r.Host) > maxHost {
		return from, &Error{codeInvalidParameterValue, fmt.Sprintf("The Host header has %d bytes, more than any name and port.", len(r.Host))}
	}
	if s.config.BaseURL == "" && r.Host != "" {
		from.baseURL, from.host = "http://", r.Host
		if r.TLS != nil {
			from.baseURL = "https://"
		}
	}
	from.traceHeader = r.Header.Get("X-Amzn-Trace-Id")
	return from, err
}

// maxHost is the length of the longest name (RFC 1035, §2.3.4) with a port. The Host is
// repeated in the URL of each queue of a reply.
const maxHost = 255 + len(":65535")
