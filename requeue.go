package reprise

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/digest"
	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Via says how a message that is to come again is given back to its queue.
type Via = plan.Via

const (
	// ViaAuto hides the message until it is due. Where that would lose it or what
	// is known of it, a copy with its history is sent and the original deleted: at
	// the last receive that the queue's RedrivePolicy permits, near the end of the
	// queue's retention, for a wait beyond SQS's 12 hours, for a message that is
	// released again, and for waits while the queue's quota of messages in flight is
	// nearly used up: delayed copies are not in flight. A wait of more than a year is
	// cut to a year. Copies need sqs:SendMessage on the queue. On FIFO queues, where a
	// copy would come out of turn, messages are only ever hidden.
	ViaAuto = plan.ViaAuto
	// ViaVisibility only hides. Waits beyond 12 hours are then kept by the process
	// that set them, and at its last permitted receive a message is dead-lettered.
	ViaVisibility = plan.ViaVisibility
	// ViaRequeue sends a copy for each retry, so that attempts are counted exactly
	// in the whole fleet, at one or two requests more for ten retries. It is
	// refused for FIFO queues.
	ViaRequeue = plan.ViaRequeue
)

// cause is why a message is requeued.
type cause uint8

const (
	byVisibility       cause = iota // it is not
	becauseAsked                    // Config.Via says so
	becauseAlone                    // it is, or was, to run alone
	becauseLastReceive              // the next receive would move it to the dead-letter queue
	becauseReleased                 // a receive that was no attempt must not be taken for one
	becauseRetention                // it would expire while hidden
	becauseInFlight                 // too many messages of the queue are hidden
	becauseTooLong                  // one receive cannot hide it so long, and others must know how long
)

const (
	maxMargin = 24 * time.Hour // see retentionMargin

	maxMessage  = 1 << 20 // bytes, SQS's limit
	historySize = len(HistoryAttribute) + len("String") + history.MaxSize

	codeRequeueRefused = "requeue-refused"
	codeUncopyable     = "message-not-copyable"
)

var errDigest = errors.New("its MD5 is not the one that SQS sent with it, so that a copy might not be what was sent")

// route completes a verdict that gives d back: by visibility, by requeue, or, at the
// last permitted receive and where no copy can be sent, not at all.
func (c *core) route(d *delivery, v verdict, now time.Time) verdict {
	if !v.comesAgain() {
		return v
	}
	if d.marked() && d.state.waits() && v.outcome == OutcomeRelease && v.reason != retry.ReasonUnavailable {
		// Given back without a run: the next to have it runs it alone. In an outage,
		// though, it would go round and round, and each receive would count against it.
		v.alone = true
	}
	v.requeue = c.via(d, v, now)
	if v.requeue != byVisibility && c.copyable(d, now) {
		return v
	}
	// One that is not hidden until it is due, but for so long as there is time to copy
	// it, is not lost by being hidden.
	if v.requeue == byVisibility && c.takesCopies() && c.expiresBefore(d, v.due) && c.copyable(d, now) {
		v.carried = true
		return v
	}
	v.requeue = byVisibility
	return c.withoutCopy(d, v, now)
}

// reconsider completes the verdict on d once more if d, which was to be hidden, has
// been received again, and that was its last permitted receive.
func (c *core) reconsider(d *delivery, now time.Time) {
	limit := c.facts.plan.MaxReceives
	if limit == 0 || d.receives < limit || d.receives == d.msg.Receives || d.verdict.requeue != byVisibility || !d.verdict.comesAgain() {
		return
	}
	d.verdict = c.route(d, d.verdict, now)
	if d.verdict.outcome == OutcomeDeadLetter {
		c.spend(d, now)
	}
}

// spend notes that d is given up.
func (c *core) spend(d *delivery, now time.Time) {
	known := c.memory.Note(d.msg.ID, now)
	known.Spent, known.Reason, known.Err = true, d.verdict.reason, d.verdict.err
}

// takesCopies says that messages may be requeued.
func (c *settings) takesCopies() bool { return !c.queue.fifo && c.cfg.Via != ViaVisibility }

// comesAgain says that the message goes back to its queue.
func (v *verdict) comesAgain() bool {
	return v.outcome == OutcomeRetry || v.outcome == OutcomeRelease || v.outcome == OutcomePark
}

// via decides whether v should be carried out by requeue, and why.
func (c *core) via(d *delivery, v verdict, now time.Time) cause {
	limit := c.facts.plan.MaxReceives
	parked := v.outcome == OutcomePark
	switch {
	case !c.takesCopies():
		return byVisibility
	case v.alone, d.marked() && !parked:
		return becauseAlone
	case limit > 0 && d.receives >= limit:
		return becauseLastReceive
	case v.outcome == OutcomeRetry && (c.cfg.Via == ViaRequeue || c.hasRetryLane()):
		return becauseAsked
	case v.outcome == OutcomeRelease && (d.receives > 1 || d.history != nil || v.reason == retry.ReasonUnavailable):
		// The first release of all is one receive more, worth at most one attempt.
		// Further ones would add up until the message seems exhausted, and an outage
		// makes many.
		return becauseReleased
	}
	if c.budget.Spills(v.due.Sub(now), now) {
		return becauseInFlight
	}
	seconds, short := retry.Visibility(now.Add(-elapsed(d.requested, now)), now, v.due)
	visible := now.Add(time.Duration(seconds) * time.Second)
	retention := c.facts.retention()
	switch sent := d.enqueued(); {
	case !sent.IsZero() && visible.After(c.clock.local(sent).Add(retention-retentionMargin(retention))):
		return becauseRetention
	case short && v.due.Sub(visible) > retry.AllowedShortfall(v.due.Sub(now)) && !d.knowsDue(v.due):
		return becauseTooLong
	}
	return byVisibility
}

