package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Queue is a queue that exists from the start.
type Queue struct {
	Name string
	// Attributes are those of CreateQueue. A name that ends in .fifo makes a FIFO
	// queue; the attribute FifoQueue is not needed.
	Attributes map[string]string
	// DeadLetter is the name of the queue's dead-letter queue, which is created with
	// it. Default: none.
	DeadLetter string
	// MaxReceives is the maxReceiveCount of the RedrivePolicy, from 1 to 1000.
	// Default: 20.
	MaxReceives int
	// Tags are added to the tags that the queue has.
	Tags map[string]string
}

// QueueAttributes are the names of the attributes that CreateQueue accepts.
var QueueAttributes = []string{
	"ContentBasedDeduplication", "DeduplicationScope", "DelaySeconds", "FifoQueue", "FifoThroughputLimit",
	"KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "MaximumMessageSize", "MessageRetentionPeriod", "Policy",
	"ReceiveMessageWaitTimeSeconds", "RedriveAllowPolicy", "RedrivePolicy", "SqsManagedSseEnabled", "VisibilityTimeout",
}

const (
	defaultMaxReceives = 20

	// maxRetention is 14 days, SQS's longest. A dead letter's age counts from when it was
	// first sent, so its queue must keep it longer than the queue that it comes from.
	maxRetention = "1209600"
)

// The settings of a queue's text form that are not attributes of SQS. They make a
// RedrivePolicy, which is JSON with an ARN, and tedious to type.
const (
	deadLetterKey  = "dead-letter"
	maxReceivesKey = "max-receives"
)

// ParseQueue reads NAME[,attribute=value...]. Attributes are those of CreateQueue,
// and dead-letter=NAME and max-receives=N, which make a RedrivePolicy.
func ParseQueue(text string) (Queue, error) {
	name, rest, more := strings.Cut(text, ",")
	if name == "" || strings.Contains(name, "=") {
		return Queue{}, fmt.Errorf("queue %q does not begin with a name: write it like orders or orders,VisibilityTimeout=60", text)
	}
	q := Queue{Name: name, Attributes: map[string]string{}}
	var settings []string
	if more {
		settings = splitSettings(rest)
	}
	for _, setting := range settings {
		key, value, found := strings.Cut(setting, "=")
		switch {
		case !found || key == "" || value == "":
			return Queue{}, fmt.Errorf("queue %q: %q is not of the form attribute=value", name, setting)
		case key == deadLetterKey:
			q.DeadLetter = value
		case key == maxReceivesKey:
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > 1000 {
				return Queue{}, fmt.Errorf("queue %q: %s is %q: pass a number from 1 to 1000", name, maxReceivesKey, value)
			}
			q.MaxReceives = n
		default:
			q.Attributes[key] = value
		}
	}
	if q.MaxReceives != 0 && q.DeadLetter == "" {
		return Queue{}, fmt.Errorf("queue %q has %s but no %s: add %s=%s-dead", name, maxReceivesKey, deadLetterKey, deadLetterKey, name)
	}
	return q, nil
}

// splitSettings splits at commas, except at those within a value, such as JSON.
func splitSettings(text string) []string {
	var settings []string
	for part := range strings.SplitSeq(text, ",") {
		key, _, found := strings.Cut(part, "=")
		if len(settings) > 0 && (!found || strings.ContainsAny(key, `"{}[]: `)) {
			settings[len(settings)-1] += "," + part
			continue
		}
		settings = append(settings, part)
	}
	return settings
}

// createQueues creates queues and the dead-letter queues that they name.
func (d *Daemon) createQueues(queues []Queue) error {
	byName := make(map[string]Queue)
	for _, q := range queues {
		if _, twice := byName[q.Name]; twice {
			return fmt.Errorf("queue %q is given twice: keep one", q.Name)
		}
		byName[q.Name] = q
	}
	// A RedrivePolicy must name a queue that exists, so first create all queues without one.
	for _, q := range queues {
		if _, given := byName[q.DeadLetter]; q.DeadLetter != "" && !given && !d.exists(q.DeadLetter) {
			dead := Queue{Name: q.DeadLetter, Attributes: map[string]string{"MessageRetentionPeriod": maxRetention}}
			if err := d.createQueue(dead); err != nil {
				return fmt.Errorf("the dead-letter queue of %q: %w", q.Name, err)
			}
		}
		if err := d.createQueue(q); err != nil {
			return err
		}
	}
	for _, q := range queues {
		if err := d.tag(q); err != nil {
			return err
		}
		if q.DeadLetter == "" {
			continue
		}
		if err := d.redrive(q); err != nil {
			return err
		}
	}
	return nil
}

