package reprise

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/alarms"
)

// outbox collects messages for one batch action, and sends them ten at a time,
// or fewer when the first has waited for the linger. Part of the core.
type outbox struct {
	name     string
	state    state                             // of the deliveries in it
	send     func([]*delivery) [maxBatch]error // in a goroutine of its own, without c.mu
	leased   bool                              // only what is still leased is sent
	maxBytes int                               // of a batch's messages; zero: no matter
	pending  []*delivery
	bytes    int
	sending  int           // requests under way
	full     [][]*delivery // batches that wait for one of them to end
	flushAt  time.Time     // when what is pending has waited long enough
	linger   alarms.Alarm  // rings at flushAt at the latest
	taken    int64         // entries that SQS has confirmed
}

const (
	maxLinger   = 250 * time.Millisecond
	drainLinger = 5 * time.Millisecond

	// sendAtOnce is how many requests of an outbox may be under way together, or the
	// end of a batch of 10,000 would be 1,000: as many as [Tuned] keeps connections.
	sendAtOnce = defaultConnections
)

// put adds d to the outbox.
func (c *core) put(o *outbox, d *delivery, now time.Time) {
	c.move(d, o.state) // from now on nothing else may be sent about it
	alone := d.apart && o.maxBytes > 0
	if alone {
		c.flush(o)
	}
	if o.maxBytes > 0 {
		size := copySize(d)
		if o.bytes+size > o.maxBytes {
			c.flush(o)
		}
		o.bytes += size
	}
	if o.pending == nil {
		o.pending = make([]*delivery, 0, maxBatch)
	}
	o.pending = append(o.pending, d)
	if len(o.pending) == maxBatch || alone {
		c.flush(o)
		return
	}
	linger := min(maxLinger, max(0, d.expires.Sub(now)/10))
	switch {
	case c.queue.fifo:
		linger = 0 // the group waits for the acknowledgement
	case c.draining:
		linger = min(linger, drainLinger, max(0, c.hardEnd.Sub(now)/10))
	}
	if at := now.Add(linger); len(o.pending) == 1 || at.Before(o.flushAt) {
		o.flushAt = at
		c.alarms.Sooner(&o.linger, at)
	}
}

// lingered is called when an outbox's alarm rings. Under load batches fill long before:
// so it is not set anew for each, but here, if those for which it was set have gone.
func (c *core) lingered(o *outbox, now time.Time) {
	switch {
	case len(o.pending) == 0:
	case o.flushAt.After(now):
		c.alarms.Set(&o.linger, o.flushAt)
	default:
		c.flush(o)
	}
}

// flush sends what is pending.
func (c *core) flush(o *outbox) {
	batch := o.pending
	if len(batch) == 0 {
		return
	}
	o.pending, o.bytes = nil, 0
	for _, d := range batch {
		d.requests++
	}
	if o.sending == sendAtOnce {
		o.full = append(o.full, batch)
		return
	}
	o.sending++
	c.want(effect{kind: effectSend, outbox: o, batch: batch})
}

// sent makes way for a batch that waits.
func (c *Consumer) sent(o *outbox) {
	core := c.enter()
	defer c.leave()
	if len(o.full) == 0 {
		o.sending--
		return
	}
	batch := o.full[0]
	o.full = o.full[1:]
	core.want(effect{kind: effectSend, outbox: o, batch: batch})
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
