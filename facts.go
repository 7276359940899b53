package reprise

import (
	"context"
	"fmt"
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

	codeUnreadable   = "attributes-unreadable"
	codeNoQueue      = "queue-does-not-exist"
	codeNoDeadLetter = "dead-letter-queue-missing"
)

// lastRead is what the last reading of the queue's attributes has shown. Only the goroutine that reads
// them has access: there is one at a time.
type lastRead struct {
	known bool // a reading has succeeded
	plan  plan.Queue
	dead  queueURL
	found map[plan.Finding]bool // told, and still so
	fails bool                  // the last reading failed
}

// learn reads the attributes of the queue and of its dead-letter queue, and reports conflicts with
// the policy that it has not reported before. If the permission is missing, it reports that.
func (c *Consumer) learn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	var deadLetter queueURL
	if c.cfg.DeadLetterURL != "" {
		deadLetter, _ = parseQueueURL(c.cfg.DeadLetterURL) // New has checked it
	}
	attributes, err := c.attributes(ctx, c.queue.url, types.QueueAttributeNameAll)
	if err != nil {
		c.unlearned(err, deadLetter)
		return
	}
	var facts consumer.Facts
	facts.Plan, err = plan.ReadQueue(attributes)
	if err != nil {
		c.complain("queue-attributes", "some of the queue's attributes cannot be read", "error", err)
	}
	facts.Plan.FIFO = c.queue.fifo // SQS binds the type to the name
	facts.ARN = facts.Plan.ARN
	facts.Largest, _ = strconv.Atoi(attributes["MaximumMessageSize"]) // zero: not known
	if deadLetter.url == "" && facts.Plan.DeadLetterARN == "" && c.retryLaneOf != nil {
		facts.Plan.DeadLetterARN, facts.Partial = c.deadLettersOfItsQueue(ctx)
	}
	if deadLetter.url == "" && facts.Plan.DeadLetterARN != "" {
		deadLetter, err = c.queue.sibling(facts.Plan.DeadLetterARN)
		if err != nil {
			c.complain("redrive-policy", "the queue's RedrivePolicy cannot be read", "error", err)
		}
	}
	unseen := c.readDeadLetter(ctx, &facts, deadLetter)

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

	last := c.lastRead
	c.lastRead = lastRead{known: true, plan: facts.Plan, dead: deadLetter}
	if last.fails {
		c.log.Info("the queue's attributes can be read again")
	}
	if last.known {
		c.logChanges(&last)
	}
	if c.cfg.Observer.Finding == nil && !c.log.Enabled(ctx, slog.LevelWarn) {
		return // nobody hears of findings
	}
	policy.MaxAttempts = c.cfg.Retry.MaxAttempts
	findings := append(plan.Check(policy, facts.Plan, c.planSettings()), c.checkChoice(deadLetter)...)
	if missing(unseen) {
		findings = append(findings, plan.Finding{
			Severity: plan.Error,
			Code:     codeNoDeadLetter,
			Problem:  "its dead-letter queue " + deadLetter.url + " does not exist.",
			Remedy:   "create it, or correct deadLetterTargetArn in the queue's RedrivePolicy, or Config.DeadLetterURL.",
		})
	}
	for _, f := range findings {
		if f.Code == plan.CodeDeadLetterQueueUnknown && facts.Partial {
			continue // it is read again soon
		}
		c.findAnew(f, &last)
	}
}

// deadLettersOfItsQueue returns the target of the RedrivePolicy of the queue whose retry lane c's is, unless that
// is the lane itself. partial reports that it could not be read for a reason that may pass: then it is the last known.
func (c *Consumer) deadLettersOfItsQueue(ctx context.Context) (arn string, partial bool) {
	attributes, err := c.attributes(ctx, c.retryLaneOf.queue.url, types.QueueAttributeNameRedrivePolicy)
	if err != nil {
		return c.lastRead.plan.DeadLetterARN, !lasting(err)
	}
	queue, _ := plan.ReadQueue(attributes) // the consumer of that queue complains of what cannot be read
	if target, err := c.queue.sibling(queue.DeadLetterARN); err != nil || target == c.queue {
		return "", false
	}
	return queue.DeadLetterARN, false
}

