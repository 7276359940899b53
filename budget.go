package reprise

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/plan"
)

// InFlight is how much of a queue SQS counts as in flight: received or hidden, by
// whomever, and not yet deleted. Beyond the quota it hands out no more, and mostly
// without an error: the queue just seems empty.
type InFlight struct {
	// Queue is how many messages of the whole queue were in flight, Visible how many
	// waited to be received, both as SQS counts them: approximately, about a minute
	// before AsOf.
	Queue, Visible int
	// AsOf is when they were read: zero if they never were. After the start they are
	// read only where the quota could matter, at most once a minute.
	AsOf time.Time
	// Quota is how many may be in flight: Config.InFlightQuota.
	Quota int
	// Full says that receives bring nothing since the quota is used up.
	Full bool
}

const (
	// budgetEvery is how often the queue's count is read at most, budgetStale how
	// long one reading counts.
	budgetEvery  = time.Minute
	budgetStale  = 5 * time.Minute
	budgetDenied = time.Hour // between two attempts where reading is not permitted
	// budgetAhead is how far a reading is projected: SQS's count is about a minute
	// old, and so is ours.
	budgetAhead = 2 * time.Minute
	rateDecay   = 0.9 // from one reading to the next
	// budgetWatch: of so much of the quota in this process's hands or backoff the
	// queue's count is of interest.
	budgetWatch = 100

	// fullPause is how long receiving pauses at a full quota.
	fullPause = 20 * time.Second

	budgetTimeout = 10 * time.Second
)

// budget is what is known of the queue's messages in flight. Guarded by
// Consumer.mu.
type budget struct {
	last      InFlight
	rate      float64   // by which the count grows, per second
	spilled   int       // copies sent to relieve it since the last reading
	lookAt    time.Time // not to be read again before
	refusedAt time.Time // a receive was refused for the quota
}

// countAttributes are what readInFlight reads.
var countAttributes = []types.QueueAttributeName{
	types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	types.QueueAttributeNameApproximateNumberOfMessages,
}

// watchInFlight has the queue's count read if it could matter: this process has a
// notable part of the quota, the last reading was near it, or a receive was
// refused for it. It is called when messages were hidden, and when a receive
// brought none. The caller holds c.mu.
func (c *Consumer) watchInFlight(now time.Time) {
	b := &c.budget
	if c.cfg.InFlightQuota < 0 || c.draining || now.Before(b.lookAt) {
		return
	}
	notable := c.cfg.InFlightQuota / budgetWatch
	if b.pressure(now) < spillPressure && !b.refused(now) {
		if len(c.held)+c.memory.Len() <= notable {
			return
		}
		if len(c.held)+c.memory.InBackoff(now) <= notable { // which is not counted for each message
			b.lookAt = now.Add(budgetEvery / 6)
			return
		}
	}
	b.lookAt = now.Add(budgetEvery)
	c.start("reader of the queue's counts", c.readInFlight)
}

// readInFlight reads how many messages are in flight.
func (c *Consumer) readInFlight() {
	ctx, cancel := context.WithTimeout(c.settleCtx, budgetTimeout)
	defer cancel()
	attributes, err := c.attributes(ctx, c.queue.url, countAttributes...)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.countInFlight(attributes, time.Now())
	case denied(err):
		c.budget.lookAt = time.Now().Add(budgetDenied)
		c.findLater(plan.Finding{
			Severity: plan.Warning,
			Code:     plan.CodeInFlight,
			Problem:  "how many messages of the queue are in flight cannot be read, so that retries are hidden until SQS hands out no more: " + err.Error(),
			Remedy:   "permit sqs:GetQueueAttributes on the queue.",
		})
	}
}

// countInFlight takes in the queue's counts. The caller holds c.mu.
func (c *Consumer) countInFlight(attributes map[string]string, now time.Time) {
	hidden, err := strconv.Atoi(attributes[string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)])
	if err != nil || c.cfg.InFlightQuota < 0 {
		return
	}
	visible, _ := strconv.Atoi(attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)]) // zero if not told
	b := &c.budget
	if since := now.Sub(b.last.AsOf); !b.last.AsOf.IsZero() && since > 0 {
		// As it would be without our copies; not forgotten at once, since other
		// consumers' copies, which we do not see, may be why it has stopped growing.
		grown := float64(hidden - b.last.Queue + b.spilled)
		if since > budgetStale {
			b.rate = 0
		}
		b.rate = max(grown/since.Seconds(), b.rate*rateDecay, 0)
	}
	b.spilled = 0
	b.last = InFlight{Queue: hidden, Visible: visible, AsOf: now, Quota: c.cfg.InFlightQuota}
	b.lookAt = now.Add(budgetEvery)
	if b.pressure(now) < spillPressure {
		return
	}
	f := plan.Finding{
		Severity: plan.Warning,
		Code:     plan.CodeInFlight,
		Problem:  fmt.Sprintf("%d messages of the queue are in flight, of the %d that SQS permits; ", hidden, c.cfg.InFlightQuota),
		Remedy:   "shorten the backoff, or ask AWS for a higher quota and set Config.InFlightQuota.",
	}
	switch {
	case c.queue.fifo:
		f.Problem += "on a FIFO queue no copies can relieve it, so that groups are not held, and of a failed group only the head is hidden."
	case c.cfg.Via == ViaVisibility:
		f.Problem += "Config.Via forbids to relieve it by copies."
		f.Remedy = "set Config.Via to ViaAuto; or " + f.Remedy
	default:
		f.Problem += "retries are sent as delayed copies, which are not in flight, the longest waits first."
	}
	c.findLater(f)
}

