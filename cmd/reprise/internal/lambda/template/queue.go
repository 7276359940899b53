package template

import (
	"encoding/json"
	"slices"
	"strconv"
)

var queueSchema = schema{
	"QueueName": raw, "FifoQueue": used, "RedrivePolicy": raw, "RedriveAllowPolicy": raw,
	"DelaySeconds": used, "MaximumMessageSize": used, "MessageRetentionPeriod": used,
	"ReceiveMessageWaitTimeSeconds": used, "VisibilityTimeout": used,
	"ContentBasedDeduplication": used, "DeduplicationScope": used, "FifoThroughputLimit": used,
	"Tags": harmless, "KmsMasterKeyId": harmless, "KmsDataKeyReusePeriodSeconds": harmless, "SqsManagedSseEnabled": harmless,
}

// numbersOfQueues are the attributes that are numbers, and their ranges.
var numbersOfQueues = []numberOfQueue{
	{"DelaySeconds", 0, 900},
	{"MaximumMessageSize", 1024, 1 << 20},
	{"MessageRetentionPeriod", 60, 1_209_600},
	{"ReceiveMessageWaitTimeSeconds", 0, 20},
	{"VisibilityTimeout", 0, 43_200},
}

type numberOfQueue struct {
	name            string
	lowest, highest int
}

// defaultVisibility is the VisibilityTimeout of a queue that has none, in seconds.
const defaultVisibility = 30

// queue reads a queue without its redrive policies, which name queues.
func (l *loader) queue(r *resource) {
	p := r.place()
	properties := l.open(p, r.properties, queueSchema)
	q := Queue{ID: r.id, Name: l.nameOf(r), Attributes: make(map[string]string), Line: r.line}
	q.ARN = l.queueARN(q.Name)
	for _, number := range numbersOfQueues {
		if n := properties[number.name]; n != nil {
			q.Attributes[number.name] = strconv.Itoa(l.integer(p.at(number.name), n, number.lowest, number.highest, 0))
		}
	}
	if l.boolean(p.at("FifoQueue"), properties["FifoQueue"], false) {
		q.Attributes["FifoQueue"] = "true"
	}
	l.fifoAttributes(p, q, properties)
	l.template.Queues = append(l.template.Queues, q)
}

// fifoAttributes reads the attributes of FIFO queues.
func (l *loader) fifoAttributes(p place, q Queue, properties map[string]*node) {
	for _, name := range []string{"ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"} {
		n := properties[name]
		switch {
		case n == nil:
			continue
		case !q.FIFO():
			l.refuse(p.at(name), n, "only FIFO queues have it: add FifoQueue: true, or remove it")
			continue
		case name == "ContentBasedDeduplication":
			q.Attributes[name] = strconv.FormatBool(l.boolean(p.at(name), n, false))
		case name == "DeduplicationScope":
			q.Attributes[name] = l.choice(p.at(name), n, "messageGroup", "queue")
		default:
			q.Attributes[name] = l.choice(p.at(name), n, "perMessageGroupId", "perQueue")
		}
	}
	if q.Attributes["FifoThroughputLimit"] == "perMessageGroupId" && q.Attributes["DeduplicationScope"] != "messageGroup" {
		l.refuse(p.at("FifoThroughputLimit"), properties["FifoThroughputLimit"], "perMessageGroupId needs DeduplicationScope: messageGroup")
	}
}

var redriveSchema = schema{"deadLetterTargetArn": used, "maxReceiveCount": used}

// redrives reads the RedrivePolicy and the RedriveAllowPolicy of a queue.
func (l *loader) redrives(r *resource) {
	i := slices.IndexFunc(l.template.Queues, func(q Queue) bool { return q.ID == r.id })
	q := &l.template.Queues[i]
	l.redrive(r.place().at("RedrivePolicy"), q, r.properties.get("RedrivePolicy"))
	l.redriveAllow(r.place().at("RedriveAllowPolicy"), q, r.properties.get("RedriveAllowPolicy"))
}

func (l *loader) redrive(p place, q *Queue, n *node) {
	properties := l.open(p, n, redriveSchema)
	if properties == nil {
		return
	}
	target, count := properties["deadLetterTargetArn"], properties["maxReceiveCount"]
	if missing(properties, "deadLetterTargetArn") || missing(properties, "maxReceiveCount") {
		l.refuse(p, n, "it needs deadLetterTargetArn and maxReceiveCount")
		return
	}
	if target == nil {
		return // the problem has been reported
	}
	q.MaxReceives = l.integer(p.at("maxReceiveCount"), count, 1, 1000, 1)
	at := p.at("deadLetterTargetArn")
	dead := l.queueByARN(l.scalar(at, target))
	switch {
	case dead == nil:
		l.refuse(at, target, "%q is not a queue of this template: add it, and write !GetAtt NAME.Arn", target.text)
	case dead.Name == q.Name:
		l.refuse(at, target, "a queue cannot be its own dead-letter queue: name another")
	case dead.FIFO() != q.FIFO():
		l.refuse(at, target, "%s and %s have to be both FIFO queues or both standard ones", q.ID, dead.ID)
	default:
		q.DeadLetter = dead.Name
	}
}

var redriveAllowSchema = schema{"redrivePermission": used, "sourceQueueArns": used}

func (l *loader) redriveAllow(p place, q *Queue, n *node) {
	properties := l.open(p, n, redriveAllowSchema)
	if properties == nil {
		return
	}
	if missing(properties, "redrivePermission") {
		l.refuse(p, n, "it has no redrivePermission: write allowAll, denyAll or byQueue")
		return
	}
	policy := struct {
		Permission string   `json:"redrivePermission"`
		Sources    []string `json:"sourceQueueArns,omitempty"`
	}{Permission: l.choice(p.at("redrivePermission"), properties["redrivePermission"], "allowAll", "denyAll", "byQueue")}
	at := p.at("sourceQueueArns")
	for _, item := range l.elements(at, properties["sourceQueueArns"]) {
		policy.Sources = append(policy.Sources, l.scalar(at, item))
	}
	if (policy.Permission == "byQueue") != (len(policy.Sources) > 0) {
		l.refuse(p, n, "sourceQueueArns belong to redrivePermission: byQueue, and only to it")
		return
	}
	document, err := json.Marshal(policy)
	if err != nil {
		l.refuse(p, n, "%v", err)
		return
	}
	q.Attributes["RedriveAllowPolicy"] = string(document)
}

// queueByARN returns a queue of the template; nil if there is no such queue.
func (l *loader) queueByARN(arn string) *Queue {
	for i := range l.template.Queues {
		if l.template.Queues[i].ARN == arn {
			return &l.template.Queues[i]
		}
	}
	return nil
}

// visibility returns the VisibilityTimeout of q in seconds.
func visibility(q *Queue) int {
	if seconds, err := strconv.Atoi(q.Attributes["VisibilityTimeout"]); err == nil {
		return seconds
	}
	return defaultVisibility
}

// checkNames refuses two queues, functions or tables with the same name.
func (l *loader) checkNames() {
	seen := make(map[string]string)
	check := func(kind, name, id string, line int) {
		if other, twice := seen[kind+name]; twice {
			l.refuse(place{resource: id, line: line}, nil, "%s has the name %q, too: change one", other, name)
		}
		seen[kind+name] = id
	}
	for _, q := range l.template.Queues {
		check("queue ", q.Name, q.ID, q.Line)
	}
	for _, t := range l.template.Tables {
		check("table ", t.Name, t.ID, t.Line)
	}
	for i := range l.template.Functions {
		f := &l.template.Functions[i]
		check("function ", f.Name, f.ID, f.Line)
	}
}
