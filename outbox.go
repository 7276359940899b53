package reprise

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/alarms"
	"github.com/reprise-sqs/reprise/internal/calls"
)

// outbox sends settlements by one batch action of SQS, in requests that its calls decide
// on. Part of the core.
type outbox struct {
	name   string
	state  state                             // of the deliveries in it
	send   func([]*delivery) [maxBatch]error // in a goroutine of its own, without c.mu
	leased bool                              // only what is still leased is sent
	copies bool                              // it sends copies, whose sizes matter
	calls  calls.Machine[*delivery]
	linger alarms.Alarm // rings at the Deadline of calls at the latest
	taken  int64        // entries that SQS has confirmed
}

const (
	maxLinger   = 250 * time.Millisecond
	drainLinger = 5 * time.Millisecond

	// sendAtOnce is how many requests of an outbox may be under way together, or the
	// end of a batch of 10,000 would be 1,000: as many as [Tuned] keeps connections.
	sendAtOnce = defaultConnections
)

// newCalls returns what decides on the requests of an outbox. A request has at most so
// many bytes; zero means no limit. On a FIFO queue no settlement waits for others, since
// its group waits for the acknowledgement.
func (c *settings) newCalls(bytes int) calls.Machine[*delivery] {
	set := calls.Settings{Entries: maxBatch, Bytes: bytes, Requests: sendAtOnce, Linger: maxLinger, Hurried: drainLinger}
	if c.queue.fifo {
		set.Linger = 0
	}
	return calls.New[*delivery](set)
}

// put adds d to the outbox.
func (c *core) put(o *outbox, d *delivery, now time.Time) {
	c.move(d, o.state) // from now on nothing else may be sent about it
	e := calls.Entry[*delivery]{Cargo: d, Ends: d.expires, Alone: d.apart}
	if o.copies {
		e.Size = copySize(d)
	}
	o.calls.Add(now, e)
	if at := o.calls.Deadline(); !at.IsZero() {
		c.alarms.Sooner(&o.linger, at)
	}
}

// lingered is called when an outbox's alarm rings. Under load requests fill up long before:
// so it is not set anew for each, but here, if those for which it was set have gone.
func (c *core) lingered(o *outbox, now time.Time) {
	o.calls.Due(now)
	if at := o.calls.Deadline(); !at.IsZero() {
		c.alarms.Set(&o.linger, at)
	}
}

// sendRequests sends the requests that are to go out, heartbeats and settlements.
func (c *core) sendRequests() {
	for c.heartbeats.Ready() {
		c.want(effect{kind: effectHeartbeat, batch: c.heartbeats.Next()})
	}
	for _, o := range c.outboxes() {
		for o.calls.Ready() {
			batch := o.calls.Next()
			for _, d := range batch {
				d.requests++
			}
			c.want(effect{kind: effectSend, outbox: o, batch: batch})
		}
	}
}

// sent makes way for the next request.
func (c *Consumer) sent(o *outbox) {
	c.enter()
	defer c.leave()
	o.calls.Ended()
}

// deliver sends a batch and takes in the results. If the user's code, a Client or an
// Observer, ends this goroutine, what it was about is tried again.
func (c *Consumer) deliver(o *outbox, batch []*delivery) {
	defer c.sent(o)
	if o.leased {
		core := c.enter()
		batch = core.dropExpired(batch, core.now)
		c.leave()
	}
	results := unanswered(len(batch))
	defer func() { c.acknowledge(o, batch, &results) }()
	if len(batch) > 0 {
		results = o.send(batch)
	}
}

// unanswered are the results of n entries of which no reply is known.
func unanswered(n int) (results [maxBatch]error) {
	for i := range n {
		results[i] = errUnanswered
	}
	return results
}

// The ids of batch entries are positions: a message id could stand in one batch
// twice, and SQS refuses the whole batch then.
var positions = [maxBatch]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// refusal is what SQS said of an entry that it did not carry out.
type refusal struct {
	code, message string
	ours          bool // sending it again unchanged is no use
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

// sortReply sorts a batch reply by position: nil for an entry that SQS confirmed,
// an error for every other, those that the reply forgets included. id returns the
// i-th confirmed entry's id.
func sortReply(n, confirmed int, id func(i int) *string, failed []types.BatchResultErrorEntry, err error) (results [maxBatch]error) {
	results = unanswered(n)
	if err != nil {
		for i := range n {
			results[i] = err
		}
	}
	for i := range confirmed {
		if at, ok := position(id(i), n); ok {
			results[at] = nil
		}
	}
	for i := range failed {
		f := &failed[i]
		if at, ok := position(f.Id, n); ok {
			results[at] = &refusal{code: deref(f.Code), message: deref(f.Message), ours: f.SenderFault && !throttled(deref(f.Code))}
		}
	}
	return results
}

// position reads an entry's id back.
func position(id *string, n int) (int, bool) {
	if id == nil {
		return 0, false
	}
	at, err := strconv.Atoi(*id)
	return at, err == nil && at >= 0 && at < n
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