// readDeadLetter reads the attributes of the dead-letter queue. They serve findings only: the
// consumer may have the permission to send there, and not to read the attributes. If they cannot be
// read for a reason that may pass, those that were read before stay.
func (c *Consumer) readDeadLetter(ctx context.Context, facts *consumer.Facts, deadLetter queueURL) error {
	if deadLetter.url == "" {
		return nil
	}
	attributes, err := c.attributes(ctx, deadLetter.url, types.QueueAttributeNameAll)
	if err != nil {
		facts.Partial = facts.Partial || !lasting(err)
		if last := &c.lastRead; facts.Partial && last.dead == deadLetter {
			facts.Plan.DeadLetterRetention, facts.Plan.DeadLetterKMSKey = last.plan.DeadLetterRetention, last.plan.DeadLetterKMSKey
		}
		return err
	}
	if err := facts.Plan.ReadDeadLetter(attributes); err != nil {
		c.complain("queue-attributes", "some of the dead-letter queue's attributes cannot be read", "error", err)
	}
	return nil
}

// unlearned takes in that the queue's attributes could not be read because of err. What was read before
// stays.
func (c *Consumer) unlearned(err error, deadLetter queueURL) {
	c.look(func(m *consumer.Machine) {
		if !c.lastRead.known {
			c.deadLetter = deadLetter
		}
		m.Unlearned(consumer.Facts{Plan: plan.Queue{FIFO: c.queue.fifo}, Pending: !denied(err), DeadLetter: deadLetter.plain()})
	})
	if !c.lastRead.fails {
		c.found(unreadable(err, c.lastRead.known))
	}
	c.lastRead.fails = true
}

// learnAgain reads the queue's attributes again.
func (c *Consumer) learnAgain() {
	defer func() { // even if the user's code has ended this goroutine
		c.enter(func(m *consumer.Machine) { m.LearnLater() })
	}()
	c.learn(c.settleCtx)
}

// logChanges logs which of the attributes that a consumer acts on have changed.
func (c *Consumer) logChanges(last *lastRead) {
	old, now := &last.plan, &c.lastRead.plan
	var changes []any
	for _, a := range []struct {
		name     string
		old, now any
	}{
		{"dead-letter queue", last.dead.url, c.lastRead.dead.url},
		{"maxReceiveCount", old.MaxReceives, now.MaxReceives},
		{"MessageRetentionPeriod", old.Retention, now.Retention},
		{"DelaySeconds", old.Delay, now.Delay},
		{"VisibilityTimeout", old.Visibility, now.Visibility},
	} {
		if a.old != a.now {
			changes = append(changes, a.name, fmt.Sprintf("%v, was %v", a.now, a.old))
		}
	}
	if len(changes) > 0 {
		c.log.Info("the queue's attributes have changed", changes...)
	}
}

// unreadable returns the finding that the queue's attributes cannot be read because of err. known
// reports whether they were read before.
func unreadable(err error, known bool) plan.Finding {
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
		Remedy:   "find the cause; the attributes are read again within a minute.",
	}
	if known {
		f.Problem = "its attributes can no longer be read, so changes of its redrive limit, retention and dead-letter queue are not seen: " + err.Error()
	}
	if denied(err) {
		f.Remedy = "permit sqs:GetQueueAttributes on the queue; the attributes are read again every ten minutes."
	}
	return f
}

// findAnew reports a finding of a reading of the attributes, unless the last reading had it too.
func (c *Consumer) findAnew(f plan.Finding, last *lastRead) {
	if c.lastRead.found == nil {
		c.lastRead.found = make(map[plan.Finding]bool)
	}
	c.lastRead.found[f] = true
	if !last.found[f] {
		c.found(f)
	}
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

// checkChoice returns the finding that the queue does not permit Config.FIFO, if it does not.
func (c *Consumer) checkChoice(deadLetter queueURL) []plan.Finding {
	if !c.queue.fifo || c.cfg.FIFO != FIFOSkip || deadLetter.url != "" {
		return nil
	}
	return []plan.Finding{{
		Severity: plan.Error,
		Code:     codeSkipWithoutDeadLetter,
		Problem:  "Config.FIFO is FIFOSkip, but there is no dead-letter queue for the skipped messages: failed messages are retried, and their groups wait.",
		Remedy:   "give the queue a RedrivePolicy, or set Config.DeadLetterURL.",
	}}
}
