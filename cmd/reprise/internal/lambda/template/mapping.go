package template

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// mappingSchema are the properties of mappings of both types.
var mappingSchema = schema{
	"BatchSize": used, "MaximumBatchingWindowInSeconds": used, "FunctionResponseTypes": used, "ScalingConfig": used,
	"FilterCriteria": used, "Enabled": used,
	"KmsKeyArn": harmless, "MetricsConfig": harmless, "LoggingConfig": harmless,
	"ProvisionedPollerConfig": warned("there are no provisioned pollers here: the queue is polled as usual"),
}

var (
	samMappingSchema    = mappingSchema.with(schema{"Queue": used})
	lambdaMappingSchema = mappingSchema.with(schema{"EventSourceArn": used, "FunctionName": used, "Tags": harmless})
)

// eventTypes are SAM's types of events.
var eventTypes = []string{
	"SQS", "AlexaSkill", "Api", "CloudWatchEvent", "CloudWatchLogs", "Cognito", "DocumentDB", "DynamoDB",
	"EventBridgeRule", "HttpApi", "IoTRule", "Kinesis", "MQ", "MSK", "S3", "SNS", "Schedule", "ScheduleV2",
	"SelfManagedKafka",
}

// event reads an event of a SAM function.
func (l *loader) event(r *resource, f *Function, m member) {
	p := r.place().at("Events").at(m.key)
	kind := m.value.get("Type")
	switch {
	case kind == nil:
		l.refuse(p, m.value, "it has no Type: write Type: SQS")
		return
	case !slices.Contains(eventTypes, kind.text):
		l.refuse(p.at("Type"), kind, "there is no event of type %q%s: correct it", kind.text, suggest(kind.text, slices.Values(eventTypes)))
		return
	case kind.text != "SQS":
		l.warn(p, m.value, "events of type %s do not happen here: use reprise lambda invoke %s", kind.text, f.Name)
		return
	}
	for _, other := range m.value.members {
		if other.key != "Type" && other.key != "Properties" {
			l.refuse(p.at(other.key), other.value, "there is no such property: an event has Type and Properties")
		}
	}
	p = p.at("Properties")
	properties := l.open(p, m.value.get("Properties"), samMappingSchema)
	l.addMapping(p, r.id+"."+m.key, m.line, "Queue", f, properties)
}

// propertiesOfStreams are properties of mappings for streams, Kafka, MQ and DocumentDB: each of
// these has one, with the position or the source to read.
var propertiesOfStreams = []string{"StartingPosition", "SelfManagedEventSource", "Queues", "DocumentDBEventSourceConfig"}

// mapping reads an AWS::Lambda::EventSourceMapping.
func (l *loader) mapping(r *resource) {
	p := r.place()
	for _, name := range propertiesOfStreams {
		if n := r.properties.get(name); n != nil {
			l.warn(p.at(name), n, "only queues of SQS are mapped here: use reprise lambda invoke")
			return
		}
	}
	properties := l.open(p, r.properties, lambdaMappingSchema)
	if f := l.functionNamed(p, properties); f != nil {
		l.addMapping(p, r.id, r.line, "EventSourceArn", f, properties)
	}
}

func (l *loader) addMapping(p place, id string, line int, source string, f *Function, properties map[string]*node) {
	p.line = line
	n := properties[source]
	if missing(properties, source) {
		l.refuse(p, nil, "it has no %s: write !GetAtt QUEUE.Arn", source)
	}
	if n == nil {
		return
	}
	q := l.queueByARN(l.scalar(p.at(source), n))
	if q == nil {
		l.refuse(p.at(source), n, "%q is not a queue of this template: add it, and write !GetAtt QUEUE.Arn", n.text)
		return
	}
	m := Mapping{ID: id, Queue: q.Name, QueueARN: q.ARN, Function: f.Name, Line: line}
	largest := 10_000
	if q.FIFO() {
		largest = 10
	}
	m.BatchSize = l.integer(p.at("BatchSize"), properties["BatchSize"], 1, largest, 10)
	m.Window = l.window(p.at("MaximumBatchingWindowInSeconds"), q, m.BatchSize, properties["MaximumBatchingWindowInSeconds"])
	before := l.reported()
	for _, item := range l.elements(p.at("FunctionResponseTypes"), properties["FunctionResponseTypes"]) {
		m.ReportBatchItemFailures = l.choice(p.at("FunctionResponseTypes"), item, "ReportBatchItemFailures") != ""
	}
	if !m.ReportBatchItemFailures && l.reported() == before {
		l.wholesale = append(l.wholesale, wholesale{p, q.ID, q.ARN})
	}
	at := p.at("ScalingConfig")
	scaling := l.open(at, properties["ScalingConfig"], schema{"MaximumConcurrency": used})
	m.MaximumConcurrency = l.integer(at.at("MaximumConcurrency"), scaling["MaximumConcurrency"], 2, 1000, 0)
	m.Filters = l.filters(p.at("FilterCriteria"), properties["FilterCriteria"])
	m.Disabled = !l.boolean(p.at("Enabled"), properties["Enabled"], true)
	if m.Disabled {
		l.warn(p.at("Enabled"), properties["Enabled"], "the mapping is disabled: messages of %s stay there", q.ID)
	}
	l.checkVisibility(p, q, f)
	l.template.Mappings = append(l.template.Mappings, m)
}

