// Package queuebench measures a queue with messages of its own: how many a second it takes and
// gives, how long requests and whole journeys last, and how many requests a message costs.
package queuebench

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/latency"
)

// Client is what a bench asks of SQS. An [sqs.Client] is one.
type Client interface {
	SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// Bench is a measurement of one queue.
type Bench struct {
	Client   Client // required
	QueueURL string // required

	// Messages is how many are sent at most. 0: as many as For allows.
	Messages int
	// For is how long messages are sent. 0: until Messages were. One of the two is required.
	For time.Duration
	// Rate is how many messages a second are sent. 0: as fast as the queue takes them, with at
	// most Waiting of them sent and not yet received.
	Rate    float64
	Waiting int
	// Size is the length of a body in bytes, at least MinSize.
	Size int
	// Senders and Receivers are how many requests of each kind are under way at once.
	Senders, Receivers int
	// Groups is how many message groups the messages of a FIFO queue have. A group is one sender's,
	// so that it has an order; there are no more senders than groups.
	Groups int
	// Patience is how long to wait for messages that do not come, before they are given up.
	Patience time.Duration
	// Progress, if it is set, is called about once a second.
	Progress func(sent, deleted int)
}

// MinSize is the shortest body, in bytes: each tells which bench it is of, and which message.
const MinSize = 128

// Run sends, receives and deletes until all that was sent is deleted or given up. When stop is
// closed it sends no more; when ctx ends, it leaves what there is. The report holds what was
// measured in any case; the error says what ended the bench too early.
func (b *Bench) Run(ctx context.Context, stop <-chan struct{}) (Report, error) {
	r := &run{
		Bench: b, id: strings.ToLower(rand.Text()), fifo: strings.HasSuffix(b.QueueURL, ".fifo"), began: time.Now(),
		errors: make(map[string]int),
	}
	if b.Rate == 0 {
		r.room = make(chan struct{}, b.Waiting)
	}
	if r.fifo {
		r.latest = make([]int, b.Groups)
	}
	hard := ctx // of requests whose outcome counts, however the bench ends
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.fail = cancel
	sending, stopSending := context.WithCancel(ctx)
	defer stopSending()
	r.stopSending = stopSending

	var senders, receivers, clock sync.WaitGroup
	for range b.Receivers {
		receivers.Go(func() { r.receive(ctx, hard) })
	}
	for i := range r.senders() {
		senders.Go(func() { r.send(sending, hard, i) })
	}
	clock.Go(func() { r.watch(ctx, stop) })
	senders.Wait()
	r.sent()
	receivers.Wait()
	cancel(errEnded)
	clock.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errEnded) {
		return r.report(), err
	}
	return r.report(), r.sendError
}

// errEnded is the cause of the end of a bench that has ended by itself.
var errEnded = errors.New("the bench has ended")

// run is a bench under way.
type run struct {
	*Bench
	id    string
	fifo  bool
	began time.Time
	room  chan struct{}           // has an element for each message that waits to be received; nil: there is a rate
	fail  context.CancelCauseFunc // ends the bench at once

	stopSending context.CancelFunc // what was sent is still received

	mu         sync.Mutex
	next       int       // messages that senders have taken
	messages   []state   // of each of them
	latest     []int     // FIFO: by group, the number of the message that was received last
	allSent    bool      // the senders have ended
	sendError  error     // that ended the sending
	unanswered int       // sends that failed since the last that did not
	open       int       // messages that are in the queue, or may be
	moved      time.Time // when one of them was sent, received or deleted last
	counts     Counts
	calls      Calls
	sentFor    time.Duration // from the beginning to the last message that SQS took
	doneFor    time.Duration // to the last that was deleted
	errors     map[string]int

	sendTook, receiveTook, deleteTook, journeys latency.Histogram
}

// state is what is known of a message, a bit each.
type state uint8

const (
	taken    state = 1 << iota // SQS has confirmed the send
	refused                    // SQS has refused the send
	received                   // it was received
	deleted                    // SQS has confirmed the delete
)

// watch reports progress, ends the sending at the end of its time or when stop is closed, and ends the
// bench when all messages are deleted, or none has moved for so long that the rest is given up.
func (r *run) watch(ctx context.Context, stop <-chan struct{}) {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	over := make(<-chan time.Time)
	if r.For > 0 {
		timer := time.NewTimer(r.For)
		defer timer.Stop()
		over = timer.C
	}
	for ticks := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-over:
			r.stopSending()
		case <-stop:
			stop = nil
			r.stopSending()
		case <-tick.C:
			ticks++
			sent, done, ended, stuck := r.look()
			if ended {
				r.fail(errEnded)
				return
			}
			if stuck {
				r.stopSending() // others take its messages, or nothing comes back: more do not help
			}
			if r.Progress != nil && ticks%int(time.Second/tickEvery) == 0 {
				r.Progress(sent, done)
			}
		}
	}
}

const tickEvery = 50 * time.Millisecond

// look returns how far the bench is. It has ended when everything is deleted, or the messages that
// are not have been given up; it is stuck when no message has moved for as long as that takes.
func (r *run) look() (sent, done int, ended, stuck bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stuck = r.open > 0 && time.Since(r.moved) > r.Patience
	return r.counts.Sent, r.counts.Deleted, r.allSent && (r.open == 0 || stuck), stuck
}

// sent notes that no more messages will be sent.
func (r *run) sent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allSent = true
}

// senders is how many there are.
func (r *run) senders() int {
	if r.fifo {
		return min(r.Senders, r.Groups)
	}
	return r.Senders
}

// failed counts an error of the service, or of a request.
func (r *run) failed(code string) {
	r.errors[code]++
}
