package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ReadQueue returns the Queue that the attributes of a GetQueueAttributes reply
// describe. Attributes that are absent leave their fields zero; the error names
// every one that cannot be understood, and the Queue has all others.
func ReadQueue(attributes map[string]string) (Queue, error) {
	r := reader{attributes: attributes}
	q := Queue{
		ARN:                  attributes["QueueArn"],
		FIFO:                 attributes["FifoQueue"] == "true",
		HighThroughput:       attributes["FifoThroughputLimit"] == "perMessageGroupId",
		ContentDeduplication: attributes["ContentBasedDeduplication"] == "true",
		Visibility:           r.seconds("VisibilityTimeout"),
		Retention:            r.seconds("MessageRetentionPeriod"),
		Delay:                r.seconds("DelaySeconds"),
		KMSKey:               attributes["KmsMasterKeyId"],
	}
	q.DeadLetterARN, q.MaxReceives = r.redrive("RedrivePolicy")
	return q, errors.Join(r.errs...)
}

// ReadDeadLetter adds the values of the attributes of q's dead-letter queue. It reads no others, such
// as that queue's own redrive policy.
func (q *Queue) ReadDeadLetter(attributes map[string]string) error {
	r := reader{attributes: attributes}
	q.DeadLetterRetention, q.DeadLetterKMSKey = r.seconds("MessageRetentionPeriod"), attributes["KmsMasterKeyId"]
	return errors.Join(r.errs...)
}

// reader reads attributes and collects errors.
type reader struct {
	attributes map[string]string
	errs       []error
}

func (r *reader) bad(name, remedy string) {
	r.errs = append(r.errs, fmt.Errorf("plan: queue attribute %s is %q: %s", name, r.attributes[name], remedy))
}

// seconds reads an attribute that counts seconds; zero if it is absent.
func (r *reader) seconds(name string) time.Duration {
	text := r.attributes[name]
	if text == "" {
		return 0
	}
	// No attribute of SQS exceeds 14 days, far below what 32 bits hold.
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		r.bad(name, "not a number of seconds; pass the attributes as GetQueueAttributes returns them")
		return 0
	}
	return time.Duration(n) * time.Second
}

// redrive reads a RedrivePolicy. SQS returns maxReceiveCount as a number, but also accepts a
// string, which other servers return unchanged.
func (r *reader) redrive(name string) (target string, maxReceives int) {
	text := r.attributes[name]
	if text == "" {
		return "", 0
	}
	const remedy = `not a redrive policy; SQS has {"deadLetterTargetArn":"arn:…","maxReceiveCount":5} there`
	var p struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(text), &p) != nil {
		r.bad(name, remedy)
		return "", 0
	}
	digits := string(p.Max)
	if unquoted, err := strconv.Unquote(digits); err == nil {
		digits = unquoted
	}
	maxReceives, err := strconv.Atoi(digits)
	if err != nil || maxReceives < 1 {
		r.bad(name, remedy)
		return p.Target, 0
	}
	return p.Target, maxReceives
}
