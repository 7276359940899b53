package sqsserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/reprise-sqs/reprise/internal/sigv4"
)

// The names of the actions, as requests and faults give them.
const (
	actionAddPermission                = "AddPermission"
	actionCancelMessageMoveTask        = "CancelMessageMoveTask"
	actionChangeMessageVisibility      = "ChangeMessageVisibility"
	actionChangeMessageVisibilityBatch = "ChangeMessageVisibilityBatch"
	actionCreateQueue                  = "CreateQueue"
	actionDeleteMessage                = "DeleteMessage"
	actionDeleteMessageBatch           = "DeleteMessageBatch"
	actionDeleteQueue                  = "DeleteQueue"
	actionGetQueueAttributes           = "GetQueueAttributes"
	actionGetQueueUrl                  = "GetQueueUrl"
	actionListDeadLetterSourceQueues   = "ListDeadLetterSourceQueues"
	actionListMessageMoveTasks         = "ListMessageMoveTasks"
	actionListQueueTags                = "ListQueueTags"
	actionListQueues                   = "ListQueues"
	actionPurgeQueue                   = "PurgeQueue"
	actionReceiveMessage               = "ReceiveMessage"
	actionRemovePermission             = "RemovePermission"
	actionSendMessage                  = "SendMessage"
	actionSendMessageBatch             = "SendMessageBatch"
	actionSetQueueAttributes           = "SetQueueAttributes"
	actionStartMessageMoveTask         = "StartMessageMoveTask"
	actionTagQueue                     = "TagQueue"
	actionUntagQueue                   = "UntagQueue"
)

// actions says what carries each action out.
var actions = map[string]func(*call) error{
	actionAddPermission:                silent((*Server).addPermission),
	actionCancelMessageMoveTask:        answering[*CancelMessageMoveTaskOutput]((*Server).cancelMessageMoveTask),
	actionChangeMessageVisibility:      silent((*Server).changeMessageVisibility),
	actionChangeMessageVisibilityBatch: answering[*ChangeMessageVisibilityBatchOutput]((*Server).changeMessageVisibilityBatch),
	actionCreateQueue:                  answering[*CreateQueueOutput]((*Server).createQueue),
	actionDeleteMessage:                silent((*Server).deleteMessage),
	actionDeleteMessageBatch:           answering[*DeleteMessageBatchOutput]((*Server).deleteMessageBatch),
	actionDeleteQueue:                  silent((*Server).deleteQueue),
	actionGetQueueAttributes:           answering[*GetQueueAttributesOutput]((*Server).getQueueAttributes),
	actionGetQueueUrl:                  answering[*GetQueueUrlOutput]((*Server).getQueueURL),
	actionListDeadLetterSourceQueues:   answering[*ListDeadLetterSourceQueuesOutput]((*Server).listDeadLetterSourceQueues),
	actionListMessageMoveTasks:         answering[*ListMessageMoveTasksOutput]((*Server).listMessageMoveTasks),
	actionListQueueTags:                answering[*ListQueueTagsOutput]((*Server).listQueueTags),
	actionListQueues:                   answering[*ListQueuesOutput]((*Server).listQueues),
	actionPurgeQueue:                   silent((*Server).purgeQueue),
	actionReceiveMessage:               (*call).receive,
	actionRemovePermission:             silent((*Server).removePermission),
	actionSendMessage:                  answering[*SendMessageOutput]((*Server).sendMessage),
	actionSendMessageBatch:             answering[*SendMessageBatchOutput]((*Server).sendMessageBatch),
	actionSetQueueAttributes:           silent((*Server).setQueueAttributes),
	actionStartMessageMoveTask:         answering[*StartMessageMoveTaskOutput]((*Server).startMessageMoveTask),
	actionTagQueue:                     silent((*Server).tagQueue),
	actionUntagQueue:                   silent((*Server).untagQueue),
}

// input and output are those of an action, in either protocol.
type input interface {
	jsonInput
	queryInput
}

type output interface {
	jsonOutput
	xmlOutput
	queryJSONOutput
}

// answering makes the handler of an action that answers something.
func answering[Out output, In any, InPointer interface {
	*In
	input
}](do func(*Server, context.Context, origin, InPointer) (Out, error)) func(*call) error {
	return func(c *call) error {
		in := InPointer(new(In))
		if err := c.decode(in); err != nil {
			return err
		}
		out, err := do(c.server, c.ctx, c.from, in)
		if err != nil {
			return err
		}
		c.encode(out)
		return nil
	}
}

// silent makes the handler of an action that answers nothing.
func silent[In any, InPointer interface {
	*In
	input
}](do func(*Server, context.Context, origin, InPointer) error) func(*call) error {
	return func(c *call) error {
		in := InPointer(new(In))
		if err := c.decode(in); err != nil {
			return err
		}
		if err := do(c.server, c.ctx, c.from, in); err != nil {
			return err
		}
		c.encode(nil)
		return nil
	}
}

// receive remembers what it received until the reply is known to have been
// written.
func (c *call) receive() error {
	in := &ReceiveMessageInput{}
	if err := c.decode(in); err != nil {
		return err
	}
	out, err := c.server.receiveMessage(c.ctx, c.from, in)
	if err != nil {
		return err
	}
	c.encode(&out)
	if len(out.messages) > 0 {
		c.queueURL, c.received = in.QueueUrl, &out
	}
	return nil
}

