// Package sqsserver is an SQS server inside a Go program: standard and FIFO queues with the
// behaviour, the errors and the wire format of Amazon SQS.
//
// A Server is an http.Handler to which the AWS SDKs and tools talk, and a value with one method per
// action for programs that do not need HTTP. Its queues are in memory; with a [Journal] they also
// survive a crash of the machine, and bodies need not be in memory. See [Open].
//
// A server without a journal starts no goroutine, one with a journal a single
// one with its first change. A timer runs only while a long poll waits for a
// message that is hidden, or a change to be written. So an idle server costs nothing, and works
// inside and outside of testing/synctest bubbles.
package sqsserver

import (
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

	// BaseURL is the beginning of queue URLs, such as "http://localhost:9324". Default: the host
	// that the HTTP request was sent to; for direct calls http://sqs.<region>.localhost.
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

	// BodyCache is how many bytes of message bodies and attributes a server with a journal keeps in
	// memory; negative: only those that are not yet in the journal. New ignores it. Default: 128
	// MiB.
	BodyCache int

	// Credentials make requests over HTTP need a valid AWS Signature Version 4 of one of them,
	// in the Authorization header or in the URL, by a clock that is at most 15 minutes off.
	// Session tokens are ignored. Each of the keys may use every queue. Default: none; then every
	// request is accepted, whatever its signature, unless it may come from a web page of another
	// origin; see [PageGuard].
	Credentials []Credentials

	// AllowedOrigins are the origins of web pages on other machines that may use the server over
	// HTTP although it has no Credentials, in the form scheme://host[:port], and names besides
	// localhost by which it may be called on a loopback address: see [PageGuard]. The origin of
	// BaseURL is one of them. New logs entries that are not origins, and ignores them. Default:
	// only pages of this machine.
	AllowedOrigins []string

	// KeepUnwritten leaves messages in flight if their client has gone before the reply was
	// written, as AWS does. Default: they become visible again at once.
	KeepUnwritten bool

	// TimeScale is how many times as fast as the machine's the server's time runs, for tests of
	// long times; see Server.Advance. From 1 to 50,000; New logs another one, and ignores it. It does
	// not work with a journal. Default: 1.
	TimeScale float64

	// OnRequest is called when a request over HTTP has ended, by the goroutine that serves it:
	// it should be quick. Default: none.
	OnRequest func(Request)

	// Logger gets problems that no reply reports. Default: slog.Default().
	Logger *slog.Logger
}

// Server is an SQS. Its methods may be called from many goroutines at once.
//
// It has a method for each action of SQS, for callers in the same process: without HTTP,
// encoding and signatures. The error of each is an *Error, or the context's, or ErrReplyLost.
// The server keeps slices and maps of an input; the caller must not change them later.
type Server struct {
	config Config
	direct caller // of calls that come without HTTP
	faults faultSet
	clock  clock
	pages  *PageGuard
	bodies atomic.Int64 // bytes that requests hold; see maxBodies

	// mu guards what follows. Requests hold it for at most messagesPerHold messages at a time,
	// and the engine limits how many messages it expires on the way. The lock is never held
	// while waiting, nor for parsing, digests or encoding.
	mu       sync.Mutex
	closed   bool
	engine   *engine.Engine
	queues   map[queueName]*queue
	byARN    map[string]*queue
	deleted  map[queueName]time.Time
	random   *rand.Rand // ids of messages and queues
	longPoll longPolls
	awaited  []*queue       // that WaitEmpty waits for
	writer   *journalWriter // set once; nil: nothing is kept
	broken   error          // why the queues cannot be trusted any more
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
	switch scale := config.TimeScale; {
	case scale == 0 || scale == 1:
	case scale > 1 && scale <= maxTimeScale:
		s.clock.set(time.Now(), scale)
	default:
		config.Logger.Error("sqsserver: ignoring Config.TimeScale, which is not from 1 to 50,000", "value", scale)
	}
	s.pages = config.pageGuard()
	s.faults.byQueue = make(map[string][]*activeFault)
	s.faults.seed = config.Seed
	s.direct = caller{account: config.Account, region: config.Region, baseURL: config.BaseURL}
	if s.direct.baseURL == "" {
		s.direct.baseURL = "http://sqs." + config.Region + ".localhost"
	}
	return s
}

// pageGuard returns the guard of a server.
func (c Config) pageGuard() *PageGuard {
	cfg := PageGuardConfig{OnRefused: func(r *http.Request, err error, unreported int) {
		c.Logger.Warn("refused a request that may come from a web page or a stranger", "error", err, "remote", r.RemoteAddr, "more_refused", unreported)
	}}
	for _, origin := range c.AllowedOrigins {
		if err := CheckOrigin(origin); err != nil {
			c.Logger.Error("sqsserver: ignoring an entry of Config.AllowedOrigins that is not an origin", "error", err)
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

// Pages returns the rule by which the server distinguishes programs from web pages, for
// other handlers at its address that require no signature.
func (s *Server) Pages() *PageGuard { return s.pages }

// Close ends the long polls that wait, which return no message, and makes the server refuse
// every later request with ServiceUnavailable. A server with a journal writes the remaining
// changes and closes it; the error is that of closing it, or nil.
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
	if s.writer == nil {
		return nil
	}
	return s.writer.close()
}
