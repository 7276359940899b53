package template

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Survey has the queues of a template, whether it can run here or not.
type Survey struct {
	Queues []SurveyedQueue
	// Notes name the parts of the queues that could not be read, by line. None is Refused.
	Notes []Finding
}

// SurveyedQueue is an AWS::SQS::Queue with the values that a retry policy is compared with.
type SurveyedQueue struct {
	ID, Name, ARN string
	// Attributes are as GetQueueAttributes returns them, SQS's defaults included.
	Attributes map[string]string
	// Unknown are the names of attributes whose values only AWS knows, sorted. They are not in
	// Attributes, except for a RedrivePolicy of which one part is known.
	Unknown []string
	// FunctionTimeout is the longest timeout of the functions that an event source mapping
	// hands the messages to; zero: none does, or it is not known.
	FunctionTimeout time.Duration
	// Wholesale are the event source mappings of the queue without ReportBatchItemFailures, by
	// logical id, or FUNCTION.EVENT.
	Wholesale []string
	// OnFailure reports that failed asynchronous invokes of a function of the template go to the
	// queue.
	OnFailure bool
	Line      int
}

// defaultsOfQueues are the attributes of a queue that sets none.
var defaultsOfQueues = map[string]string{"VisibilityTimeout": strconv.Itoa(defaultVisibility), "MessageRetentionPeriod": "345600", "DelaySeconds": "0"}

// LoadSurvey reads the queues of a template. Unlike [Load] it takes templates that cannot run
// here, and whose values are not all known: it leaves those values out, and notes that. Its error
// is [Findings]: the text is not a template.
func LoadSurvey(text []byte, options Options) (Survey, error) {
	options.StackName = cmp.Or(options.StackName, "STACK")
	root, problem := parse(text)
	if problem != nil {
		problem.File = options.File
		return Survey{}, Findings{*problem}
	}
	l := &loader{options: options, template: &Template{}, noteEachUse: true}
	if root.kind != mapping || root.get("Resources") == nil {
		return Survey{}, Findings{{File: options.File, Line: root.line, Refused: true, Text: "this is not a template: it has no Resources"}}
	}
	sam := l.transforms(root.get("Transform"))
	l.loadParameters(root.get("Parameters"))
	for _, f := range l.refusals.first {
		if f.Resource == "" { // a parameter is given that the template does not have
			f.File = options.File
			return Survey{}, Findings{f}
		}
	}
	l.noteMissingParameters()
	l.mappings = root.get("Mappings")
	l.loadConditions(root.get("Conditions"))
	l.loadResources(root, sam)
	l.refusals, l.warnings = kept{}, kept{} // these have nothing to do with queues

	for _, r := range l.order {
		if r.kind == queueType {
			l.nameUnknown(r)
		}
		l.noteDoubt(r)
	}
	var s Survey
	for _, r := range l.order {
		if r.kind == queueType && !r.absent {
			s.Queues = append(s.Queues, l.survey(r))
		}
	}
	for _, r := range l.order {
		if !r.absent {
			l.surveyFunctions(r, s.Queues)
		}
	}
	s.Notes = append(l.refusals.sorted(options.File), l.warnings.sorted(options.File)...)
	for i := range s.Notes {
		s.Notes[i].Refused = false
	}
	slices.SortStableFunc(s.Notes, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.String(), b.String()))
	})
	s.Notes = slices.Compact(s.Notes)
	return s, nil
}

// noteMissingParameters notes each use of a parameter without a value, instead of the parameter.
func (l *loader) noteMissingParameters() {
	for name, value := range l.parameters {
		if value == nil && l.stored[name] == nil {
			l.stored[name] = &Finding{
				File: l.options.File, Resource: "parameter " + name,
				Text: fmt.Sprintf("it has no value: pass --param %s=VALUE", name),
			}
		}
	}
}

