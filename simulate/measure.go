package simulate

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
)

// called counts a request that the dependency sees.
func (r *run) called(now time.Duration) {
	if second := int64(now / time.Second); second != r.second {
		r.closeSecond()
		r.second = second
	}
	r.calls++
	for i := range r.recoveries {
		if v := &r.recoveries[i]; now >= v.At && now < v.At+v.For {
			v.Requests++
		}
	}
}

// aftermath is how long after an outage its peak is looked for.
const aftermath = 10 * time.Minute

// closeSecond takes in how many requests the dependency has seen in a second that is over.
func (r *run) closeSecond() {
	r.now.Peak = max(r.now.Peak, r.calls)
	r.result.PeakRequests = max(r.result.PeakRequests, r.calls)
	at := time.Duration(r.second) * time.Second
	for i := range r.recoveries {
		v := &r.recoveries[i]
		if end := v.At + v.For; at+time.Second > end && at < end+aftermath {
			v.Peak = max(v.Peak, r.calls)
		}
	}
	r.calls = 0
}

// sample ends the present period.
func (r *run) sample() {
	now := r.loop.Since()
	if r.second < int64(now/time.Second) {
		r.closeSecond()
	}
	r.findMoved()
	b := &r.now
	b.Visible, b.InFlight, b.Delayed = r.counts()
	b.Open = b.Visible + b.InFlight + b.Delayed
	r.result.PeakOpen = max(r.result.PeakOpen, b.Open)
	r.result.PeakInFlight = max(r.result.PeakInFlight, b.InFlight)
	b.Running, b.Waiting = r.running, r.waiting
	for r.oldest < len(r.messages) {
		one := r.messages[r.oldest]
		if one.state == open && now < one.renewed+r.Queue.Retention {
			b.Oldest = now - one.sent
			break
		}
		r.oldest++
	}
	r.sampleQueues(now)
	r.series.add(*b)
	r.now = Bucket{At: now}
}

// findMoved finds the messages that SQS itself has moved to the dead-letter queue because of their
// receive count: nobody is told of those.
func (r *run) findMoved() {
	if r.dead == nil {
		return
	}
	visible, inFlight, delayed := r.dead.Counts()
	if visible+inFlight+delayed == r.given+r.moved {
		return
	}
	r.moved = visible + inFlight + delayed - r.given
	for _, d := range r.dead.Messages() {
		if one := messageOf(d.Payload); one.state == open {
			r.now.Dead++
			r.ends(one, given)
		}
	}
}

// requested counts a request of a consumer about messages of so many bytes.
func (r *run) requested(q simulation.Request, bytes int) {
	n := &r.result.Requests
	billed := 1
	switch q.Kind {
	case simulation.ReceiveRequest:
		if q.Messages == 0 {
			n.EmptyReceives++
			break
		}
		n.Receives++
		billed = units(q.Messages * bytes)
		_, inFlight, _ := r.counts()
		r.result.PeakInFlight = max(r.result.PeakInFlight, inFlight)
	case simulation.DeleteRequest:
		n.Deletes++
	case simulation.HideRequest:
		n.Hides++
	case simulation.RenewRequest:
		n.Renewals++
	case simulation.WakeRequest:
		n.Wakes++
	case simulation.CopyRequest:
		n.Copies++
		billed = units(q.Messages * bytes)
	case simulation.DeadLetterRequest:
		n.DeadLetters++
		billed = units(q.Messages * bytes)
	}
	n.Units += billed
	if q.Failed {
		n.Failed++
	}
}

// recovery measures what follows an outage.
type recovery struct {
	Recovery
	over bool // the outage
	sent int  // how many messages were sent until its end
	left int  // how many of these are unsettled
}

// outagesBegin has the outages measured.
func (r *run) outagesBegin() {
	r.recoveries = make([]recovery, len(r.Dependency.Outages))
	for i, o := range r.Dependency.Outages {
		v := &r.recoveries[i]
		v.Outage, v.Recovered, v.Cleared = o, -1, -1
		r.after(o.At, func() { v.Open = r.open() })
		r.after(o.At+o.For, func() {
			v.over, v.Backlog, v.sent = true, r.open(), len(r.messages)
			for _, one := range r.messages {
				if one.state == open {
					v.left++
				}
			}
			if v.left == 0 {
				v.Cleared = 0
			}
			if v.Backlog <= v.Open {
				v.Recovered = 0
			}
			r.outageOver(i)
		})
	}
}

// open is how many messages are in the queues.
func (r *run) open() int {
	visible, inFlight, delayed := r.counts()
	return visible + inFlight + delayed
}

// counts are those of all queues together.
func (r *run) counts() (visible, inFlight, delayed int) {
	visible, inFlight, delayed = r.queue.Counts()
	add := func(q *world.Queue) {
		v, i, d := q.Counts()
		visible, inFlight, delayed = visible+v, inFlight+i, delayed+d
	}
	if r.lane != nil {
		add(r.lane)
	}
	for _, one := range r.pool[min(len(r.pool), 1):] {
		add(one.queue)
	}
	return visible, inFlight, delayed
}

// progressed takes in that a message becomes settled.
func (r *run) progressed(one *message) {
	now := r.loop.Since()
	for i := range r.recoveries {
		v := &r.recoveries[i]
		if !v.over {
			continue
		}
		if v.Recovered < 0 && r.open() <= v.Open+1 { // the one is not yet deleted
			v.Recovered = now - v.At - v.For
		}
		if int(one.number) < v.sent {
			if v.left--; v.left == 0 {
				v.Cleared = now - v.At - v.For
			}
			r.clears(one, i)
		}
	}
}

// recovered completes the recoveries, given the messages that are left.
func (r *run) recovered(left map[*message]bool) {
	for i := range r.recoveries {
		v := &r.recoveries[i]
		if v.over {
			for _, one := range r.messages[:v.sent] {
				if one.state == open && left[one] {
					v.Unsettled++
				}
			}
		}
		r.result.Outages = append(r.result.Outages, v.Recovery)
	}
}
