package reprise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/internal/sending"
)

// SenderClient is the part of *sqs.Client that a [Sender] calls.
type SenderClient interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// Outgoing is a message to send. It is plain data; what its maps hold must not be
// changed after it has been handed to a [Sender].
type Outgoing struct {
	// Body is the message's text. SQS takes no empty one.
	Body string
	// Attributes are the message attributes, at most ten. Default: none.
	Attributes map[string]types.MessageAttributeValue
	// TraceHeader is an AWS X-Ray trace header, which travels as the system
	// attribute AWSTraceHeader. Default: none.
	TraceHeader string
	// GroupID is the message group: on FIFO queues, which require it, the unit of
	// ordering; on standard queues the fair-queue tenant. Default: none.
	GroupID string
	// DeduplicationID makes SQS drop what is sent again under the same id within
	// five minutes. FIFO queues only, which require it unless
	// SenderConfig.ContentDeduplication says otherwise.
	DeduplicationID string
	// Delay hides the message at first, for at most 15 min, rounded up to whole
	// seconds. Not on FIFO queues. Default: the queue's delay.
	Delay time.Duration
}

// Sent is what became of an [Outgoing].
type Sent struct {
	// ID is the message id that SQS gave the message.
	ID string
	// SequenceNumber is the message's place in a FIFO queue, in decimal; empty on
	// standard queues.
	SequenceNumber string
	// Err is why the message was not sent: nil if and only if SQS has acknowledged
	// it. If it is an [ErrUnconfirmed], SQS may have it all the same.
	Err error
}

var (
	// ErrUnconfirmed is part of the error of a message that SQS may or may not
	// have: a request with it ended without a reply that says so. Any other error
	// means that SQS does not have it.
	ErrUnconfirmed = errors.New("reprise: SQS may have the message, but has not confirmed it")

	// ErrSenderClosed is part of the error of a message that was handed to a
	// Sender after its Close, or was still unsent when Close gave up.
	ErrSenderClosed = errors.New("reprise: the sender is closed")
)

// Sender sends messages to one queue in few requests: ten at a time, or fewer
// when the first has waited for a short linger, from however many goroutines they
// come. Each message gets its own answer, and none is dropped without one.
//
// What SQS fails to take is sent again, alone and with backoff, for as long as
// the caller's context lasts, or SenderConfig.Tries times: throttles, failures of
// the service, lost connections. What that cannot mend is answered at once or, where
// it is the queue's trouble (it is missing, access is denied), after three requests.
// The SDK's own retries are not used.
//
// A request whose reply is lost may have been carried out. On a standard queue
// the message is then sent twice: consumers must bear duplicates in any case. A
// FIFO queue drops the second by its deduplication id, unless it comes more than
// five minutes after the first.
//
// On a FIFO queue the messages of a group are sent in the order in which they
// were handed over, each when SQS has answered for the one before: in one batch,
// the failure of one would let its successors overtake it. So batches fill from
// different groups, and a single group has a request for each message. A message
// that is given up is left out; its successors go on.
//
// A Sender may be used by many goroutines. It has goroutines of its own only
// while it has messages. Close it, so that none is left unsent.
type Sender struct {
	client SenderClient
	queue  queueURL
	cfg    SenderConfig
	log    *slog.Logger
	ctx    context.Context    // of requests
	stop   context.CancelFunc // ends ctx
	limit  deadline           // of one request
	tasks  sync.WaitGroup     // requests under way, and the timer while it is set
	closed chan struct{}      // closed when Close has done its work

	requests atomic.Int64 // made so far

	mu      sync.Mutex // guards what follows; see step
	machine *sending.Machine
	callers goroutines[[]*sending.Message]
	timer   *time.Timer
	firesAt time.Time    // when the timer fires; zero: it is not set
	unsent  []Unsent     // answered with an error since Close began
	counts  SenderStatus // Sent and Failed alone
}