// retentionMargin is how long before the end of its retention a message is no
// longer hidden: whoever receives it then must find the time to copy it.
func retentionMargin(retention time.Duration) time.Duration {
	return min(maxMargin, retention/4)
}

// knowsDue says that d carries its due time along, wherever it is received.
func (d *delivery) knowsDue(due time.Time) bool {
	return d.history != nil && !d.history.due.Before(due)
}

// copyable says whether a copy of d can be sent, as far as is known before it is tried,
// and complains if not.
func (c *core) copyable(d *delivery, now time.Time) bool {
	limit := maxMessage
	if c.facts.largest > 0 {
		limit = min(limit, c.facts.largest)
	}
	var problem, remedy string
	switch size := messageSize(d) + historySize; {
	case d.uncopyable, now.Before(c.facts.noCopiesUntil):
		return false // it was said why
	case len(d.msg.Attributes) >= maxAttributes:
		problem = fmt.Sprintf("it has %d message attributes, and the history needs one of the 10 that SQS permits", len(d.msg.Attributes))
		remedy = "send it with 9 attributes at most"
	case size > limit:
		problem = fmt.Sprintf("with its history it may take %d bytes, and the queue permits %d", size, limit)
		remedy = "raise the queue's MaximumMessageSize, or keep large payloads elsewhere"
	default:
		return true
	}
	c.cannotCopy(d, problem, remedy)
	return false
}

// cannotCopy notes that d cannot be copied, and says why.
func (c *core) cannotCopy(d *delivery, problem, remedy string) {
	d.uncopyable = true
	c.complainLater("uncopyable", "a message cannot be requeued; it is hidden instead, or given up at its last permitted receive",
		"message", d.msg, "problem", problem, "remedy", remedy)
	c.findLater(plan.Finding{
		Severity: plan.Warning,
		Code:     codeUncopyable,
		Problem:  fmt.Sprintf("message %s, and perhaps others, cannot be requeued: %s.", d.msg.ID, problem),
		Remedy:   remedy + ".",
	})
}

// requeue takes the next step: hide the original until it is due, as far as that goes,
// so that a crash from here on brings it back no earlier; send the copy; and when SQS
// has confirmed that, delete the original.
func (c *core) requeue(d *delivery, now time.Time) {
	switch {
	case d.copied:
		c.put(&c.deletes, d, now)
	case d.leaseState != leaseHidden && d.verdict.due.After(d.expires):
		c.put(&c.hides, d, now)
	default:
		c.put(&c.requeues, d, now)
	}
}

// sendRequeues sends up to ten copies to the queue itself, or to its retry lane.
func (c *Consumer) sendRequeues(batch []*delivery) [maxBatch]error {
	core := c.lock()
	now := core.now
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i, d := range batch {
		entries[i] = core.requeueOf(d, now)
		entries[i].Id = &positions[i]
	}
	c.unlock()

	var damaged [maxBatch]bool // worked out without the lock: a body may be large
	for i, d := range batch {
		if damaged[i] = !intact(d.raw); !damaged[i] {
			c.signHistory(&entries[i])
		}
	}
	sound := slices.DeleteFunc(entries, func(e types.SendMessageBatchRequestEntry) bool {
		at, _ := position(e.Id, maxBatch)
		return damaged[at]
	})
	var results [maxBatch]error
	if len(sound) > 0 {
		results = c.sendBatch(c.copyTo.url, sound)
	}
	for i := range batch {
		if damaged[i] {
			results[i] = errDigest
		}
	}
	return results
}

// requeueOf is the copy that takes d's place in its queue.
func (c *core) requeueOf(d *delivery, now time.Time) types.SendMessageBatchRequestEntry {
	entry := d.resend()
	if entry.MessageAttributes == nil {
		entry.MessageAttributes = make(map[string]types.MessageAttributeValue, 1)
	}
	entry.MessageAttributes[HistoryAttribute] = c.historyFor(d, now)
	entry.DelaySeconds = c.delayFor(d.verdict, now)
	return entry
}

