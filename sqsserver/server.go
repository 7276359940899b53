// Package sqsserver is an SQS that runs in the process: standard and FIFO
// queues with the behaviour, the errors and the wire format of Amazon SQS.
//
// A Server is an http.Handler to which the AWS SDKs and tools talk, and a value
// with one method per action for programs that want no HTTP in between. Its
// queues are in memory; with a [Journal] they also survive a crash of the
// machine, and bodies need not be in memory. See [Open].
//
// A server without a journal starts no goroutine, one with a journal a single
// one with its first change. A timer runs only while a long poll waits for a
// message that is hidden, or a change to be written. So an idle server costs
// nothing, and works inside testing/synctest bubbles as outside.
package sqsserver

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// Config are the settings of a Server. The zero value is a good one.
type Config struct {
	// Region and Account name the queues. A request over HTTP whose credentials
	// name another region sees the queues of that one, and one whose access key
	// is 12 digits those of the account with that number. Default: us-east-1 and
	// 000000000000.
	Region  string
	Account string

	// BaseURL is what queue URLs begin with, such as "http://localhost:9324".
	// Default: the host that the HTTP request was sent to; for direct calls
	// http://sqs.<region>.localhost.
	BaseURL string

	// NoCooldown lifts the two rules that make a client wait 60 seconds: after
	// deleting a queue before creating one of its name, and between purges.
	NoCooldown bool

	// InFlightLimit is how many messages of one queue may be in flight; negative:
	// any number. Default: 120,000, as on AWS.
	InFlightLimit int

	// Seed makes message ids and the probabilities of faults repeatable.
	// Default: a random one.
	Seed uint64

	// BodyCache is how many bytes of message bodies and attributes stay in memory
	// on a server with a journal, which has them all; negative: those only that the
	// journal does not have yet. It means nothing to New. Default: 128 MiB.
	BodyCache int

	// Credentials make requests over HTTP need a valid AWS Signature Version 4 of one
	// of them, in the Authorization header or in the URL, by a clock that is at most
	// 15 minutes off. Session tokens are not looked at. Each of the keys may use every
	// queue. Default: none, every request is taken that no web page of another origin may
	// have made, whatever its signature; see [PageGuard].
	Credentials []Credentials

	// AllowedOrigins are the origins of web pages on other machines that may use the
	// server over HTTP though it has no Credentials, in the form scheme://host[:port], and
	// names besides localhost by which it may be called on a loopback address: see
	// [PageGuard]. That of BaseURL is one of them. What is no origin is logged by New and
	// permits nobody. Default: only pages of this machine.
	AllowedOrigins []string

	// KeepUnwritten leaves messages in flight that were received for a client who
	// has gone before the reply was written, as AWS does. Default: they become
	// visible again at once.
	KeepUnwritten bool

	// TimeScale is how many times as fast as the machine's the server's time goes,
	// for tests of what takes long; see Server.Advance. It cannot be had with a
	// journal. Default: 1.
	TimeScale float64

	// OnRequest is called when a request over HTTP has ended, by the goroutine that
	// serves it: it should be quick. Default: nobody is told.
	OnRequest func(Request)

	// Logger is told what no client learns. Default: slog.Default().
	Logger *slog.Logger
}

// Server is an SQS. Its methods may be called from many goroutines at once.
type Server struct {
	config Config
	direct origin // of calls that come without HTTP
	faults faultSet
	clock  clock
	pages  *PageGuard
	bodies atomic.Int64 // bytes that requests hold; see maxBodies

	// mu guards what follows. Requests hold it for at most messagesPerHold
	// messages at a time, and the engine bounds what it expires on the way; it
	// is never held while waiting, nor for parsing, digests or encoding.
	mu       sync.Mutex
	closed   bool
	engine   *engine.Engine
	queues   map[queueName]*queue
	byARN    map[string]*queue
	deleted  map[queueName]time.Time
	random   *rand.Rand // ids of messages and queues
	longPoll longPolls
	awaited  []*queue // that WaitEmpty waits for
	keeper   *keeper  // set once; nil: nothing is kept
	broken   error    // why the queues cannot be trusted any more
}

