package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/world"
)

// wire is the network between a node and SQS. Every request and every reply takes
// a time of its own, and what a consumer must never send is noticed here.
type wire struct {
	f      *fleet
	n      *node
	client reprise.Client
}

// hold is what a receipt handle stands for. Guarded by fleet.mu.
type hold struct {
	p       *part
	id      string        // of the message
	name    string        // the same in every run of a seed, which the handle is not
	arrived time.Time     // at its node
	nth     int           // receive of the message, by SQS's count; the highest that its node knows
	first   time.Time     // receive of the message
	until   time.Time     // when its lease ends, as far as SQS has said
	length  time.Duration // for which SQS has last confirmed to hide it
	unread  bool          // its node did not know the queue's retention when it asked to hide it: see node.knows
	talking string        // the request about it that is under way
	done    string        // the last that SQS has confirmed
	failed  int           // requests that have failed since a change of visibility was confirmed in time
	doubted bool          // one of them may have ended the lease
	late    bool          // its lease had ended when its delete reached SQS
	asked   []time.Time
}

// inTime says that h's lease lasts by the clock of its node too, which runs ahead by
// what the reply has travelled and by a margin: afterwards n may give it up.
func (h *hold) inTime(n *node) bool {
	return time.Until(h.until) > min(time.Second, h.length/10)+2*n.most
}

// onceMore says that n has the time to renew h's lease again after a failure: it looks at its leases every tenth of one.
func (h *hold) onceMore(n *node) bool {
	return time.Until(h.until) > min(time.Second, h.length/10)+2*n.most+h.length/10
}

// least is until when h's message, which is due then, must be hidden at least. SQS counts its twelve hours from the request to
// receive, which may be a long poll of 20 seconds; the minute covers that, and five seconds of the consumer's own.
func (h *hold) least(due time.Time) time.Time {
	if most := h.arrived.Add(12*time.Hour - time.Minute); due.After(most) {
		return most
	}
	return due
}

// failures is how many changes of visibility have failed since one was confirmed in
// time: one that is under way at the end of the lease will not be in time either.
func (h *hold) failures(n *node) int {
	if h.talking == "hide" && !h.inTime(n) {
		return h.failed + 1
	}
	return h.failed
}

// client is what nodes reach the server with.
func (f *fleet) client() reprise.Client {
	if f.through == directly {
		return f.queue.Direct()
	}
	backoff := awsretry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
		return time.Duration(attempt) * 150 * time.Millisecond, nil // the SDK's own is random
	})
	return f.queue.Client(func(o *sqs.Options) {
		o.Retryer = awsretry.NewStandard(func(o *awsretry.StandardOptions) { o.Backoff = backoff })
	})
}

// trip is how a call went.
type trip struct {
	reached, replied time.Time // when SQS got the request and sent the reply
	err              error
}

// carry makes a call over w. about tells apart what may be sent at one instant.
// Nothing can stop a reply that is on its way. got looks at it when it arrives.
func carry[In, Out any](w *wire, ctx context.Context, op, about string, in *In, opts []func(*sqs.Options), call func(context.Context, *In, ...func(*sqs.Options)) (*Out, error), got func(*Out, trip)) (*Out, error) {
	key := []any{w.n.number, op, about, time.Now().UnixNano()}
	w.travel(ctx, append(key, "there"))
	var t trip
	var out *Out
	t.reached = time.Now()
	out, t.err = call(ctx, in, opts...)
	t.replied = time.Now()
	w.travel(context.Background(), append(key, "back"))
	if got != nil {
		w.f.mu.Lock()
		defer w.f.mu.Unlock()
		got(out, t)
	}
	return out, t.err
}

// refused says that SQS has not carried a request out, and told so.
func refused(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorFault() == smithy.FaultClient
}