// exists reports whether there is a queue called name, such as one from an earlier run.
func (d *Daemon) exists(name string) bool {
	_, err := d.sqs.GetQueueUrl(context.Background(), &sqsserver.GetQueueUrlInput{QueueName: name})
	return err == nil
}

func (d *Daemon) createQueue(q Queue) error {
	attributes := maps.Clone(q.Attributes)
	if d.exists(q.Name) {
		delete(attributes, "FifoQueue") // cannot be changed, and is clear from the name
		if len(attributes) == 0 {
			return nil
		}
		return queueError("setting the attributes of", q, d.sqs.SetQueueAttributes(context.Background(), &sqsserver.SetQueueAttributesInput{
			QueueUrl: d.QueueURL(q.Name), Attributes: attributes,
		}))
	}
	if strings.HasSuffix(q.Name, ".fifo") {
		if attributes == nil {
			attributes = map[string]string{}
		}
		attributes["FifoQueue"] = "true"
	}
	_, err := d.sqs.CreateQueue(context.Background(), &sqsserver.CreateQueueInput{QueueName: q.Name, Attributes: attributes})
	return queueError("creating", q, err)
}

func (d *Daemon) tag(q Queue) error {
	if len(q.Tags) == 0 {
		return nil
	}
	return queueError("tagging", q, d.sqs.TagQueue(context.Background(), &sqsserver.TagQueueInput{QueueUrl: d.QueueURL(q.Name), Tags: q.Tags}))
}

// redrive gives q its RedrivePolicy.
func (d *Daemon) redrive(q Queue) error {
	if q.MaxReceives == 0 {
		q.MaxReceives = defaultMaxReceives
	}
	policy, err := json.Marshal(map[string]any{
		"deadLetterTargetArn": "arn:aws:sqs:" + d.cfg.Region + ":" + Account + ":" + q.DeadLetter,
		"maxReceiveCount":     q.MaxReceives,
	})
	if err != nil {
		return err
	}
	return queueError("setting the RedrivePolicy of", q, d.sqs.SetQueueAttributes(context.Background(), &sqsserver.SetQueueAttributesInput{
		QueueUrl:   d.QueueURL(q.Name),
		Attributes: map[string]string{"RedrivePolicy": string(policy)},
	}))
}

// remedy returns the end of an error message that explains how to correct q; empty if that
// is not known.
func (q Queue) remedy() string {
	if strings.ContainsFunc(strings.TrimSuffix(q.Name, ".fifo"), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) {
		return ": pass a name like orders or orders.fifo"
	}
	for _, name := range slices.Sorted(maps.Keys(q.Attributes)) {
		if !slices.Contains(QueueAttributes, name) {
			return fmt.Sprintf(": %s is not one of %s, %s (which needs %s), %s", name, deadLetterKey, maxReceivesKey, deadLetterKey, strings.Join(QueueAttributes, ", "))
		}
	}
	return ""
}

// queueError adds to SQS's error what was being done, and to which queue.
func queueError(doing string, q Queue, err error) error {
	if err == nil {
		return nil
	}
	with, separator := "", " with "
	for _, name := range slices.Sorted(maps.Keys(q.Attributes)) {
		with += separator + name + "=" + q.Attributes[name]
		separator = ", "
	}
	if refused, ok := errors.AsType[*sqsserver.Error](err); ok {
		return fmt.Errorf("%s queue %q%s: %s%s", doing, q.Name, with, refused.Message, q.remedy())
	}
	return fmt.Errorf("%s queue %q%s: %w", doing, q.Name, with, err)
}
