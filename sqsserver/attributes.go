package sqsserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// attributes are those that can be set on a queue. The zero value of a text is
// an attribute that the queue does not have.
type attributes struct {
	fifo       bool
	delay      int32 // seconds, as the next four
	retention  int32
	visibility int32
	wait       int32
	kmsReuse   int32
	maxSize    int32 // bytes

	contentDeduplication bool
	deduplicationScope   string
	throughputLimit      string
	managedEncryption    bool
	kmsKey               string

	policy             string
	redrivePolicy      string // canonical
	redriveAllowPolicy string
	redrive            redrivePolicy
	redriveAllow       redriveAllowPolicy
}

const (
	scopeQueue        = "queue"
	scopeMessageGroup = "messageGroup"
	limitPerQueue     = "perQueue"
	limitPerGroup     = "perMessageGroupId"

	defaultKMSReuse = 300
)

func defaultAttributes(fifo bool) *attributes {
	return &attributes{
		fifo:               fifo,
		retention:          345600,
		visibility:         30,
		kmsReuse:           defaultKMSReuse,
		maxSize:            maxMessageSize,
		deduplicationScope: scopeQueue,
		throughputLimit:    limitPerQueue,
		managedEncryption:  true,
	}
}

// attribute is an attribute that a queue may have.
type attribute struct {
	name string
	// set changes the value. Nil: the attribute is read-only.
	set func(a *attributes, value string) error
	// value returns what GetQueueAttributes answers, "" if the queue does not
	// have the attribute. Nil: it is not among the settable ones.
	value func(a *attributes) string
}

// attributesByName has every attribute, settable or not.
var attributesByName = func() map[string]attribute {
	byName := make(map[string]attribute)
	for _, a := range []attribute{
		number("DelaySeconds", 0, 900, func(a *attributes) *int32 { return &a.delay }),
		number("MaximumMessageSize", 1024, maxMessageSize, func(a *attributes) *int32 { return &a.maxSize }),
		number("MessageRetentionPeriod", 60, 1209600, func(a *attributes) *int32 { return &a.retention }),
		number("ReceiveMessageWaitTimeSeconds", 0, 20, func(a *attributes) *int32 { return &a.wait }),
		number("VisibilityTimeout", 0, 43200, func(a *attributes) *int32 { return &a.visibility }),
		{name: "Policy", set: setPolicy, value: func(a *attributes) string { return a.policy }},
		{name: "RedrivePolicy", set: setRedrivePolicy, value: func(a *attributes) string { return a.redrivePolicy }},
		{name: "RedriveAllowPolicy", set: setRedriveAllowPolicy, value: func(a *attributes) string { return a.redriveAllowPolicy }},
		{name: "KmsMasterKeyId", set: setKMSKey, value: func(a *attributes) string { return a.kmsKey }},
		kmsReusePeriod(),
		{name: "SqsManagedSseEnabled", set: setManagedEncryption, value: func(a *attributes) string { return strconv.FormatBool(a.managedEncryption) }},
		{name: "FifoQueue", set: setFIFO, value: onFIFO(func(*attributes) string { return "true" })},
		{name: "ContentBasedDeduplication", set: setContentDeduplication, value: onFIFO(func(a *attributes) string { return strconv.FormatBool(a.contentDeduplication) })},
		fifoChoice("DeduplicationScope", []string{scopeQueue, scopeMessageGroup}, func(a *attributes) *string { return &a.deduplicationScope }),
		fifoChoice("FifoThroughputLimit", []string{limitPerQueue, limitPerGroup}, func(a *attributes) *string { return &a.throughputLimit }),
		{name: "QueueArn"},
		{name: "CreatedTimestamp"},
		{name: "LastModifiedTimestamp"},
		{name: "ApproximateNumberOfMessages"},
		{name: "ApproximateNumberOfMessagesNotVisible"},
		{name: "ApproximateNumberOfMessagesDelayed"},
	} {
		byName[a.name] = a
	}
	return byName
}()

// attributeNames has the names of attributesByName in order.
var attributeNames = slices.Sorted(maps.Keys(attributesByName))