// noteDoubt notes that r may not exist, if that matters to a queue. What exists in some of a template's deployments is
// surveyed: left out, it would pass unread.
func (l *loader) noteDoubt(r *resource) {
	if r.doubtful && slices.Contains(runTypes, r.kind) {
		p := r.place().at("Condition")
		l.condition(p, r.condition, l.scalar(p, r.condition))
	}
}

// nameUnknown names a queue by its logical id if only AWS knows its name. Nothing in a plan
// depends on the name, so it is not noted.
func (l *loader) nameUnknown(r *resource) {
	n := r.properties.get("QueueName")
	if n == nil {
		return
	}
	before, refusals := l.reported(), l.refusals
	if v := l.evaluate(r.place(), n); l.reported() > before {
		l.refusals = refusals
		if v == nil {
			r.name, r.named = standInName(r, l.isFIFO(r)), true
		}
	}
}

func standInName(r *resource, fifo bool) string {
	if fifo {
		return r.id + ".fifo"
	}
	return r.id
}

// survey reads a queue.
func (l *loader) survey(r *resource) SurveyedQueue {
	q := SurveyedQueue{ID: r.id, Attributes: make(map[string]string), Line: r.line}
	q.Name = cmp.Or(l.nameOf(r), standInName(r, l.isFIFO(r)))
	q.ARN = l.queueARN(q.Name)
	q.Attributes["QueueArn"] = q.ARN
	for name, value := range defaultsOfQueues {
		q.Attributes[name] = value
	}
	if l.isFIFO(r) {
		q.Attributes["FifoQueue"] = "true"
	}
	for _, m := range members(r.properties) {
		p := r.place().at(m.key)
		switch m.key {
		case "RedrivePolicy":
			l.surveyRedrive(p, &q, m)
		case "KmsMasterKeyId", "ContentBasedDeduplication", "FifoThroughputLimit":
			l.surveyText(p, &q, m)
		default:
			i := slices.IndexFunc(numbersOfQueues, func(n numberOfQueue) bool { return n.name == m.key })
			if i >= 0 {
				number := numbersOfQueues[i]
				l.surveyValue(p, &q, m, func(n *node) string {
					return strconv.Itoa(l.integer(p, n, number.lowest, number.highest, 0))
				})
			}
		}
	}
	slices.Sort(q.Unknown)
	return q
}

// surveyValue sets the attribute m to its value as read returns it, or notes that the value is
// not known.
func (l *loader) surveyValue(p place, q *SurveyedQueue, m member, read func(*node) string) {
	before := l.reported()
	v, stands := l.member(p, m)
	if !stands {
		return // AWS::NoValue
	}
	value := ""
	if v != nil {
		value = read(v)
	}
	if l.reported() > before {
		q.Unknown = append(q.Unknown, m.key)
		delete(q.Attributes, m.key)
		return
	}
	q.Attributes[m.key] = value
}

// surveyText reads an attribute that is a text. A KMS key of the template, which has no id yet,
// is named by its logical id.
func (l *loader) surveyText(p place, q *SurveyedQueue, m member) {
	if name, argument := m.value.intrinsic(); m.key == "KmsMasterKeyId" && (name == "Ref" || name == "Fn::GetAtt") {
		id := argument.text
		if argument.kind == list && len(argument.items) > 0 {
			id = argument.items[0].text
		}
		id, _, _ = strings.Cut(id, ".")
		if r := l.resources[id]; r != nil {
			q.Attributes[m.key] = id
			return
		}
	}
	l.surveyValue(p, q, m, func(n *node) string { return l.scalar(p, n) })
}