const messagesPerHold = 10

// New returns a server without queues, which keeps everything in memory; see [Open]
// for one that keeps it in a journal. It starts nothing.
func New(config Config) *Server {
	if config.Region == "" {
		config.Region = "us-east-1"
	}
	if config.Account == "" {
		config.Account = "000000000000"
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	for config.Seed == 0 {
		config.Seed = rand.Uint64()
	}
	config.BaseURL = strings.TrimRight(config.BaseURL, "/")
	s := &Server{
		config:  config,
		engine:  engine.New(),
		queues:  make(map[queueName]*queue),
		byARN:   make(map[string]*queue),
		deleted: make(map[queueName]time.Time),
		random:  rand.New(rand.NewPCG(config.Seed, 1)),
	}
	if config.TimeScale > 0 && config.TimeScale != 1 {
		s.clock.set(time.Now(), config.TimeScale)
	}
	s.pages = config.pageGuard()
	s.faults.byQueue = make(map[string][]*setFault)
	s.faults.seed = config.Seed
	s.direct = origin{account: config.Account, region: config.Region, baseURL: config.BaseURL}
	if s.direct.baseURL == "" {
		s.direct.baseURL = "http://sqs." + config.Region + ".localhost"
	}
	return s
}

// pageGuard makes the guard of a server.
func (c Config) pageGuard() *PageGuard {
	cfg := PageGuardConfig{OnRefused: func(r *http.Request, err error, unreported int) {
		c.Logger.Warn("refused a request that may be a web page's or a stranger's", "error", err, "remote", r.RemoteAddr, "more_refused", unreported)
	}}
	for _, origin := range c.AllowedOrigins {
		if err := CheckOrigin(origin); err != nil {
			c.Logger.Error("sqsserver: Config.AllowedOrigins permits less than it says", "error", err)
			continue
		}
		cfg.AllowedOrigins = append(cfg.AllowedOrigins, origin)
	}
	if u, err := url.Parse(c.BaseURL); err == nil && CheckOrigin(u.Scheme+"://"+u.Host) == nil {
		cfg.AllowedOrigins = append(cfg.AllowedOrigins, u.Scheme+"://"+u.Host)
	}
	guard, _ := NewPageGuard(cfg) // the origins have been checked
	return guard
}

// Pages returns the rule by which the server tells programs from web pages, for what else
// is served at its address without asking for a signature.
func (s *Server) Pages() *PageGuard { return s.pages }

// Close ends the long polls that wait, which return no message, and makes the
// server refuse every later request with ServiceUnavailable. A server with a
// journal writes what is left to it and closes it; the error is that of closing
// it, or nil.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for _, q := range s.byARN {
		q.endMove(moveCancelled, "")
	}
	s.mu.Unlock()
	s.EndPolls()
	if s.keeper == nil {
		return nil
	}
	return s.keeper.close()
}

// The actions, as SQS has them: without HTTP, encoding and signatures. The error
// of each is an *Error, or the context's, or ErrReplyLost. The server keeps what
// an input refers to; the caller must not change it later.

// CreateQueue creates a queue, or finds the one that has the name and the
// attributes given.
func (s *Server) CreateQueue(ctx context.Context, in *CreateQueueInput) (*CreateQueueOutput, error) {
	return s.createQueue(ctx, s.direct, in)
}

// GetQueueUrl finds a queue by its name.
func (s *Server) GetQueueUrl(ctx context.Context, in *GetQueueUrlInput) (*GetQueueUrlOutput, error) {
	return s.getQueueURL(ctx, s.direct, in)
}

// ListQueues lists queues in the order of their names.
func (s *Server) ListQueues(ctx context.Context, in *ListQueuesInput) (*ListQueuesOutput, error) {
	return s.listQueues(ctx, s.direct, in)
}