// with returns the attributes with some of them changed. It checks each value,
// and the rules between them; whether a dead-letter queue exists is checked when
// the lock is held.
func (a *attributes) with(values map[string]string) (*attributes, error) {
	changed, err := a.set(values)
	if err != nil {
		return nil, err
	}
	if err := changed.reconcile(values); err != nil {
		return nil, err
	}
	return changed, nil
}

// set changes some attributes in a copy, and checks each value by itself.
func (a *attributes) set(values map[string]string) (*attributes, error) {
	changed := *a
	for _, name := range slices.Sorted(maps.Keys(values)) {
		attribute := attributesByName[name]
		if attribute.set == nil {
			return nil, errUnknownAttribute(name)
		}
		if err := attribute.set(&changed, values[name]); err != nil {
			return nil, err
		}
	}
	return &changed, nil
}

// reconcile checks the rules between attributes of which some have just been set.
func (a *attributes) reconcile(values map[string]string) error {
	if isTrue(values["SqsManagedSseEnabled"]) && a.kmsKey != "" {
		return errTwoEncryptions()
	}
	if a.kmsKey != "" {
		a.managedEncryption = false
	}
	if a.throughputLimit == limitPerGroup && a.deduplicationScope != scopeMessageGroup {
		return errAttributeValue("FifoThroughputLimit")
	}
	return nil
}

// settable returns the attributes as set takes them.
func (a *attributes) settable() map[string]string {
	values := make(map[string]string)
	for name, attribute := range attributesByName {
		if attribute.set == nil {
			continue
		}
		if value := attribute.value(a); value != "" {
			values[name] = value
		}
	}
	values["KmsDataKeyReusePeriodSeconds"] = strconv.Itoa(int(a.kmsReuse)) // shown only beside a key
	return values
}

func number(name string, low, high int32, field func(*attributes) *int32) attribute {
	return attribute{
		name: name,
		set: func(a *attributes, value string) error {
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || int32(n) < low || int32(n) > high {
				return errAttributeValue(name)
			}
			*field(a) = int32(n)
			return nil
		},
		value: func(a *attributes) string { return strconv.Itoa(int(*field(a))) },
	}
}

// kmsReusePeriod is shown only beside a KMS key.
func kmsReusePeriod() attribute {
	reuse := number("KmsDataKeyReusePeriodSeconds", 60, 86400, func(a *attributes) *int32 { return &a.kmsReuse })
	value := reuse.value
	reuse.value = func(a *attributes) string {
		if a.kmsKey == "" || a.kmsReuse == defaultKMSReuse {
			return ""
		}
		return value(a)
	}
	return reuse
}

func fifoChoice(name string, choices []string, field func(*attributes) *string) attribute {
	return attribute{
		name: name,
		set: func(a *attributes, value string) error {
			if !a.fifo {
				return errAttributeNeedsFIFO(name)
			}
			if !slices.Contains(choices, value) {
				return errAttributeValue(name)
			}
			*field(a) = value
			return nil
		},
		value: onFIFO(func(a *attributes) string { return *field(a) }),
	}
}

// onFIFO hides an attribute that standard queues do not have.
func onFIFO(value func(*attributes) string) func(*attributes) string {
	return func(a *attributes) string {
		if !a.fifo {
			return ""
		}
		return value(a)
	}
}

func setFIFO(a *attributes, value string) error {
	if !a.fifo {
		return errUnknownAttribute("FifoQueue")
	}
	var wanted bool
	if err := setBool(&wanted, "FifoQueue", value); err != nil {
		return err
	}
	if !wanted {
		return errQueueTypeFixed()
	}
	return nil
}

func setContentDeduplication(a *attributes, value string) error {
	if !a.fifo {
		return errUnknownAttribute("ContentBasedDeduplication")
	}
	return setBool(&a.contentDeduplication, "ContentBasedDeduplication", value)
}

func setManagedEncryption(a *attributes, value string) error {
	return setBool(&a.managedEncryption, "SqsManagedSseEnabled", value)
}

