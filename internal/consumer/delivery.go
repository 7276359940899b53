package consumer

import (
	"cmp"
	"time"

	"github.com/reprise-sqs/reprise/internal/groups"
	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/internal/lease"
)

// Delivery is one message in this consumer's hands, from its receipt to the
// acknowledgement of its settlement. The shell sets the exported fields before
// [Machine.Took], but for Attempt; from then on all fields are the machine's. ID,
// Attempt, Trail, History and the times do not change while a handler runs.
type Delivery struct {
	Cargo any // the shell's own

	ID, OriginID, GroupID string
	Sent, FirstReceived   time.Time // of the lineage, by SQS's clock
	Received              time.Time // on our clock
	Receives              int       // SQS's count at this receive
	Handle                *string   // the newest receipt handle
	Key                   string    // of the breaker and the pause that concern it
	Fit                   int       // attempts that fit into the time since it was first received
	History               *Past     // what it carries of the messages before it; nil: nothing
	Size                  int       // in bytes, as SQS counts it, without its history
	Attributes            int       // how many message attributes its sender attached
	TraceSize             int       // bytes of its trace header
	Attempt               int       // the number of its run, the present one or the next
	Trail                 string    // that the observer left of the run before

	shelf    *Gate                    // the closed gate that it waits behind
	gate     *Gate                    // the gate that has let it through
	round    int                      // of the gate's breaker, when it did
	next     *Delivery                // in a fifo
	previous *Delivery                //
	named    *string                  // the handle that the latest request about it named
	receives int                      // SQS's count at the newest receive
	member   groups.Member[*Delivery] // FIFO: of its group
	size     int                      // Size, of a batch consumer

	state   state
	lease   lease.Lease
	verdict Verdict // while it waits for its time: what becomes of it otherwise

	duplicate bool // arrived while the same message was held: only lent its handle
	ran       bool // its handler was run
	tried     bool // an attempt has failed for want of what its handler needs

	copied     bool // the dead-letter queue, or its own, has it again
	uncopyable bool // it cannot be requeued
	bare       bool // the copy goes without what can be left out: its story and its trace header
	apart      bool // the copy goes in a request of its own
	watched    bool // its end has been taken in by Machine.giveUps
	refusals   int  // settlements that failed, for their backoff
	refused    refusals
	requests   int // requests spent on settling

	began time.Time // of the run of its handler that is under way
	hung  bool      // its handler ignores the end of its context

	hiddenUntil time.Time // by the settlement that is under way
}

// Duplicate reports whether d arrived while the same message was held: that adopted its
// receipt handle, and d is not run.
func (d *Delivery) Duplicate() bool { return d.duplicate }

// Held reports whether d has not yet left the consumer's hands.
func (d *Delivery) Held() bool { return d.state != stateGone }

// Outcome is what becomes of d, while it is settled.
func (d *Delivery) Outcome() Outcome { return d.verdict.Outcome }

// leaveTrail notes what the observer leaves of the run that has ended; nothing, if trail is
// empty.
func (d *Delivery) leaveTrail(trail string) {
	if trail != "" {
		d.Trail = trail
	}
}

// SetSequence sets d's place in a FIFO queue, as SQS numbers it.
func (d *Delivery) SetSequence(number string) { d.member.Sequence = number }

// Subject is d as it is now.
func (d *Delivery) Subject() Subject { return Subject{d.Cargo, d.Attempt, d.Trail} }

// Past is what a delivery's history tells of the messages before it. Unless it was signed,
// whoever may send to the queue can forge it: it can delay or give up the message that
// carries it, and claim another's origin, by which nothing may be settled alone.
type Past struct {
	history.History

	Enqueued time.Time // SQS's times of the copy itself
	Arrived  time.Time
	Due      time.Time // NotBefore on our clock
}

// lostTo is why settling failed, for a message that was lost; otherwise nil.
func (d *Delivery) lostTo() error {
	if d.verdict.Outcome == OutcomeLost {
		return d.verdict.Err
	}
	return nil
}

// asReceived puts deliveries into the order in which they came, those of a FIFO
// queue that came together into the order in which they were sent.
func asReceived(a, b *Delivery) int {
	return cmp.Or(a.Received.Compare(b.Received), groups.Compare(a.member.Sequence, b.member.Sequence), cmp.Compare(a.ID, b.ID))
}

// spread is the part of span that falls to a message id, the same everywhere. The
// last digits of an id are as random as the whole.
func spread(span time.Duration, id string) time.Duration {
	var sum uint32 = 2166136261 // FNV-1a
	for i := max(0, len(id)-8); i < len(id); i++ {
		sum = (sum ^ uint32(id[i])) * 16777619
	}
	return time.Duration(uint64(span) / (1 << 16) * uint64(sum>>16))
}

// fifo is a first-in-first-out list of deliveries, linked through them.
type fifo struct{ first, last *Delivery }

// push appends d.
func (f *fifo) push(d *Delivery) {
	d.previous = f.last
	if f.last == nil {
		f.first = d
	} else {
		f.last.next = d
	}
	f.last = d
}

// pushFront puts d before all others.
func (f *fifo) pushFront(d *Delivery) {
	d.next = f.first
	if f.first == nil {
		f.last = d
	} else {
		f.first.previous = d
	}
	f.first = d
}

// remove takes d out, which is in f.
func (f *fifo) remove(d *Delivery) {
	if d.previous == nil {
		f.first = d.next
	} else {
		d.previous.next = d.next
	}
	if d.next == nil {
		f.last = d.previous
	} else {
		d.next.previous = d.previous
	}
	d.next, d.previous = nil, nil
}