func (w *wire) travel(ctx context.Context, key []any) {
	timer := time.NewTimer(time.Duration(w.f.draw(key...) % uint64(w.n.most)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ReceiveMessage implements reprise.Client.
func (w *wire) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	about := strconv.Itoa(int(in.MaxNumberOfMessages))
	w.f.asks(w.n, about)
	return carry(w, ctx, "receive", about, in, opts, w.client.ReceiveMessage, func(out *sqs.ReceiveMessageOutput, t trip) {
		w.f.checkPause(w.n, t.err)
		if t.err != nil {
			return
		}
		for _, m := range out.Messages {
			w.f.redeliver(*m.MessageId, time.Duration(in.VisibilityTimeout)*time.Second)
			h := &hold{
				p:       w.f.parts[tokenOf(*m.Body)],
				id:      *m.MessageId,
				name:    *m.MessageId + m.Attributes["ApproximateReceiveCount"],
				arrived: time.Now(),
				nth:     number(m.Attributes["ApproximateReceiveCount"]),
				first:   time.UnixMilli(int64(number(m.Attributes["ApproximateFirstReceiveTimestamp"]))),
				until:   t.replied.Add(time.Duration(in.VisibilityTimeout) * time.Second),
				length:  time.Duration(in.VisibilityTimeout) * time.Second,
			}
			w.f.handles[*m.ReceiptHandle] = h
			before := w.n.newest[h.id]
			if before != nil && h.nth < before.nth && time.Now().Before(before.until) {
				continue // replies overtake each other
			}
			if before != nil {
				h.nth = max(h.nth, before.nth)
			}
			w.n.newest[h.id] = h
		}
	})
}

// asks notes that n asks for messages.
func (f *fleet) asks(n *node, most string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log("", n, "asks for %s", most)
	n.asked = time.Now()
}

// number is a number of SQS's, which are strings.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// redeliver makes a message visible again while its lease lasts, now and then. The
// caller holds f.mu.
func (f *fleet) redeliver(id string, lease time.Duration) {
	dice := f.draw("redeliver", id, time.Now().UnixNano())
	if f.mended || dice%100 >= f.twice {
		return
	}
	time.AfterFunc(time.Duration(dice/100%uint64(lease)), func() {
		_ = f.queue.Server().Release(f.queue.ARN(), id) // it may have gone
	})
}

// DeleteMessageBatch implements reprise.Client.
func (w *wire) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	handles := make([]*string, len(in.Entries))
	for i, e := range in.Entries {
		handles[i] = e.ReceiptHandle
	}
	holds := w.begin("delete", handles, func(h *hold) {
		h.late = time.Now().After(h.until)
		if !w.n.done[h.p.token] && !w.n.copied[h.p.token] {
			w.f.broken(world.DeletesWhatIsDone, h.p, "node %d deletes it", w.n.number)
		}
	})
	defer w.end(holds)
	return carry(w, ctx, "delete", holds[0].name, in, opts, w.client.DeleteMessageBatch, func(out *sqs.DeleteMessageBatchOutput, t trip) {
		for _, h := range holds {
			h.late = h.late || t.reached.After(h.until)
			if !h.inTime(w.n) {
				h.failed++ // the lease ended meanwhile, and no other request was possible
			}
		}
		if t.err == nil {
			out.Successful = out.Successful[w.forgotten(len(out.Successful), holds[0].name):]
		}
		for i, e := range in.Entries {
			switch h := holds[i]; {
			case t.err == nil && slices.ContainsFunc(out.Successful, func(s types.DeleteMessageBatchResultEntry) bool { return *s.Id == *e.Id }):
				h.done = "delete"
			case !h.inTime(w.n):
				h.failed++ // as a change of visibility does that fails at the end of the lease
			}
		}
	})
}

// ChangeMessageVisibilityBatch implements reprise.Client.
func (w *wire) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	handles := make([]*string, len(in.Entries))
	for i, e := range in.Entries {
		handles[i] = e.ReceiptHandle
	}
	holds := w.begin("hide", handles, func(h *hold) {
		h.unread = h.unread || !w.n.knows()
		if late := time.Since(h.until); late >= 0 {
			w.f.broken(world.LeavesOthersAlone, h.p, "node %d changes its visibility %v after the end of its lease", w.n.number, late)
		}
	})
	defer w.end(holds)
	return carry(w, ctx, "hide", holds[0].name, in, opts, w.client.ChangeMessageVisibilityBatch, func(out *sqs.ChangeMessageVisibilityBatchOutput, t trip) {
		if t.err == nil {
			out.Successful = out.Successful[w.forgotten(len(out.Successful), holds[0].name):]
		}
		for i, e := range in.Entries {
			h, until := holds[i], t.reached.Add(time.Duration(e.VisibilityTimeout)*time.Second)
			switch {
			case t.err == nil && slices.ContainsFunc(out.Successful, func(s types.ChangeMessageVisibilityBatchResultEntry) bool { return *s.Id == *e.Id }):
				if h.inTime(w.n) { // otherwise it may have been given up already
					h.failed, h.doubted = 0, false
				} else {
					h.failed++
				}
				h.until, h.length, h.done = until, time.Duration(e.VisibilityTimeout)*time.Second, "hide"
				continue
			case refused(t.err), t.err == nil && slices.ContainsFunc(out.Failed, func(s types.BatchResultErrorEntry) bool { return *s.Id == *e.Id }):
			case until.Before(h.until):
				h.until, h.doubted = until, true // for all that anybody can know
			}
			if h.failed++; !h.onceMore(w.n) {
				h.failed++ // no other can be in time
			}
		}
	})
}

