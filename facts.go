package reprise

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/plan"
)

// queueFacts is what the queue's attributes say. Guarded by Consumer.mu.
type queueFacts struct {
	plan         plan.Queue
	arn          string
	pending      bool      // they could not be read yet, and will be tried again
	deadLetter   queueURL  // its url is empty if there is none
	refusedUntil time.Time // the dead-letter queue refuses copies, for a lasting reason
}

const (
	learnTimeout = 10 * time.Second
	learnAgain   = time.Minute
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
	attributes, err := c.attributes(ctx, c.queue.url)
	if err != nil {
		facts.pending = !denied(err)
		c.mu.Lock()
		c.facts = facts
		c.mu.Unlock()
		c.found(plan.Finding{
			Severity: plan.Warning,
			Code:     codeUnreadable,
			Problem:  "the queue's attributes cannot be read, so its redrive limit, retention and dead-letter queue are not known: " + err.Error(),
			Remedy:   "permit sqs:GetQueueAttributes on the queue.",
		})
		return !facts.pending
	}
	facts.arn = attributes["QueueArn"]
	facts.plan.Visibility = seconds(attributes["VisibilityTimeout"])
	facts.plan.Retention = seconds(attributes["MessageRetentionPeriod"])
	facts.plan.DeadLetterARN, facts.plan.MaxReceives = redrive(attributes["RedrivePolicy"])
	if facts.deadLetter.url == "" && facts.plan.DeadLetterARN != "" {
		facts.deadLetter, err = c.queue.sibling(facts.plan.DeadLetterARN)
		if err != nil {
			c.complain("redrive-policy", "the queue's RedrivePolicy is not understood", "error", err)
		}
	}
	if facts.deadLetter.url != "" {
		// Only for a finding: whoever may send there need not be allowed to look.
		if dead, err := c.attributes(ctx, facts.deadLetter.url); err == nil {
			facts.plan.DeadLetterRetention = seconds(dead["MessageRetentionPeriod"])
		}
	}

	c.mu.Lock()
	c.facts = facts
	c.policy.MaxAttempts = plan.MaxAttempts(c.cfg.Retry, facts.plan)
	c.mu.Unlock()
	settings := plan.Settings{HandlerTimeout: c.cfg.HandlerTimeout, DeadLetterURL: c.cfg.DeadLetterURL}
	for _, f := range plan.Check(c.cfg.Retry, facts.plan, settings) {
		c.found(f)
	}
	return true
}

// learnLater tries again to read what could not be read at the start.
func (c *Consumer) learnLater() {
	timer := time.NewTicker(learnAgain)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if c.learn(c.settleCtx) {
				return
			}
		case <-c.stopping:
			return
		}
	}
}

// codeUnreadable is the code of the finding that nothing can be found.
const codeUnreadable = "attributes-unreadable"

// found reports a finding.
func (c *Consumer) found(f plan.Finding) {
	log := c.log.Info
	if f.Severity >= plan.Warning {
		log = c.log.Warn
	}
	log("the policy and the queue conflict: "+f.Problem, "severity", f.Severity.String(), "code", f.Code, "remedy", f.Remedy)
	if observe := c.cfg.Observer.Finding; observe != nil {
		c.tell(func() { observe(c.runCtx, f) })
	}
}

// attributes reads all attributes of a queue.
func (c *Consumer) attributes(ctx context.Context, url string) (attributes map[string]string, err error) {
	err = c.client.call(ctx, OpAttributes, 0, func() (int, error) {
		out, err := c.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl:       &url,
			AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
		})
		if err != nil {
			return 0, err
		}
		attributes = out.Attributes
		return 0, nil
	})
	return attributes, err
}

// redrive reads a RedrivePolicy. SQS takes and gives maxReceiveCount as a number,
// and takes it as a string too.
func redrive(policy string) (target string, maxReceives int) {
	var p struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if policy == "" || json.Unmarshal([]byte(policy), &p) != nil {
		return "", 0
	}
	digits := string(p.Max)
	if unquoted, err := strconv.Unquote(digits); err == nil {
		digits = unquoted
	}
	maxReceives, err := strconv.Atoi(digits)
	if err != nil {
		return p.Target, 0
	}
	return p.Target, maxReceives
}

// seconds reads an attribute that counts seconds; zero if it is none.
func seconds(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Second
}