// setBool: AWS also accepts True and False, as Python writes booleans.
func setBool(field *bool, name, value string) error {
	if !isTrue(value) && !strings.EqualFold(value, "false") {
		return errAttributeValue(name)
	}
	*field = isTrue(value)
	return nil
}

// isTrue reports whether the value of an attribute is true, in any case.
func isTrue(value string) bool { return strings.EqualFold(value, "true") }

// maxKMSKeyID is AWS KMS's own limit.
// https://docs.aws.amazon.com/kms/latest/APIReference/API_DescribeKey.html
const maxKMSKeyID = 2048

func setKMSKey(a *attributes, value string) error {
	if len(value) > maxKMSKeyID || !validText(value) {
		return errAttributeValue("KmsMasterKeyId")
	}
	a.kmsKey = value
	return nil
}

// setPolicy: policies are kept, so that they can be read, and not enforced.
func setPolicy(a *attributes, value string) error {
	var policy map[string]any
	if value != "" && (len(value) > maxPolicySize || json.Unmarshal([]byte(value), &policy) != nil) {
		return errAttributeValue("Policy")
	}
	a.policy = value
	return nil
}

// GetQueueAttributes returns the attributes of a queue that are asked for.
func (s *Server) GetQueueAttributes(ctx context.Context, in *GetQueueAttributesInput) (*GetQueueAttributesOutput, error) {
	r, err := s.lookup(ctx, in.QueueUrl, actionGetQueueAttributes)
	if err != nil {
		return nil, err
	}
	names := in.AttributeNames
	for _, name := range in.AttributeNames {
		if _, known := attributesByName[name]; !known && name != "All" {
			return nil, errUnknownAttribute(name)
		}
	}
	if slices.Contains(names, "All") {
		names = attributeNames
	}
	values := make(map[string]string, len(names))
	counted, err := s.count(r)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		value := counted[name]
		if get := attributesByName[name].value; get != nil {
			value = get(r.attributes)
		}
		if value != "" {
			values[name] = value
		}
	}
	return &GetQueueAttributesOutput{Attributes: values}, r.delayOrLose(ctx)
}

// count returns the attributes that cannot be set.
func (s *Server) count(r request) (map[string]string, error) {
	q := r.queue
	var visible, inFlight, delayed int
	var modified time.Time
	err := s.underLock(q, func(now time.Time) {
		visible, inFlight, delayed = s.engine.Counts(now, q.engine)
		modified = q.modified
	})
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"QueueArn":                              q.arn,
		"CreatedTimestamp":                      unixSeconds(q.created),
		"LastModifiedTimestamp":                 unixSeconds(modified),
		"ApproximateNumberOfMessages":           r.count("ApproximateNumberOfMessages", visible),
		"ApproximateNumberOfMessagesNotVisible": r.count("ApproximateNumberOfMessagesNotVisible", inFlight),
		"ApproximateNumberOfMessagesDelayed":    r.count("ApproximateNumberOfMessagesDelayed", delayed),
	}, nil
}

func unixSeconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// SetQueueAttributes changes some attributes of a queue.
func (s *Server) SetQueueAttributes(ctx context.Context, in *SetQueueAttributesInput) error {
	r, err := s.lookup(ctx, in.QueueUrl, actionSetQueueAttributes)
	if err != nil {
		return err
	}
	if len(in.Attributes) == 0 {
		return errMissingParameter("Attributes")
	}
	if err := s.checkSpace(); err != nil {
		return err
	}
	return s.change(ctx, r, func(now time.Time) error { return s.configure(now, r.queue, in.Attributes) })
}

// configure changes the attributes given. The lock is held, so that of two changes
// at once neither is lost.
func (s *Server) configure(now time.Time, q *queue, given map[string]string) error {
	changed, err := q.attributes.with(given)
	if err == nil {
		err = s.checkRedrive(q, changed, given)
	}
	if err != nil {
		return err
	}
	q.attributes, q.modified = changed, now
	s.engine.Configure(now, q.engine, s.settings(changed)) // the scope of deduplication stays as it was created
	s.recordQueue(q)
	s.longPoll.recheck(q)
	return nil
}
