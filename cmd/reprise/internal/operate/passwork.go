package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/interrupt"
)

// passRun is one pass. Several workers receive, visit and delete a batch each. mu guards what changes; no request
// is made, and no visit runs, while it is held.
type passRun struct {
	Pass
	visit func([]types.Message, time.Time) ([]Verdict, error)
	stop  <-chan struct{}
	began time.Time

	mu      sync.Mutex
	freed   *sync.Cond // of mu: a worker has ended its batch
	outcome Outcome
	start   time.Time // SQS's, rounded up; zero: nothing was received yet

	ledger   ledger              // of all messages; the maps below are by message id, too
	held     map[string]hold     // messages that are to be given back
	visiting map[string][]string // receipt handles of messages under visit; more than one: it was received again
	again    int                 // messages that were held anew since the last new one

	workers int   // that have not ended
	asked   int   // messages that the receives under way may bring
	taken   int   // messages that count towards Most
	ended   bool  // no worker goes on
	emptied bool  // the queue seems to be empty
	problem error // the first that ended a worker
}

// hold is a message that is hidden until the end of the pass, or of its lease.
type hold struct {
	handle string
	until  time.Time
}

// work handles one batch after another. A worker ends when its poll is empty and other workers are
// left; the last worker ends after Polls empty polls in a row.
func (r *passRun) work(ctx context.Context) {
	empty := 0
	for room := r.reserve(); room > 0; room = r.reserve() {
		found, err := r.batch(ctx, room)
		if empty++; found {
			empty = 0
		}
		if r.ends(err, empty) {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers--
	r.freed.Broadcast()
}

// ends notes how a worker's batch has ended, and reports whether that ends the worker.
func (r *passRun) ends(err error, empty int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, ErrEnough):
		r.ended = true
	case err != nil:
		r.problem = cmp.Or(r.problem, err)
		r.ended = true
	case empty == 0:
	case r.workers > 1:
		return true
	case empty >= r.Polls:
		r.emptied = true
		return true
	}
	return r.ended
}

// reserve returns how many messages to receive next; 0: none, because the pass has ended, or as many as it may
// take were taken.
func (r *passRun) reserve() int {
	if r.Before != nil {
		r.Before()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.ended {
		if why := r.mustEnd(); why != "" {
			r.outcome.Partial, r.ended = why, true
			break
		}
		room := r.Batch
		if r.Most > 0 {
			room = min(room, r.Most-r.taken-r.asked)
		}
		switch {
		case r.Most > 0 && r.taken >= r.Most:
			return 0
		case room > 0:
			r.asked += room
			return room
		}
		r.freed.Wait() // for receives that may bring fewer than they ask for
	}
	return 0
}

// mustEnd is why the pass has to end before it has seen all messages; empty: it can go on. The caller holds the lock.
func (r *passRun) mustEnd() string {
	switch {
	case r.Most > 0 && r.taken >= r.Most:
		return ""
	case interrupt.Requested(r.stop):
		return Stopped
	case len(r.held) >= maxHeld:
		return fmt.Sprintf("looked at %d messages: more in flight would use up the queue's quota; move some of them to another queue, and run it again for the rest", r.outcome.Looked)
	case !r.LongerThanLease && time.Since(r.began) > r.Lease/2:
		return fmt.Sprintf("looked at %d messages in %v: those seen first would soon be visible again", r.outcome.Looked, r.Lease/2)
	}
	return ""
}

// batch receives messages for which room was reserved, has them visited, and deletes what is to be deleted. found
// reports that the pass has to go on.
func (r *passRun) batch(ctx context.Context, room int) (found bool, err error) {
	until := time.Now().Add(r.Lease) // at the earliest, for what comes
	out, err := r.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &r.QueueURL, MaxNumberOfMessages: int32(room), WaitTimeSeconds: pollSeconds, VisibilityTimeout: int32(r.Lease / time.Second),
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		r.settle(room, nil, nil, until)
		return false, cmp.Or(context.Cause(ctx), err)
	}
	now, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !ok || now.IsZero() {
		now = time.Now()
	}
	fresh, undeleted, found := r.sort(out.Messages, now)
	r.delete(ctx, undeleted)
	var verdicts []Verdict
	if len(fresh) > 0 {
		verdicts, err = r.visit(fresh, now)
	}
	r.delete(ctx, r.settle(room, fresh, verdicts, until))
	return found, cmp.Or(err, context.Cause(ctx))
}

// sort returns the messages that are new, and those that were to be deleted before. Others are held anew, or under
// visit. found reports that the queue may have more that was there at the start.
func (r *passRun) sort(messages []types.Message, now time.Time) (fresh []types.Message, undeleted []doomed, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.start.IsZero() {
		r.start = now.Add(dateUnit)
	}
	local := time.Now()
	for i := range messages {
		m := &messages[i]
		id, handle := aws.ToString(m.MessageId), aws.ToString(m.ReceiptHandle)
		if before, known := r.held[id]; known {
			if local.After(before.until) { // not for a message that SQS has delivered twice
				r.again++
				found = found || r.again <= len(r.held)
			}
			r.held[id] = hold{handle, local.Add(r.Lease)}
			continue
		}
		switch {
		case r.ledger.has(id, done): // its delete was lost
			undeleted, found = append(undeleted, doomed{id, handle}), true
		case r.ledger.has(id, seen): // a worker is visiting it
			r.visiting[id] = append(r.visiting[id], handle)
		default:
			r.ledger.set(id, seen)
			r.visiting[id] = []string{handle}
			fresh = append(fresh, *m)
			r.again = 0
			r.outcome.Looked++
			found = found || !milliseconds(m.Attributes["SentTimestamp"]).After(r.start)
		}
	}
	return fresh, undeleted, found
}

// settle ends the visit of messages, which are leased until then, and gives back the room that was reserved for them. It
// returns those that are to be deleted.
func (r *passRun) settle(room int, messages []types.Message, verdicts []Verdict, until time.Time) (gone []doomed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range messages {
		id, verdict := aws.ToString(messages[i].MessageId), Keep
		if i < len(verdicts) {
			verdict = verdicts[i]
		}
		if verdict != Skip {
			r.taken++
		}
		handles := r.visiting[id]
		delete(r.visiting, id)
		if verdict != Delete {
			r.held[id] = hold{handles[len(handles)-1], until}
			continue
		}
		r.ledger.set(id, done)
		for _, handle := range slices.Backward(handles) { // SQS deletes by the newest
			gone = append(gone, doomed{id, handle})
		}
	}
	r.asked -= room
	r.freed.Broadcast()
	return gone
}