// call is an action on its way through the handler.
type call struct {
	server    *Server
	ctx       context.Context
	from      origin
	requestID string
	query     bool // the protocol is Query, not JSON 1.0
	queryJSON bool // its reply is wanted in JSON, not in XML
	action    string
	request   []byte // the body
	form      *form  // Query: what it says
	reply     []byte // is appended to

	queueURL string
	received *received // nil: nothing has been received

	seen    *observation // nil: nobody wants to know
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

// maxRequestSize is beyond what any request that can succeed needs: a batch of
// 1 MiB, each of whose bytes is written as a six-byte escape.
const maxRequestSize = 8 << 20

// maxPooledBuffer keeps a buffer that once held a large request or reply from
// holding its memory.
const maxPooledBuffer = 1 << 20

// exchange has the buffers of a request over HTTP.
type exchange struct {
	request bytes.Buffer
	reply   []byte
	body    countedBody
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func (e *exchange) free() {
	e.body.release()
	if e.request.Cap() > maxPooledBuffer || cap(e.reply) > maxPooledBuffer {
		return
	}
	e.request.Reset()
	e.reply = e.reply[:0]
	exchanges.Put(e)
}

// firstRead is how much room a body has before any of it has come: most need no more. A
// client's word on how much will come is worth nothing, and the signature has not been
// checked yet.
const firstRead = 4 << 10

// maxBodies is how many bytes of bodies the server holds at once, beyond the firstRead of
// each: those that are being read, whose signature is not checked, and those of requests
// under way.
const maxBodies = 256 << 20

// countedBody is the body of a request, whose bytes are counted while they are held.
type countedBody struct {
	io.Reader
	all  *atomic.Int64 // of all requests; nil: none is counted
	size int64         // that came
	held int64         // of it, what all has
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.size += int64(n)
	if more := b.size - firstRead - b.held; more > 0 {
		b.held += more
		if b.all.Add(more) > maxBodies {
			return 0, errTooManyBodies()
		}
	}
	return n, err
}

func (b *countedBody) release() {
	if b.held > 0 {
		b.all.Add(-b.held)
	}
	*b = countedBody{}
}

// read reads the body of a request, which is valid until the exchange is freed. The
// buffer grows by what has come.
func (e *exchange) read(w http.ResponseWriter, r *http.Request, all *atomic.Int64) ([]byte, error) {
	e.body = countedBody{Reader: http.MaxBytesReader(w, r.Body, maxRequestSize), all: all}
	if n := r.ContentLength; n > 0 {
		e.request.Grow(int(min(n, firstRead)) + bytes.MinRead)
	}
	if _, err := e.request.ReadFrom(&e.body); err != nil {
		if full, ok := errors.AsType[*Error](err); ok {
			return nil, full
		}
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, errSerialization(maxRequestSize, "it is longer than any valid request")
		}
		return nil, errSerialization(e.request.Len(), "it ends early: "+err.Error())
	}
	return e.request.Bytes(), nil
}

// ServeHTTP carries out a request of the AWS JSON 1.0 protocol or of the older
// Query protocol. If there are Config.Credentials, it needs a valid signature. If there
// are none, the server's [PageGuard] refuses it with AccessDenied when a web page may have
// made it, unless the page is one of this machine or of Config.AllowedOrigins.
//
// A GET of the root that names no action, as a browser sends it, is answered with a
// text that says what the server is and how to reach it.
//
// Messages in the reply of a ReceiveMessage whose client has gone, or to whom
// the reply cannot be written, become visible again at once, and the header
// Reprise-Cancelled-Receive says so in advance; see Config.KeepUnwritten.
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
	from, err := s.origin(r)
	if refused == nil {
		refused = err
	}
	c := call{
		server: s, ctx: r.Context(), from: from, requestID: newUUID(rand.Uint64(), rand.Uint64()).String(),
		query: isQuery(r), reply: e.reply,
	}
	c.queryJSON = c.query && acceptsJSON(r)
	c.observe(r)
	defer func() { c.end(w, recover()) }()
	if err = refused; err == nil {
		err = c.carryOut(w, r, e)
	}
	e.reply = c.reply
	switch {
	case errors.Is(err, ErrReplyLost), err != nil && c.ctx.Err() != nil:
		// Only this cuts the connection, so that no client takes an empty reply
		// for an answer.
		panic(http.ErrAbortHandler)
	case err != nil:
		_ = c.writeError(w, asError(err)) // who is not there needs no error
	case c.received == nil:
		_ = c.writeReply(w)
	default:
		c.writeMessages(w)
		c.received.free()
	}
}

// guard returns why a request is refused that needs no signature, and lets the page read
// the answer that may. With credentials the signature says who may do what: a page that
// can sign has the key, whatever its origin.
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

// findTarget finds what carries out the action that a request in JSON names.
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

// writeMessages writes the reply of a receive, or takes its messages back.
func (c *call) writeMessages(w http.ResponseWriter) {
	err := c.ctx.Err()
	if err == nil {
		err = c.writeReply(w)
	}
	if err == nil {
		// A small reply is still in the connection's buffer.
		err = http.NewResponseController(w).Flush()
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		if !c.server.config.KeepUnwritten {
			c.server.takeBack(c.from, c.queueURL, c.received)
		}
		panic(http.ErrAbortHandler)
	}
}

// origin reads from a request which queues it means and how it calls them. What cannot be
// in a credential is not taken from it, and is the error.
func (s *Server) origin(r *http.Request) (origin, error) {
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