// GetQueueAttributes returns the attributes of a queue that are asked for.
func (s *Server) GetQueueAttributes(ctx context.Context, in *GetQueueAttributesInput) (*GetQueueAttributesOutput, error) {
	return s.getQueueAttributes(ctx, s.direct, in)
}

// SetQueueAttributes changes some attributes of a queue.
func (s *Server) SetQueueAttributes(ctx context.Context, in *SetQueueAttributesInput) error {
	return s.setQueueAttributes(ctx, s.direct, in)
}

// DeleteQueue deletes a queue and its messages.
func (s *Server) DeleteQueue(ctx context.Context, in *DeleteQueueInput) error {
	return s.deleteQueue(ctx, s.direct, in)
}

// PurgeQueue deletes the messages of a queue.
func (s *Server) PurgeQueue(ctx context.Context, in *PurgeQueueInput) error {
	return s.purgeQueue(ctx, s.direct, in)
}

// SendMessage sends a message.
func (s *Server) SendMessage(ctx context.Context, in *SendMessageInput) (*SendMessageOutput, error) {
	return s.sendMessage(ctx, s.direct, in)
}

// SendMessageBatch sends up to ten messages.
func (s *Server) SendMessageBatch(ctx context.Context, in *SendMessageBatchInput) (*SendMessageBatchOutput, error) {
	return s.sendMessageBatch(ctx, s.direct, in)
}

// ReceiveMessage receives up to ten messages and, as a long poll, waits for the
// first. When the context ends during the wait it returns the context's error
// and has received nothing.
func (s *Server) ReceiveMessage(ctx context.Context, in *ReceiveMessageInput) (*ReceiveMessageOutput, error) {
	out, err := s.receiveMessage(ctx, s.direct, in)
	if err != nil {
		return nil, err
	}
	defer out.free()
	return out.plain(), nil
}

// DeleteMessage deletes a received message.
func (s *Server) DeleteMessage(ctx context.Context, in *DeleteMessageInput) error {
	return s.deleteMessage(ctx, s.direct, in)
}

// DeleteMessageBatch deletes up to ten received messages.
func (s *Server) DeleteMessageBatch(ctx context.Context, in *DeleteMessageBatchInput) (*DeleteMessageBatchOutput, error) {
	return s.deleteMessageBatch(ctx, s.direct, in)
}

// ChangeMessageVisibility hides a received message anew, or exposes it.
func (s *Server) ChangeMessageVisibility(ctx context.Context, in *ChangeMessageVisibilityInput) error {
	return s.changeMessageVisibility(ctx, s.direct, in)
}

// ChangeMessageVisibilityBatch hides anew or exposes up to ten received messages.
func (s *Server) ChangeMessageVisibilityBatch(ctx context.Context, in *ChangeMessageVisibilityBatchInput) (*ChangeMessageVisibilityBatchOutput, error) {
	return s.changeMessageVisibilityBatch(ctx, s.direct, in)
}

// ListDeadLetterSourceQueues lists the queues that have a queue as their
// dead-letter queue, in the order of their names.
func (s *Server) ListDeadLetterSourceQueues(ctx context.Context, in *ListDeadLetterSourceQueuesInput) (*ListDeadLetterSourceQueuesOutput, error) {
	return s.listDeadLetterSourceQueues(ctx, s.direct, in)
}

// TagQueue adds tags to a queue.
func (s *Server) TagQueue(ctx context.Context, in *TagQueueInput) error {
	return s.tagQueue(ctx, s.direct, in)
}

// UntagQueue removes tags from a queue.
func (s *Server) UntagQueue(ctx context.Context, in *UntagQueueInput) error {
	return s.untagQueue(ctx, s.direct, in)
}

