package consumer

import (
	"cmp"
	"time"

	"github.com/reprise-sqs/reprise/internal/groups"
	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/internal/lease"
)

// Delivery is one message that this consumer holds, from its receipt to the
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
	Key                   string    // of its breaker, as Config.Outage.Key returned it; Took shortens it
	PossibleAttempts      int       // how many attempts fit into the time since its first receive
	History               *Past     // of the messages that it is a copy of; nil: it is no copy
	Size                  int       // in bytes, as SQS counts it, without its history
	Attributes            int       // how many message attributes its sender attached
	TraceSize             int       // bytes of its trace header
	Attempt               int       // the number of its run, the present one or the next
	Trail                 string    // what Observer.Starting returned for the run before

	shelf    *Gate                    // the closed gate that it waits behind
	gate     *Gate                    // the gate that has let it through
	round    int                      // of the gate's breaker at that time
	next     *Delivery                // in a fifo
	previous *Delivery                //
	named    *string                  // the receipt handle in the latest request about it
	receives int                      // SQS's count at the newest receive
	member   groups.Member[*Delivery] // FIFO: of its group
	size     int                      // Size, if the consumer runs batches

	state   state
	lease   lease.Lease
	verdict Verdict // while it is scheduled: how to settle it if it must be settled before it is due

	duplicate bool // the message was held already; that delivery has the newer receipt handle
	ran       bool // its handler was run
	tried     bool // an attempt has failed because a dependency was unavailable
	doubtful  bool // its receive took so long that the lease may have ended before
	suspect   bool // soloTurn.suspects counts it

	copied     bool // SQS has confirmed its copy
	uncopyable bool // it cannot be requeued
	bare       bool // its copy is sent without the story and the trace header
	apart      bool // its copy is sent in a request of its own
	watched    bool // Machine.giveUps has counted its end
	factsNew   bool // the queue's attributes have changed while it was held
	outageOver bool // the outage because of which it is being hidden has ended
	refusals   int  // settlements that failed, for their backoff
	refused    refusals
	requests   int // requests spent on settling

	began       time.Time // when its present run began
	interrupted time.Time // when its lease was lost in that run; zero: it was not
	hung        bool      // its handler ignores the end of its context
	batch       *batchRun // that it runs in; nil: it has a handler of its own, or does not run

	hiddenUntil time.Time // until when the settlement under way hides it
}

// Duplicate reports whether the same message was held when d was received. It has taken over
// d's receipt handle, if that is the newer one, and d is not run.
func (d *Delivery) Duplicate() bool { return d.duplicate }

// Held reports whether the consumer still holds d.
func (d *Delivery) Held() bool { return d.state != stateGone }

// Outcome returns what the settlement under way does with d.
func (d *Delivery) Outcome() Outcome { return d.verdict.Outcome }

// leaveTrail sets the trail of the run that has ended; an empty one leaves the trail before
// it as it is.
func (d *Delivery) leaveTrail(trail string) {
	if trail != "" {
		d.Trail = trail
	}
}

// SetSequence sets the sequence number that SQS gave d on a FIFO queue.
func (d *Delivery) SetSequence(number string) { d.member.Sequence = number }

// Subject returns d as it is now.
func (d *Delivery) Subject() Subject { return Subject{d.Cargo, d.Attempt, d.Trail} }

// Past is what a copy's history says about the messages before it. Unless it is signed, any
// producer of the queue can forge it: a forged history can delay the message that carries
// it, have it given up, or claim another message's origin. So no message may be settled by
// its origin alone.
type Past struct {
	history.History

	Enqueued time.Time // SQS's times of the copy itself
	Arrived  time.Time
	Due      time.Time // NotBefore on our clock
}

// lostTo returns why settling failed if d was lost, otherwise nil.
func (d *Delivery) lostTo() error {
	if d.verdict.Outcome == OutcomeLost {
		return d.verdict.Err
	}
	return nil
}

// asReceived compares deliveries by the time of their receipt, and those of a FIFO queue
// that were received together by the order in which they were sent.
func asReceived(a, b *Delivery) int {
	return cmp.Or(a.Received.Compare(b.Received), groups.Compare(a.member.Sequence, b.member.Sequence), cmp.Compare(a.ID, b.ID))
}

// spread maps a message id onto a part of span, the same in every process. The last digits
// of an id are as random as the whole.
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

// remove takes d out of f.
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

// attempts returns how many attempts d, which is given up, has had.
func (d *Delivery) attempts() int {
	if !d.ran || d.verdict.released {
		return d.Attempt - 1 // the run of this receive did not begin, or was no attempt
	}
	return d.Attempt
}