// surveyRedrive reads a RedrivePolicy. Its target may be in another template. If a part of the
// policy is not known, the other part is kept.
func (l *loader) surveyRedrive(p place, q *SurveyedQueue, m member) {
	before := l.reported()
	v, stands := l.member(p, m)
	if !stands {
		return
	}
	policy := make(map[string]any)
	for _, part := range members(v) {
		switch at := p.at(part.key); {
		case part.value == nil:
		case part.key == "deadLetterTargetArn":
			policy[part.key] = l.scalar(at, part.value)
		case part.key == "maxReceiveCount":
			if most := l.integer(at, part.value, 1, 1000, 0); most > 0 {
				policy[part.key] = most
			}
		}
	}
	text, err := json.Marshal(policy)
	if err != nil {
		l.refuse(p, v, "%v", err)
	}
	q.Attributes[m.key] = string(text)
	if v != nil && v.kind == scalar {
		q.Attributes[m.key] = v.text // JSON in a text
	}
	if l.reported() > before {
		q.Unknown = append(q.Unknown, m.key)
	}
}

// surveyFunctions notes what the functions of the template have to do with a queue that r, a
// function or a part of one, names.
func (l *loader) surveyFunctions(r *resource, queues []SurveyedQueue) {
	switch p := r.place(); r.kind {
	case samFunctionType:
		for _, m := range members(r.properties.get("Events")) {
			if kind := m.value.get("Type"); kind != nil && kind.text == "SQS" {
				at := p.at("Events").at(m.key).at("Properties")
				l.surveyMapping(at, r.id+"."+m.key, m.value.get("Properties"), "Queue", l.timeoutOf(r), queues)
			}
		}
		l.surveyOnFailure(p.at("EventInvokeConfig"), r.properties.get("EventInvokeConfig"), queues)
	case invokeConfigType:
		l.surveyOnFailure(p, r.properties, queues)
	case mappingType:
		var timeout time.Duration
		v := l.evaluate(p.at("FunctionName"), r.properties.get("FunctionName"))
		for _, f := range l.order {
			if v != nil && f.isFunction() && !f.absent && (v.text == l.nameOf(f) || v.text == l.functionARN(l.nameOf(f))) {
				timeout = l.timeoutOf(f)
			}
		}
		l.surveyMapping(p, r.id, r.properties, "EventSourceArn", timeout, queues)
	}
}

// surveyMapping notes a mapping of a queue, which its property source names, to a function.
func (l *loader) surveyMapping(p place, id string, properties *node, source string, timeout time.Duration, queues []SurveyedQueue) {
	arn := properties.get(source)
	if arn == nil {
		return
	}
	v := l.evaluate(p.at(source), arn)
	if v == nil {
		return
	}
	i := slices.IndexFunc(queues, func(q SurveyedQueue) bool { return q.ARN == v.text })
	if i < 0 {
		return
	}
	q := &queues[i]
	q.FunctionTimeout = max(q.FunctionTimeout, timeout)
	before := l.reported()
	types := l.evaluate(p.at("FunctionResponseTypes"), properties.get("FunctionResponseTypes"))
	if l.reported() == before && (types == nil || len(types.items) == 0) {
		q.Wholesale = append(q.Wholesale, id)
	}
}

// surveyOnFailure notes that the failed invokes of a function go to a queue. Those that go
// elsewhere have nothing to do with queues, so a destination that is not known is not noted.
func (l *loader) surveyOnFailure(p place, properties *node, queues []SurveyedQueue) {
	n := properties.get("DestinationConfig").get("OnFailure").get("Destination")
	refusals, warnings := l.refusals, l.warnings
	v := l.evaluate(p.at("DestinationConfig").at("OnFailure").at("Destination"), n)
	l.refusals, l.warnings = refusals, warnings
	for i := range queues {
		queues[i].OnFailure = queues[i].OnFailure || v != nil && v.text == queues[i].ARN
	}
}

// timeoutOf returns the timeout of a function; zero if it is not known, which has then been noted.
func (l *loader) timeoutOf(r *resource) time.Duration {
	p, before := r.place().at("Timeout"), l.reported()
	var n *node
	if given := r.properties.get("Timeout"); given != nil {
		n = l.evaluate(p, given)
	}
	seconds := l.integer(p, n, 1, 900, 3)
	if l.reported() > before {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