func (l *loader) window(p place, q *Queue, batch int, n *node) time.Duration {
	seconds := l.integer(p, n, 0, 300, 0)
	switch {
	case seconds > 0 && q.FIFO():
		l.refuse(p, n, "FIFO queues have no batching window: remove it")
	case batch > 10 && seconds == 0:
		l.refuse(p, n, "Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10: write 1 or more")
	}
	return time.Duration(seconds) * time.Second
}

// checkVisibility refuses a visibility timeout below the function's timeout, as AWS does:
// messages would come again while the function works on them.
func (l *loader) checkVisibility(p place, q *Queue, f *Function) {
	const recommended = 6
	have, timeout := visibility(q), int(f.Timeout/time.Second)
	switch {
	case have < timeout:
		l.refuse(p, nil, "Queue visibility timeout: %d seconds is less than Function timeout: %d seconds: give %s a VisibilityTimeout of %d", have, timeout, q.ID, recommended*timeout)
	case have < recommended*timeout:
		l.warn(p, nil, "the queue's visibility timeout is %d s and the function's timeout %d s: AWS recommends six times as much, %d s", have, timeout, recommended*timeout)
	}
}

// filters reads the patterns of a mapping.
func (l *loader) filters(p place, n *node) []string {
	const most = 10
	p = p.at("Filters")
	properties := l.open(p, n, schema{"Filters": used})
	var result []string
	for i, item := range l.elements(p, properties["Filters"]) {
		at := p.at(fmt.Sprintf("[%d]", i))
		filter := l.open(at, item, schema{"Pattern": used})
		if missing(filter, "Pattern") {
			l.refuse(at, item, "it has no Pattern: write one, in JSON")
		}
		pattern := filter["Pattern"]
		if pattern == nil {
			continue
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(l.scalar(at, pattern)), &object); err != nil {
			l.refuse(at.at("Pattern"), pattern, "the pattern is not a JSON object: %v", err)
			continue
		}
		result = append(result, pattern.text)
	}
	if len(result) > most {
		l.refuse(p, properties["Filters"], "there are %d patterns: AWS takes %d", len(result), most)
	}
	return result
}

// wholesale is a mapping without ReportBatchItemFailures: an event succeeds or fails as a whole.
type wholesale struct {
	p                 place
	queueID, queueARN string
}

// checkResponses reports mappings that ignore which messages a function calls failed, and so delete
// them. Where they are the records of failed events it is an error: these exist nowhere else.
func (l *loader) checkResponses() {
	const remedy = "add FunctionResponseTypes: [ReportBatchItemFailures]"
	for _, w := range l.wholesale {
		i := slices.IndexFunc(l.template.Functions, func(f Function) bool { return f.Async.OnFailure == w.queueARN })
		if i < 0 {
			l.warn(w.p, nil, "messages that the function's reply names as failed are deleted with the others: %s", remedy)
			continue
		}
		l.refuse(w.p, nil, "%s is the OnFailure destination of %s, and failed events that the reply names, as that of a retry handler does, are deleted and lost: %s",
			w.queueID, l.template.Functions[i].ID, remedy)
	}
}

// checkMappings refuses a queue that is mapped to the same function twice.
func (l *loader) checkMappings() {
	seen := make(map[string]string)
	for _, m := range l.template.Mappings {
		key := m.Queue + " " + m.Function
		if other, twice := seen[key]; twice {
			l.refuse(place{resource: m.ID, line: m.Line}, nil, "%s maps the queue to the function, too: keep one", other)
		}
		seen[key] = m.ID
	}
}