// forgotten is how many of n confirmed entries the reply does not mention.
func (w *wire) forgotten(n int, about string) int {
	if dice := w.f.draw("forget", about, time.Now().UnixNano()); !w.f.forgets || w.f.mended || dice%8 > 0 {
		return 0
	}
	return min(n, 1)
}

// SendMessageBatch implements reprise.Client.
func (w *wire) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	if *in.QueueUrl == w.f.queue.URL() {
		w.f.checkCopies(w.n, in.Entries)
	}
	send := w.client.SendMessageBatch
	if slices.ContainsFunc(in.Entries, func(e types.SendMessageBatchRequestEntry) bool { return w.f.isCursed(*e.MessageBody) }) {
		send = func(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
			return nil, w.f.curse
		}
	}
	return carry(w, ctx, "send", *in.Entries[0].MessageBody, in, opts, send, func(out *sqs.SendMessageBatchOutput, t trip) {
		if t.err != nil {
			return
		}
		for _, sent := range out.Successful {
			for _, e := range in.Entries {
				if *e.Id == *sent.Id {
					w.n.copied[tokenOf(*e.MessageBody)] = true
				}
			}
		}
	})
}

// isCursed reports whether the message with the body is one whose copies are refused.
func (f *fleet) isCursed(body string) bool {
	return f.curse != nil && strings.Count(body, "x") == cursedLetters
}

// GetQueueAttributes implements reprise.Client.
func (w *wire) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, opts ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	out, err := carry(w, ctx, "attributes", aws.ToString(in.QueueUrl), in, opts, w.client.GetQueueAttributes, nil)
	if err == nil && aws.ToString(in.QueueUrl) == w.f.queue.URL() {
		w.f.mu.Lock()
		defer w.f.mu.Unlock()
		if w.n.informed.IsZero() {
			w.n.informed = time.Now()
		}
	}
	return out, err
}

// begin begins a request about some handles, which check looks at.
func (w *wire) begin(op string, handles []*string, check func(*hold)) []*hold {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	holds := make([]*hold, len(handles))
	for i, handle := range handles {
		h := w.f.handles[*handle]
		w.f.checkRequest(w.n, h)
		if h.talking != "" {
			w.f.broken(world.OneConversation, h.p, "node %d sends a request to %s it during one to %s it", w.n.number, op, h.talking)
		}
		h.talking = op
		w.f.log(h.p.token, w.n, "asks to %s it, as entry %d", op, i)
		check(h)
		holds[i] = h
	}
	return holds
}

// end ends the request that began with holds.
func (w *wire) end(holds []*hold) {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	for _, h := range holds {
		w.f.log(h.p.token, w.n, "has asked to %s it", h.talking)
		h.talking = ""
	}
}
