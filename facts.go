package reprise

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	learnTimeout = 10 * time.Second
)

// learn reads the attributes of the queue and of its dead-letter queue once, and reports
// conflicts with the policy. If the permission is missing, it reports that. It returns false
// if reading failed for a reason that may pass.
func (c *Consumer) learn(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	facts := consumer.Facts{Plan: plan.Queue{FIFO: c.queue.fifo}}
	var deadLetter queueURL
	if c.cfg.DeadLetterURL != "" {
		deadLetter, _ = parseQueueURL(c.cfg.DeadLetterURL) // New has checked it
	}
	attributes, err := c.attributes(ctx, c.queue.url, types.QueueAttributeNameAll)
	if err != nil {
		facts.Pending = !denied(err)
		facts.DeadLetter = deadLetter.plain()
		c.look(func(m *consumer.Machine) {
			c.deadLetter = deadLetter
			m.Unlearned(facts)
		})
		c.found(unreadable(err))
		return !facts.Pending
	}
	facts.Plan, err = plan.ReadQueue(attributes)
	if err != nil {
		c.complain("queue-attributes", "some of the queue's attributes cannot be read", "error", err)
	}
	facts.Plan.FIFO = c.queue.fifo // SQS binds the type to the name
	facts.ARN = facts.Plan.ARN
	facts.Largest, _ = strconv.Atoi(attributes["MaximumMessageSize"]) // zero: not known
	if deadLetter.url == "" && facts.Plan.DeadLetterARN != "" {
		deadLetter, err = c.queue.sibling(facts.Plan.DeadLetterARN)
		if err != nil {
			c.complain("redrive-policy", "the queue's RedrivePolicy cannot be read", "error", err)
		}
	}
	var unseen error
	if deadLetter.url != "" {
		// Only for findings: the consumer may have the permission to send there, and not to
		// read the attributes.
		dead, err := c.attributes(ctx, deadLetter.url, types.QueueAttributeNameAll)
		if err != nil {
			unseen = err
		} else if err := facts.Plan.ReadDeadLetter(dead); err != nil {
			c.complain("queue-attributes", "some of the dead-letter queue's attributes cannot be read", "error", err)
		}
	}

	facts.DeadLetter = deadLetter.plain()
	var policy retry.Policy
	c.look(func(m *consumer.Machine) {
		c.deadLetter = deadLetter
		policy = m.Learned(facts) // guarded: the plan calls the user's backoff
		if unseen != nil {
			m.NoteDenied("dead-letter-attributes", failureOf(unseen))
		}
		counted(m, attributes)
	})
	if c.cfg.Observer.Finding != nil || c.log.Enabled(ctx, slog.LevelWarn) { // else nobody hears of findings
		policy.MaxAttempts = c.cfg.Retry.MaxAttempts
		for _, f := range plan.Check(policy, facts.Plan, c.planSettings()) {
			c.found(f)
		}
		c.checkChoice(deadLetter)
	}
	return true
}

// learnAgain tries again to read the queue's attributes.
func (c *Consumer) learnAgain() {
	learned := false
	defer func() { // even if the user's code has ended this goroutine
		if !learned {
			c.enter(func(m *consumer.Machine) { m.LearnLater() })
		}
	}()
	learned = c.learn(c.settleCtx)
}

const (
	codeUnreadable = "attributes-unreadable"
	codeNoQueue    = "queue-does-not-exist"
)

// unreadable returns the finding that the queue's attributes cannot be read because of err.
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
		Remedy:   "find the cause; the attributes are read again every minute.",
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

// checkChoice reports a Config.FIFO that the queue does not permit. The caller does
// not hold c.mu.
func (c *Consumer) checkChoice(deadLetter queueURL) {
	if !c.queue.fifo || c.cfg.FIFO != FIFOSkip || deadLetter.url != "" {
		return
	}
	c.found(plan.Finding{
		Severity: plan.Error,
		Code:     codeSkipWithoutDeadLetter,
		Problem:  "Config.FIFO is FIFOSkip, but there is no dead-letter queue for the skipped messages: failed messages are retried, and their groups wait.",
		Remedy:   "give the queue a RedrivePolicy, or set Config.DeadLetterURL.",
	})
}
