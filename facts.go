package reprise

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/plan"
)

// queueFacts is what the queue's attributes say. Part of the core.
type queueFacts struct {
	plan         plan.Queue
	arn          string
	pending      bool      // they could not be read yet, and will be tried again
	deadLetter   queueURL  // its url is empty if there is none
	refusedUntil time.Time // the dead-letter queue refuses copies, for a lasting reason
	largest      int       // bytes that a message may have; zero: not known
	// the queue itself refuses copies until then, for a lasting reason
	noCopiesUntil time.Time
}

// retention is how long the queue keeps a message; SQS's default, where that is not
// known.
func (f *queueFacts) retention() time.Duration {
	if f.plan.Retention == 0 {
		return plan.DefaultRetention
	}
	return f.plan.Retention
}

const (
	learnTimeout = 10 * time.Second
	learnEvery   = time.Minute
)

// learn reads the queue's attributes, and those of its dead-letter queue, once,
// and reports where they conflict with the policy. Without the permission it says
// so and goes on. It returns false if reading failed for a passing reason.
func (c *Consumer) learn(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	facts := queueFacts{plan: plan.Queue{FIFO: c.queue.fifo}}
	if c.cfg.DeadLetterURL != "" {
		facts.deadLetter, _ = parseQueueURL(c.cfg.DeadLetterURL) // New has checked it
	}
	attributes, err := c.attributes(ctx, c.queue.url, types.QueueAttributeNameAll)
	if err != nil {
		facts.pending = !denied(err)
		core := c.lock()
		core.facts = facts
		c.unlock()
		c.found(unreadable(err))
		return !facts.pending
	}
	facts.plan, err = plan.ReadQueue(attributes)
	if err != nil {
		c.complain("queue-attributes", "the queue's attributes are not all understood", "error", err)
	}
	facts.plan.FIFO = c.queue.fifo // SQS binds the type to the name
	facts.arn = facts.plan.ARN
	facts.largest, _ = strconv.Atoi(attributes["MaximumMessageSize"]) // zero: not known
	if facts.deadLetter.url == "" && facts.plan.DeadLetterARN != "" {
		facts.deadLetter, err = c.queue.sibling(facts.plan.DeadLetterARN)
		if err != nil {
			c.complain("redrive-policy", "the queue's RedrivePolicy is not understood", "error", err)
		}
	}
	var unseen error
	if facts.deadLetter.url != "" {
		// Only for a finding: whoever may send there need not be allowed to look.
		dead, err := c.attributes(ctx, facts.deadLetter.url, types.QueueAttributeNameAll)
		if err != nil {
			unseen = err
		} else if err := facts.plan.ReadDeadLetter(dead); err != nil {
			c.complain("queue-attributes", "the dead-letter queue's attributes are not all understood", "error", err)
		}
	}

	core := c.lock()
	core.facts = facts
	core.noteDenied("dead-letter-attributes", unseen)
	core.countInFlight(attributes, core.now)
	core.policy.MaxAttempts = plan.MaxAttempts(c.cfg.Retry, facts.plan)
	policy := core.policy // guarded: the plan asks the user's own code for its waits
	c.unlock()
	policy.MaxAttempts = c.cfg.Retry.MaxAttempts
	for _, f := range plan.Check(policy, facts.plan, c.planSettings()) {
		c.found(f)
	}
	c.checkChoice(&facts)
	return true
}

// learnLater has what could not be read tried again, until it can be.
func (c *core) learnLater() {
	c.alarms.After(c.now.Add(learnEvery), func(time.Time) {
		if !c.draining {
			c.want(effect{kind: effectLearn})
		}
	})
}

// learnAgain tries again to read what could not be read before.
func (c *Consumer) learnAgain() {
	learned := false
	defer func() { // even if the user's code has ended this goroutine
		if !learned {
			core := c.enter()
			core.learnLater()
			c.leave()
		}
	}()
	learned = c.learn(c.settleCtx)
}

const (
	codeUnreadable = "attributes-unreadable"
	codeNoQueue    = "queue-does-not-exist"
)

// unreadable is the finding that the queue's attributes cannot be read, for err.
func unreadable(err error) plan.Finding {
	if missing(err) {
		return plan.Finding{
			Severity: plan.Error,
			Code:     codeNoQueue,
			Problem:  "it does not exist: " + err.Error(),
			Remedy:   "create it, or correct the queue's URL, or the region, the account or the endpoint that the client calls.",
		}
	}
	f := plan.Finding{
		Severity: plan.Warning,
		Code:     codeUnreadable,
		Problem:  "its attributes cannot be read, so its redrive limit, retention and dead-letter queue are not known: " + err.Error(),
		Remedy:   "see why; they are read again every minute.",
	}
	if denied(err) {
		f.Remedy = "permit sqs:GetQueueAttributes on the queue."
	}
	return f
}

// found reports a finding.
func (c *Consumer) found(f plan.Finding) {
	log := c.log.Info
	if f.Severity >= plan.Warning {
		log = c.log.Warn
	}
	log("about the queue: "+f.Problem, "severity", f.Severity.String(), "code", f.Code, "remedy", f.Remedy)
	if observe := c.cfg.Observer.Finding; observe != nil {
		c.tell(func() { observe(c.runCtx, f) })
	}
}

// findLater reports a finding that comes up while consuming, the first of its code.
func (c *core) findLater(f plan.Finding) { c.findOnce(f.Code, f) }

// findOnce reports a finding, the first under a name.
func (c *core) findOnce(name string, f plan.Finding) {
	key := "finding " + name
	if _, said := c.said[key]; said {
		return
	}
	c.said[key] = c.now
	c.inOrder(func(shell *Consumer) { shell.found(f) })
}

// attributes reads the named attributes of a queue.
func (c *Consumer) attributes(ctx context.Context, url string, names ...types.QueueAttributeName) (attributes map[string]string, err error) {
	err = c.client.call(ctx, OpAttributes, 0, func() (int, error) {
		out, err := c.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl:       &url,
			AttributeNames: names,
		})
		if err != nil {
			return 0, err
		}
		attributes = out.Attributes
		c.observeEndpoint(out.ResultMetadata)
		return 0, nil
	})
	return attributes, err
}