// NewSender returns a sender to the queue at queueURL. It checks everything that
// can be checked without a call, reports all problems in one error, and starts
// nothing. A *sqs.Client is a [SenderClient] as it is.
func NewSender(c SenderClient, queueURL string, cfg SenderConfig) (*Sender, error) {
	var problems []error
	if c == nil {
		problems = append(problems, errors.New("the SQS client is nil: pass sqs.NewFromConfig(cfg)"))
	}
	queue, err := parseQueueURL(queueURL)
	if err != nil {
		problems = append(problems, err)
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(queue.fifo); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("making a sender: %w", err)
	}
	s := &Sender{
		client: c,
		queue:  queue,
		cfg:    cfg,
		log:    slog.New(safeLog{cfg.Logger.With("queue", queue.name).Handler()}),
		limit:  deadline{limit: settleTimeout},
		closed: make(chan struct{}),
		machine: sending.New(sending.Settings{
			FIFO:          queue.fifo,
			Linger:        cfg.Linger,
			Requests:      cfg.Requests,
			MaxWaiting:    cfg.MaxWaiting,
			MaxBytes:      cfg.MaxBytes,
			Tries:         cfg.Tries,
			LastingTries:  lastingTries,
			ComplainEvery: consumer.ComplaintEvery,
			Retry:         sendBackoff,
			Seed:          hostname() + " " + queue.name, // so that a fleet's retries spread
		}),
	}
	s.callers.do = s.deliver
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Send sends messages and waits for SQS's answer to each: result i is message
// i's. The error is nil if SQS has acknowledged all of them; otherwise it counts
// those that it has not, and wraps the error of the first.
//
// Messages beyond SenderConfig.MaxWaiting wait for room without being sent. When
// ctx ends, Send returns at once; what is not in a request by then is not sent.
func (s *Sender) Send(ctx context.Context, messages ...Outgoing) ([]Sent, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	call := &sendCall{results: make([]Sent, len(messages)), left: len(messages), done: make(chan struct{})}
	parcels := make([]parcel, len(messages))
	for i := range messages {
		p := &parcels[i]
		*p = parcel{message: messages[i], call: call, at: i}
		p.Cargo, p.Group = p, p.message.GroupID
		p.Size, call.results[i].Err = s.check(&p.message)
	}
	if ctx.Err() != nil {
		return call.fail(context.Cause(ctx))
	}

	closed := false
	s.step(nil, func(now time.Time) {
		if closed = s.machine.Closing(); closed {
			return
		}
		for i := range parcels {
			if call.results[i].Err == nil {
				s.machine.Add(now, &parcels[i].Message)
			} else {
				call.answered()
			}
		}
	})
	if closed {
		return call.fail(ErrSenderClosed)
	}

	select {
	case <-call.done:
	case <-ctx.Done():
		s.step(context.Cause(ctx), func(now time.Time) {
			for i := range parcels {
				s.machine.Withdraw(now, &parcels[i].Message)
			}
		})
	}
	return call.results, call.err()
}

// Submit hands m over and returns; done is told what became of it. It blocks only
// while there is no room (SenderConfig.MaxWaiting, MaxBytes), and never where both
// limits are off. If it returns an error, m is not sent and done is not called;
// otherwise done is called exactly once, maybe before Submit returns.
//
// ctx bounds the wait for room and then the message itself: when it has ended,
// no further request is made for it. That is looked at before each request.
//
// Calls of done come from the sender's goroutines, at the same time and in no
// order. One that blocks holds back the answers to its batch, and Flush and Close. It
// may hand over messages, but must not wait for Flush or Close.
func (s *Sender) Submit(ctx context.Context, m Outgoing, done func(Sent)) error {
	if done == nil {
		return errors.New("submitting a message: the function to be told is nil: pass one, or use Send")
	}
	size, err := s.check(&m)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := &parcel{message: m, ctx: ctx, tell: done}
	p.Cargo, p.Group, p.Size, p.Tell = p, m.GroupID, size, true
	closed := false
	s.step(nil, func(now time.Time) {
		if closed = s.machine.Closing(); closed {
			return
		}
		if s.machine.Add(now, &p.Message); p.State() == sending.Outside {
			p.admitted = make(chan struct{})
		}
	})
	switch {
	case closed:
		return ErrSenderClosed
	case p.admitted == nil:
		return nil
	}

	select {
	case <-p.admitted:
	case <-ctx.Done():
		s.step(context.Cause(ctx), func(now time.Time) {
			if p.State() == sending.Outside {
				s.machine.Withdraw(now, &p.Message)
			}
		})
	}
	return p.refused
}

// Flush sends what is gathered without waiting for more, and waits until every
// message handed over before has been answered, those that still wait for room
// included, and Submit's functions have returned. The error is that of ctx.
func (s *Sender) Flush(ctx context.Context) error {
	done := make(chan struct{})
	f := &sending.Flush{Cargo: done}
	s.step(nil, func(now time.Time) { s.machine.Hurry(now, f) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.step(nil, func(time.Time) { s.machine.Forget(f) })
		return context.Cause(ctx)
	}
}

// SenderStatus says how far a [Sender] is.
type SenderStatus struct {
	// Waiting is how many messages the sender has taken in and not answered;
	// Blocked is how many more wait for room.
	Waiting, Blocked int
	// Requests counts the requests made so far, those under way included.
	Requests int64
	// Sent counts the messages that SQS has acknowledged; Failed counts those
	// that were taken in and answered with an error.
	Sent, Failed int64
}

// Status returns how far the sender is. It does not wait.
func (s *Sender) Status() SenderStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.counts
	status.Requests = s.requests.Load()
	status.Waiting, status.Blocked = s.machine.Waiting()
	return status
}

// Unsent is a message that a Sender had taken and could not send before Close
// ended it.
type Unsent struct {
	Message Outgoing
	// Err is why, as it was said to whoever handed the message over. If it is an
	// [ErrUnconfirmed], SQS may have the message.
	Err error
}

// Close sends what the sender has taken, takes nothing more, and returns when all
// is answered and every goroutine has ended. Messages that wait for room are
// turned away. When ctx ends, requests are cut off and the rest is given up.
//
// It returns the messages that were answered with an error since it was called;
// the error is nil if there is none. A second call waits for the first and
// returns nothing.
func (s *Sender) Close(ctx context.Context) ([]Unsent, error) {
	done, again := make(chan struct{}), false
	s.step(ErrSenderClosed, func(now time.Time) {
		if again = s.machine.Closing(); !again {
			s.machine.Close(now, &sending.Flush{Cargo: done})
		}
	})
	if again {
		select {
		case <-s.closed:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return s.end()
}

// end gives up what is left and waits for every goroutine of ours.
func (s *Sender) end() ([]Unsent, error) {
	defer close(s.closed)
	s.step(nil, func(time.Time) {
		s.machine.Stop()
		if !s.firesAt.IsZero() && s.timer.Stop() {
			s.firesAt = time.Time{}
			s.tasks.Done()
		}
	})
	s.stop()
	s.tasks.Wait()

	calls := s.step(ErrSenderClosed, s.machine.Discard)
	s.callers.parked.Wait()
	s.tasks.Go(func() { s.call(calls) }) // one of the functions may end the goroutine
	s.tasks.Wait()
	unsent := s.unsent
	s.unsent = nil
	if len(unsent) > 0 {
		return unsent, fmt.Errorf("closing the sender: not sent: %s, the first: %w", plural.Of(len(unsent), "message"), unsent[0].Err)
	}
	return nil, nil
}