// pressure is the part of the quota that will be used soon, as far as is known.
func (b *budget) pressure(now time.Time) float64 {
	if b.last.AsOf.IsZero() || b.last.Quota <= 0 || now.Sub(b.last.AsOf) > budgetStale {
		return 0
	}
	soon := float64(b.last.Queue) + b.rate*budgetAhead.Seconds()
	return soon / float64(b.last.Quota)
}

// From these parts of the quota on, waits of at least so long are not spent in
// flight: the longest first, which relieve it most for their calls.
const (
	spillPressure = 0.8

	mostPressure = 0.9
	fullPressure = 0.95
	shortSpill   = time.Minute
	longSpill    = 10 * time.Minute
	anySpill     = 2 * time.Second
)

// spills says that a wait is to be spent as a delayed copy rather than in flight.
func (b *budget) spills(wait time.Duration, now time.Time) bool {
	switch pressure := b.pressure(now); {
	case pressure >= fullPressure:
		return wait >= anySpill
	case pressure >= mostPressure:
		return wait >= shortSpill
	case pressure >= spillPressure:
		return wait >= longSpill
	}
	return false
}

// full says that the quota is used up, as far as is known.
func (b *budget) full(now time.Time) bool {
	if b.refused(now) {
		return true
	}
	fresh := !b.last.AsOf.IsZero() && now.Sub(b.last.AsOf) <= budgetStale
	return fresh && b.last.Quota > 0 && b.last.Visible > 0 && float64(b.last.Queue) >= fullPressure*float64(b.last.Quota)
}

// refused says that a receive was refused for the quota not long ago.
func (b *budget) refused(now time.Time) bool {
	return !b.refusedAt.IsZero() && now.Sub(b.refusedAt) <= 2*budgetEvery
}

// overLimit says that a receive was refused since the queue's quota of messages in
// flight is used up.
func overLimit(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && strings.HasSuffix(api.ErrorCode(), "OverLimit")
}

// broughtNothing is called when a receive has come back empty, or with err. It says
// for how long to wait before the next: at a full quota it would be no better.
func (c *Consumer) broughtNothing(err error) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if err != nil {
		if !overLimit(err) || c.cfg.InFlightQuota < 0 {
			return 0
		}
		c.budget.refusedAt = now
	}
	c.watchInFlight(now)
	if !c.budget.full(now) {
		return 0
	}
	c.complainLater("in-flight", c.inFlightProblem(now))
	return fullPause
}

// inFlight is what Status says of the queue's messages in flight. The caller holds
// c.mu.
func (c *Consumer) inFlight(now time.Time) InFlight {
	f := c.budget.last
	f.Quota = max(0, c.cfg.InFlightQuota)
	f.Full = c.budget.full(now)
	return f
}

// inFlightProblem is what health says while the quota is used up; empty if it is
// not. The caller holds c.mu.
func (c *Consumer) inFlightProblem(now time.Time) string {
	b := &c.budget
	if !b.full(now) {
		return ""
	}
	count := "as many messages of the queue are in flight as SQS permits"
	if !b.last.AsOf.IsZero() {
		count = fmt.Sprintf("%d messages of the queue were in flight at %s, of the %d that SQS permits, and %d wait", b.last.Queue, b.last.AsOf.UTC().Format(time.RFC3339), b.last.Quota, b.last.Visible)
	}
	return fmt.Sprintf("%s: it hands out no more, however many receives ask. Of them this process has %d in backoff and %d in its hands. Shorten the backoff, wake what waits if its cause is mended, permit sqs:SendMessage so that retries can be copies, or ask AWS for a higher quota and set Config.InFlightQuota", count, c.memory.InBackoff(now), len(c.held))
}
