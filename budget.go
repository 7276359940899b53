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

	"github.com/reprise-sqs/reprise/internal/budget"
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
	budgetDenied = time.Hour // between two attempts where reading is not permitted
	// budgetWatch: of so much of the quota in this process's hands or backoff the
	// queue's count is of interest.
	budgetWatch = 100

	// fullPause is how long receiving pauses at a full quota.
	fullPause = 20 * time.Second

	budgetTimeout = 10 * time.Second
)

// countAttributes are what readInFlight reads.
var countAttributes = []types.QueueAttributeName{
	types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	types.QueueAttributeNameApproximateNumberOfMessages,
}

// watchInFlight has the queue's count read if it could matter: this process has a
// notable part of the quota, the last reading was near it, or a receive was refused for
// it. It is called when messages were hidden, and when a receive brought none.
func (c *core) watchInFlight(now time.Time) {
	b := &c.budget
	if c.cfg.InFlightQuota < 0 || c.draining || !b.Look(now) {
		return
	}
	notable := c.cfg.InFlightQuota / budgetWatch
	if !b.High(now) && !b.Refused(now) {
		if len(c.held)+c.memory.Len() <= notable {
			return
		}
		if len(c.held)+c.memory.InBackoff(now) <= notable { // which is not counted for each message
			b.LookAgain(now.Add(budget.Every / 6))
			return
		}
	}
	b.LookAgain(now.Add(budget.Every))
	c.want(effect{kind: effectCount})
}

// readInFlight reads how many messages are in flight.
func (c *Consumer) readInFlight() {
	ctx, cancel := context.WithTimeout(c.settleCtx, budgetTimeout)
	defer cancel()
	attributes, err := c.attributes(ctx, c.queue.url, countAttributes...)
	core := c.lock()
	defer c.unlock()
	switch {
	case err == nil:
		core.countInFlight(attributes, core.now)
	case denied(err):
		core.budget.LookAgain(core.now.Add(budgetDenied))
		core.findLater(plan.Finding{
			Severity: plan.Warning,
			Code:     plan.CodeInFlight,
			Problem:  "how many messages of the queue are in flight cannot be read, so that retries are hidden until SQS hands out no more: " + err.Error(),
			Remedy:   "permit sqs:GetQueueAttributes on the queue.",
		})
	}
}

// countInFlight takes in the queue's counts.
func (c *core) countInFlight(attributes map[string]string, now time.Time) {
	hidden, err := strconv.Atoi(attributes[string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)])
	if err != nil || c.cfg.InFlightQuota < 0 {
		return
	}
	visible, _ := strconv.Atoi(attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)]) // zero if not told
	b := &c.budget
	b.Read(budget.Reading{Hidden: hidden, Visible: visible, Quota: c.cfg.InFlightQuota, At: now})
	if !b.High(now) {
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

// overLimit says that a receive was refused since the queue's quota of messages in
// flight is used up.
func overLimit(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && strings.HasSuffix(api.ErrorCode(), "OverLimit")
}

// broughtNothing is called when a receive has come back empty, or with err. It says
// for how long to wait before the next: at a full quota it would be no better.
func (c *core) broughtNothing(err error) time.Duration {
	now := c.now
	if err != nil {
		if !overLimit(err) || c.cfg.InFlightQuota < 0 {
			return 0
		}
		c.budget.Refuse(now)
	}
	c.watchInFlight(now)
	if !c.budget.Full(now) {
		return 0
	}
	c.complainLater("in-flight", c.inFlightProblem(now))
	return fullPause
}

// inFlight is what Status says of the queue's messages in flight.
func (c *core) inFlight(now time.Time) InFlight {
	last := c.budget.Last()
	return InFlight{Queue: last.Hidden, Visible: last.Visible, AsOf: last.At, Quota: max(0, c.cfg.InFlightQuota), Full: c.budget.Full(now)}
}

// inFlightProblem is what health says while the quota is used up; empty if it is not.
func (c *core) inFlightProblem(now time.Time) string {
	b := &c.budget
	if !b.Full(now) {
		return ""
	}
	last := b.Last()
	count := "as many messages of the queue are in flight as SQS permits"
	if !last.At.IsZero() {
		count = fmt.Sprintf("%d messages of the queue were in flight at %s, of the %d that SQS permits, and %d wait", last.Hidden, last.At.UTC().Format(time.RFC3339), last.Quota, last.Visible)
	}
	return fmt.Sprintf("%s: it hands out no more, however many receives ask. Of them this process has %d in backoff and %d in its hands. Shorten the backoff, wake what waits if its cause is mended, permit sqs:SendMessage so that retries can be copies, or ask AWS for a higher quota and set Config.InFlightQuota", count, c.memory.InBackoff(now), len(c.held))
}