// ListQueueTags returns the tags of a queue.
func (s *Server) ListQueueTags(ctx context.Context, in *ListQueueTagsInput) (*ListQueueTagsOutput, error) {
	return s.listQueueTags(ctx, s.direct, in)
}

// AddPermission adds a statement to the policy of a queue. Policies are kept and
// not enforced.
func (s *Server) AddPermission(ctx context.Context, in *AddPermissionInput) error {
	return s.addPermission(ctx, s.direct, in)
}

// RemovePermission removes a statement from the policy of a queue.
func (s *Server) RemovePermission(ctx context.Context, in *RemovePermissionInput) error {
	return s.removePermission(ctx, s.direct, in)
}

// StartMessageMoveTask begins to move the messages of a dead-letter queue.
func (s *Server) StartMessageMoveTask(ctx context.Context, in *StartMessageMoveTaskInput) (*StartMessageMoveTaskOutput, error) {
	return s.startMessageMoveTask(ctx, s.direct, in)
}

// CancelMessageMoveTask stops such a task.
func (s *Server) CancelMessageMoveTask(ctx context.Context, in *CancelMessageMoveTaskInput) (*CancelMessageMoveTaskOutput, error) {
	return s.cancelMessageMoveTask(ctx, s.direct, in)
}

// ListMessageMoveTasks lists the newest of these tasks.
func (s *Server) ListMessageMoveTasks(ctx context.Context, in *ListMessageMoveTasksInput) (*ListMessageMoveTasksOutput, error) {
	return s.listMessageMoveTasks(ctx, s.direct, in)
}

// origin is what the way a request came by says about the queues it means.
type origin struct {
	account     string // of the caller
	accessKey   string // as the request gives it
	region      string
	baseURL     string // up to the host
	host        string // "": it is in baseURL
	traceHeader string // of messages that are sent without one
}

// queueURL is the URL by which the sender of a request knows a queue.
func (from origin) queueURL(name queueName) string {
	return from.baseURL + from.host + "/" + name.account + "/" + name.name
}

// queueName is the inverse of queueURL, for URLs of any host. A bare name means a
// queue of the caller's account.
func (from origin) queueName(queueURL string) queueName {
	name := queueName{from.account, from.region, queueURL}
	if i := strings.LastIndexByte(queueURL, '/'); i >= 0 {
		name.name = queueURL[i+1:]
		name.account = queueURL[strings.LastIndexByte(queueURL[:i], '/')+1 : i]
	}
	return name
}

// lookup begins a request to a queue: it finds the queue and lets faults refuse
// the request.
func (s *Server) lookup(ctx context.Context, name queueName, action string) (request, error) {
	if err := ctx.Err(); err != nil {
		return request{}, err
	}
	s.mu.Lock()
	refusal := s.refusal()
	q := s.queues[name]
	var r request
	if q != nil {
		r = request{queue: q, attributes: q.attributes}
	}
	s.mu.Unlock()

	if refusal != nil {
		return request{}, refusal
	}
	if q == nil {
		return request{}, errQueueDoesNotExist()
	}
	s.note(ctx, q.name)
	var err error
	r.aftermath, err = s.refuse(ctx, name.name, action)
	return r, err
}

// request is a request that has found its queue.
type request struct {
	queue      *queue
	attributes *attributes // of the queue when the request came
	aftermath
}

// within carries out an operation on the queue under the lock, unless the server or
// the queue has gone since the request came. What becomes receivable goes to the long
// polls that wait for it.
func (s *Server) within(q *queue, do func(now time.Time)) error {
	s.mu.Lock()
	defer s.stopOnPanic()
	if s.keeper != nil {
		s.keeper.makeRoom()
	}
	err := s.refusal()
	if err == nil && q.dropped {
		err = errQueueDoesNotExist()
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	do(s.clock.now())
	s.arm(q)
	s.finish()
	return nil
}

// newUUID makes a random UUID (version 4) of 128 random bits.
func newUUID(high, low uint64) UUID {
	var id UUID
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}