// delayFor is the delay in seconds of the copy that v sends: until it is due, where SQS
// delays so long. A copy that must wait longer is delayed by a second, so that a consumer
// receives it and hides it: only hidden messages can be woken. Two kinds get the longest
// delay instead: those whose wait is just over twelve hours, so that one hiding covers the
// rest, and those sent during a stop, since this consumer might receive them itself.
// The delay is at least a second: the SDK leaves a zero out, and the queue's own would
// apply. Short delays are rounded down: whoever receives the copy holds it for the rest
// of its wait.
func (c *core) delayFor(v verdict, now time.Time) int32 {
	wait := max(v.due.Sub(now), time.Second)
	parked := (wait > plan.MaxDelay || v.unavailable) && v.requeue != becauseInFlight
	justMisses := wait > retry.MaxVisibility-time.Minute && wait < retry.MaxVisibility+plan.MaxDelay
	if parked && !justMisses && !c.draining {
		return 1
	}
	if wait < exactDelay {
		return int32(wait / time.Second)
	}
	return int32((min(wait, plan.MaxDelay) + time.Second - 1) / time.Second)
}

// exactDelay is the wait up to which the seconds that SQS counts in would show in
// the spread of the jitter.
const exactDelay = time.Minute

// resend is everything that d's sender sent, to send again.
func (d *delivery) resend() types.SendMessageBatchRequestEntry {
	entry := types.SendMessageBatchRequestEntry{
		MessageBody:       d.raw.Body,
		MessageAttributes: maps.Clone(withoutHistory(d.raw.MessageAttributes)),
	}
	if trace := d.raw.Attributes["AWSTraceHeader"]; trace != "" && !d.bare {
		entry.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"), StringValue: &trace},
		}
	}
	if d.msg.GroupID != "" {
		entry.MessageGroupId = &d.msg.GroupID
	}
	return entry
}

// intact says that raw is what SQS computed its digests of. What has no digest is
// not known to be.
func intact(raw *types.Message) bool {
	body := md5.Sum([]byte(deref(raw.Body)))
	if hex.EncodeToString(body[:]) != deref(raw.MD5OfBody) {
		return false
	}
	if len(raw.MessageAttributes) == 0 {
		return deref(raw.MD5OfMessageAttributes) == ""
	}
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(raw.MessageAttributes)) {
		a := raw.MessageAttributes[name]
		if digest.IsBinary(deref(a.DataType)) {
			text = digest.AppendBinary(text, name, deref(a.DataType), a.BinaryValue)
		} else {
			text = digest.AppendString(text, name, deref(a.DataType), deref(a.StringValue))
		}
	}
	attributes := md5.Sum(text)
	return hex.EncodeToString(attributes[:]) == deref(raw.MD5OfMessageAttributes)
}

// requeueRefused decides what to do about a copy that the queue did not take.
func (c *core) requeueRefused(d *delivery, err error, ours bool, now time.Time) {
	switch {
	case errors.Is(err, errDigest):
		c.cannotCopy(d, err.Error(), "see that handlers do not change the message's attributes, and that nothing between here and SQS does")
		c.fallBack(d, now)
	case !ours && unacceptable(err) && !d.apart:
		d.apart = true // another of its batch may be meant
		c.settle(d, now)
	case ours, unacceptable(err), d.refusedLong(now) && (d.othersTaken() || c.stuck > maxStuck):
		if !d.bare && d.msg.TraceHeader != "" {
			d.bare, d.apart = true, true
			c.settle(d, now)
			return
		}
		c.cannotCopy(d, err.Error(), "see why the queue does not take what it gave out")
		c.fallBack(d, now)
	case lasting(err):
		c.facts.noCopiesUntil = now.Add(refusedFor)
		problem := "the queue takes no copies of its own messages: " + err.Error()
		if c.hasRetryLane() {
			problem = "the retry lane takes no messages: " + err.Error()
		}
		c.health.degrade(problem)
		c.complainLater("requeue", problem, "remedy", "permit sqs:SendMessage on the queue")
		c.findLater(plan.Finding{
			Severity: plan.Error,
			Code:     codeRequeueRefused,
			Problem:  problem + ". Messages are given up at their last permitted receive, and waits beyond 12 hours are forgotten by a restart.",
			Remedy:   "permit sqs:SendMessage on the queue, or set Config.Via to ViaVisibility.",
		})
		c.fallBack(d, now)
	case passed(d.expires, now):
		c.lose(d, err)
	default:
		c.complainLater("requeue", "sending a copy to the queue failed; trying again while the original is hidden", "error", err)
		d.apart = d.refused.many >= apartFrom
		c.settleLater(d, now)
	}
}

// fallBack gives d back without a copy or, at its last permitted receive, gives it up.
func (c *core) fallBack(d *delivery, now time.Time) {
	if d.verdict.alone && !c.draining && !passed(d.expires, now) {
		c.move(d, stateWaiting)
		c.isolate(d, now)
		return
	}
	d.verdict.requeue, d.verdict.alone = byVisibility, false
	d.verdict = c.withoutCopy(d, d.verdict, now)
	switch {
	case d.verdict.outcome == OutcomeDeadLetter:
		c.spend(d, now)
		c.settle(d, now)
	case d.leaseState == leaseHidden:
		c.confirm(&c.hides, d, now) // which was the first step
	default:
		c.settle(d, now)
	}
}
