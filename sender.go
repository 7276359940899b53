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

// Outgoing is a message to send. It is plain data. Do not change its map after passing it to
// a [Sender].
type Outgoing struct {
	// Body is the message's text. SQS does not accept an empty one.
	Body string
	// Attributes are the message attributes, at most ten. Default: none.
	Attributes map[string]types.MessageAttributeValue
	// TraceHeader is an AWS X-Ray trace header, which travels as the system
	// attribute AWSTraceHeader. Default: none.
	TraceHeader string
	// GroupID is the message group: on FIFO queues, which require it, the unit of
	// ordering; on standard queues the fair-queue tenant. Default: none.
	GroupID string
	// DeduplicationID makes a FIFO queue drop messages that are sent with the same id within
	// five minutes. FIFO queues require it unless SenderConfig.ContentDeduplication is set;
	// other queues do not permit it.
	DeduplicationID string
	// Delay is how long the message is hidden at first, at most 15 min, rounded up to whole
	// seconds. FIFO queues do not permit it. Default: the queue's delay.
	Delay time.Duration
}

// Sent is the result of sending an [Outgoing].
type Sent struct {
	// ID is the message id that SQS gave the message.
	ID string
	// SequenceNumber is the message's place in a FIFO queue, in decimal; empty on
	// standard queues.
	SequenceNumber string
	// Err is why the message was not sent: nil if and only if SQS has acknowledged it. If it
	// wraps [ErrUnconfirmed], SQS may have the message all the same.
	Err error
}

var (
	// ErrUnconfirmed is wrapped in the error of a message that SQS may or may not have: a
	// request with it ended without a clear reply. Any other error means that SQS does not
	// have the message.
	ErrUnconfirmed = errors.New("reprise: SQS may have the message, but has not confirmed it")

	// ErrSenderClosed is wrapped in the error of a message that was passed to a Sender after
	// Close, or was still unsent when Close gave up.
	ErrSenderClosed = errors.New("reprise: the sender is closed")
)

// Sender sends messages to one queue in few requests: ten messages in each, or fewer if the
// first of them has waited for a short linger. They may come from many goroutines. Each
// message gets its own result, and none is dropped without one.
//
// If SQS throttles, the service fails or a connection is lost, the message is sent again,
// alone and with backoff, until its context ends or it was in SenderConfig.Tries requests. If
// sending again cannot help, the message fails at once or, if the queue is missing or access
// is denied, after three requests. The SDK's own retries are not used.
//
// SQS may have carried out a request whose reply is lost. On a standard queue the message is
// then sent twice; consumers must tolerate duplicates in any case. A FIFO queue drops the
// second one by its deduplication id, unless it comes more than five minutes after the first.
//
// On a FIFO queue the messages of a group are sent in the order in which they were passed to
// the Sender, each when SQS has answered for the one before: if they shared a batch and one
// failed, the later ones would overtake it. So a batch has messages of different groups, and a
// single group needs a request for each message. If a message is given up, the next ones of
// its group are sent all the same.
//
// Many goroutines may use a Sender. It has goroutines of its own only while it has messages.
// Close it, so that no message is left unsent.
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

	mu      sync.Mutex // guards the fields below; see step
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

// Send sends messages and waits for SQS's answer to each: result i is that of message i. The
// error is nil if SQS has acknowledged all of them; otherwise it says how many it has not, and
// wraps the first error.
//
// Messages beyond SenderConfig.MaxWaiting or MaxBytes wait for room before they are sent. When
// ctx ends, Send returns at once; messages that are not in a request by then are not sent.
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

// Submit passes m to the sender and returns; done gets the result later. Submit blocks only
// while there is no room (SenderConfig.MaxWaiting, MaxBytes), and never if both limits are
// off. If it returns an error, m is not sent and done is not called; otherwise done is called
// exactly once, perhaps before Submit returns.
//
// ctx limits the wait for room, and then the sending: after its end no further request with m
// is made.
//
// The sender's goroutines call the done functions, concurrently and in no order. One that
// blocks delays the other results of its batch, and Flush and Close. It may submit messages,
// but must not wait for Flush or Close.
func (s *Sender) Submit(ctx context.Context, m Outgoing, done func(Sent)) error {
	if done == nil {
		return errors.New("submitting a message: the done function is nil: pass one, or use Send")
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

// Flush sends the messages passed to the sender before, without a linger. It returns when SQS
// has answered for all of them, also for those that wait for room, and the done functions of
// Submit have returned. It returns an error only if ctx ends first: the cause of its end.
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

// SenderStatus is the state of a [Sender] at one moment.
type SenderStatus struct {
	// Waiting is how many messages the sender has accepted that have no result yet; Blocked
	// is how many more wait for room.
	Waiting, Blocked int
	// Requests counts the requests made so far, those under way included.
	Requests int64
	// Sent counts the messages that SQS has acknowledged; Failed counts the accepted
	// messages that have failed.
	Sent, Failed int64
}

// Status returns the sender's state. It does not block.
func (s *Sender) Status() SenderStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.counts
	status.Requests = s.requests.Load()
	status.Waiting, status.Blocked = s.machine.Waiting()
	return status
}

// Unsent is a message that a Sender had accepted and could not send before the end of Close.
type Unsent struct {
	Message Outgoing
	// Err is why, as in the message's [Sent]. If it wraps [ErrUnconfirmed], SQS may have the
	// message.
	Err error
}

// Close sends the messages that the sender has accepted, accepts no more, and returns when
// all of them have a result and every goroutine of the sender has ended. Messages that wait
// for room fail with [ErrSenderClosed]. When ctx ends, requests are cancelled and the
// remaining messages are given up.
//
// It returns the messages that have failed since it was called; the error is nil if there are
// none. A second call waits for the first, and returns no messages.
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

// end gives up the messages that are left, and waits for every goroutine of ours.
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
	s.callers.idlers.Wait()
	s.tasks.Go(func() { s.call(calls) }) // one of the functions may end the goroutine
	s.tasks.Wait()
	unsent := s.unsent
	s.unsent = nil
	if len(unsent) > 0 {
		return unsent, fmt.Errorf("closing the sender: not sent: %s, the first: %w", plural.Of(len(unsent), "message"), unsent[0].Err)
	}
	return nil, nil
}
