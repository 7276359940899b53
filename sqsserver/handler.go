package sqsserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
)

// receive keeps the received messages until their reply has been written.
func (c *call) receive() error {
	in := &ReceiveMessageInput{}
	if err := c.decode(in); err != nil {
		return err
	}
	out, err := c.server.receiveMessage(c, in)
	if err != nil {
		return err
	}
	c.encode(&out)
	if len(out.messages) > 0 {
		c.queueURL, c.received = in.QueueUrl, &out
	}
	return nil
}

// call is an action that came over HTTP, and the context of its method.
type call struct {
	context.Context // of the request

	server    *Server
	from      caller
	requestID string
	query     bool // the protocol is Query, not JSON 1.0
	queryJSON bool // its reply is wanted in JSON, not in XML
	action    string
	request   []byte // the body
	form      *form  // Query: what it says
	reply     []byte // is appended to

	queueURL string
	received *received // nil: nothing has been received

	seen    *observation // nil: there is no Config.OnRequest
	replied bool         // the reply has begun
}

func (c *call) decode(in input) error {
	if c.query {
		return decodeQuery(c.form, in)
	}
	return decodeJSON(c.request, in)
}

// encode writes the reply; out is nil if the action answers nothing.
func (c *call) encode(out output) {
	if c.seen != nil {
		c.seen.count(c.action, out)
	}
	switch {
	case c.queryJSON:
		c.reply = appendQueryJSONReply(c.reply, c.action, c.requestID, out)
	case c.query:
		c.reply = appendXMLReply(c.reply, c.action, c.requestID, out)
	case out != nil:
		c.reply = out.appendJSON(c.reply)
	}
}

// ServeHTTP carries out a request of the AWS JSON 1.0 protocol or of the older
// Query protocol. If there are Config.Credentials, it needs a valid signature. If there
// are none, the server's [PageGuard] refuses it with AccessDenied when a web page may have
// made it, unless the page is one of this machine or of Config.AllowedOrigins.
//
// A GET of the root that names no action, as a browser sends it, is answered with a text
// about the server and how to use it.
//
// If the client of a ReceiveMessage has gone, or the reply cannot be written, its messages
// become visible again at once. The header Reprise-Cancelled-Receive announces that; see
// Config.KeepUnwritten.
//
// A panic on the way is logged and answered with InternalFailure.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if wantsLandingPage(r) {
		s.writeLandingPage(w, r)
		return
	}
	refused := s.guard(w.Header(), r)
	s.clock.setDate(w.Header())
	if r.Method == http.MethodOptions && refused == nil {
		return // the headers are the answer
	}
	e := exchanges.Get().(*exchange)
	defer e.free()
	from, err := s.readCaller(r)
	if refused == nil {
		refused = err
	}
	c := call{
		Context: r.Context(), server: s, from: from, requestID: newUUID(rand.Uint64(), rand.Uint64()).String(),
		query: isQuery(r), reply: e.reply,
	}
	c.queryJSON = c.query && acceptsJSON(r)
	c.observe(r)
	defer func() { c.finish(w, recover()) }()
	if err = refused; err == nil {
		err = c.carryOut(w, r, e)
	}
	s.clock.setDate(w.Header()) // again: a long poll may have taken 20 s
	e.reply = c.reply
	switch {
	case errors.Is(err, ErrReplyLost), err != nil && c.Err() != nil:
		// net/http cuts the connection on this panic only. An empty reply would look like an
		// answer.
		panic(http.ErrAbortHandler)
	case err != nil:
		_ = c.writeError(w, asError(err)) // an error means that the client has gone
	case c.received == nil:
		_ = c.writeReply(w)
	default:
		c.writeMessages(w)
		c.received.free()
	}
}

// finish ends a call. After a panic the reply is InternalFailure; if the reply has begun,
// the connection is cut, by http.ErrAbortHandler.
func (c *call) finish(w http.ResponseWriter, problem any) {
	cut := problem == http.ErrAbortHandler //nolint:errorlint // a recovered value, which net/http compares so
	if problem != nil && !cut {
		c.server.config.Logger.Error("sqsserver: panic while handling a request; please report it",
			"action", c.action, "request", c.requestID, "panic", fmt.Sprint(problem), "stack", string(debug.Stack()))
		if cut = c.replied; !cut {
			_ = c.writeError(w, errInternalFailure("The server panicked while handling the request; its log has the details.")) // an error means that the client has gone
		}
	}
	if c.seen != nil && cut {
		c.seen.Status = 0
	}
	c.report()
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// guard checks by the PageGuard the requests to a server without credentials, and adds the
// headers that let a permitted page read the answer. On a server with credentials the
// signature decides: a page that can sign has the key, whatever its origin.
func (s *Server) guard(h http.Header, r *http.Request) error {
	if len(s.config.Credentials) > 0 {
		if r.Header.Get("Origin") != "" {
			allowOrigin(h, r, "*")
		}
		return nil
	}
	if err := s.pages.checkAction(r); err != nil {
		return errPageRefused(err)
	}
	s.pages.AllowOrigin(h, r)
	return nil
}

func (c *call) carryOut(w http.ResponseWriter, r *http.Request, e *exchange) error {
	// Check the credentials before buffering up to 8 MiB.
	signature, err := c.server.readSignature(r)
	if err != nil {
		return err
	}
	if c.request, err = e.read(w, r, &c.server.bodies); err != nil {
		return err
	}
	if signature != nil {
		if err := signature.Verify(c.request); err != nil {
			return errRefused(err)
		}
	}
	find := c.findTarget
	if c.query {
		find = c.findQuery
	}
	do, err := find(r)
	if err != nil {
		return err
	}
	return do(c)
}

// findTarget returns the handler of the action that a request in JSON names.
func (c *call) findTarget(r *http.Request) (func(*call) error, error) {
	target := r.Header.Get("X-Amz-Target")
	if target == "" {
		return nil, errNoTarget()
	}
	name, found := strings.CutPrefix(target, "AmazonSQS.")
	do := actions[name]
	if !found || do == nil {
		return nil, errUnknownAction(name)
	}
	c.action = name
	return do, nil
}

// writeMessages writes the reply of a receive. If the client has gone, its messages become
// visible again.
func (c *call) writeMessages(w http.ResponseWriter) {
	err := c.Err()
	if err == nil {
		err = c.writeReply(w)
	}
	if err == nil {
		// A small reply is still in the connection's buffer.
		err = http.NewResponseController(w).Flush()
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		if !c.server.config.KeepUnwritten {
			c.server.exposeUndelivered(&c.from, c.queueURL, c.received)
		}
		panic(http.ErrAbortHandler)
	}
}
