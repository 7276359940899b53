package template

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The types of the resources that run here.
const (
	queueType          = "AWS::SQS::Queue"
	samFunctionType    = "AWS::Serverless::Function"
	lambdaFunctionType = "AWS::Lambda::Function"
	invokeConfigType   = "AWS::Lambda::EventInvokeConfig"
	mappingType        = "AWS::Lambda::EventSourceMapping"
	tableType          = "AWS::DynamoDB::Table" // some of them: see isTable
)

// ref returns the value of a Ref to name.
func (l *loader) ref(p place, n *node, name string) *node {
	if value, ok := l.parameters[name]; ok {
		if stored := l.stored[name]; stored != nil {
			l.keep(*stored)
			if !l.noteEachUse {
				delete(l.stored, name) // once is enough
			}
		}
		return value
	}
	if strings.HasPrefix(name, "AWS::") {
		return l.pseudo(p, n, name)
	}
	r := l.resource(p, n, name)
	if r == nil {
		return nil
	}
	switch {
	case r.kind == queueType:
		if name := l.nameOf(r); name != "" {
			return text(n, l.options.QueueURL(name))
		}
		return nil
	case r.isFunction() || r.isTable():
		if name := l.nameOf(r); name != "" {
			return text(n, name)
		}
		return nil
	}
	return l.standIn(p, n, r, name)
}

// pseudo returns the value of a parameter that AWS sets for every stack.
func (l *loader) pseudo(p place, n *node, name string) *node {
	switch name {
	case "AWS::Region":
		return text(n, l.options.Region)
	case "AWS::AccountId":
		return text(n, l.options.AccountID)
	case "AWS::StackName":
		return text(n, l.options.StackName)
	case "AWS::StackId":
		return text(n, fmt.Sprintf("arn:aws:cloudformation:%s:%s:stack/%s/local", l.options.Region, l.options.AccountID, l.options.StackName))
	case "AWS::Partition":
		return text(n, "aws")
	case "AWS::URLSuffix":
		return text(n, "amazonaws.com")
	case "AWS::NotificationARNs":
		return &node{kind: list, line: n.line}
	case "AWS::NoValue":
		return nil
	}
	l.refuse(p, n, "there is no pseudo parameter %s", name)
	return nil
}

// getAtt returns the value of an Fn::GetAtt.
func (l *loader) getAtt(p place, n, argument *node) *node {
	const form = "[resource, attribute]"
	if argument.kind == scalar { // the long form takes a text with a dot, too
		id, attribute, _ := strings.Cut(argument.text, ".")
		return l.attribute(p, n, id, attribute)
	}
	a := l.arguments(p, n, "Fn::GetAtt", 2, argument, form)
	if a == nil {
		return nil
	}
	if a[0].kind != scalar || a[1].kind != scalar {
		l.refuse(p, n, "Fn::GetAtt has to have the form %s", form)
		return nil
	}
	return l.attribute(p, n, a[0].text, a[1].text)
}

// otherAttributes are attributes of functions without a value here, including those that SAM adds
// in Fn::Sub.
var otherAttributes = []string{
	"SnapStartResponse", "SnapStartResponse.ApplyOn", "SnapStartResponse.OptimizationStatus", "Alias", "Version",
}

func (l *loader) attribute(p place, n *node, id, attribute string) *node {
	r := l.resource(p, n, id)
	if r == nil {
		return nil
	}
	var value func(name string) string
	switch {
	case r.kind == queueType && attribute == "Arn":
		value = l.queueARN
	case r.kind == queueType && attribute == "QueueName":
		value = func(name string) string { return name }
	case r.kind == queueType && attribute == "QueueUrl":
		value = l.options.QueueURL
	case r.kind == queueType:
		l.refuse(p, n, "%s, a queue, has no attribute %q: it has Arn, QueueName and QueueUrl", id, attribute)
		return nil
	case r.isFunction() && attribute == "Arn":
		value = l.functionARN
	case r.isTable() && attribute == "Arn":
		value = l.tableARN
	case r.isFunction() && !slices.Contains(otherAttributes, attribute):
		l.refuse(p, n, "%s, a function, has no attribute %q: it has Arn", id, attribute)
		return nil
	default:
		return l.standIn(p, n, r, id+"."+attribute)
	}
	name := l.nameOf(r)
	if name == "" {
		return nil
	}
	return text(n, value(name))
}

func (l *loader) queueARN(name string) string {
	return fmt.Sprintf("arn:aws:sqs:%s:%s:%s", l.options.Region, l.options.AccountID, name)
}

func (l *loader) functionARN(name string) string {
	return fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", l.options.Region, l.options.AccountID, name)
}

func (l *loader) tableARN(name string) string {
	return fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", l.options.Region, l.options.AccountID, name)
}

// resource returns the resource that n refers to.
func (l *loader) resource(p place, n *node, id string) *resource {
	r := l.resources[id]
	switch {
	case p.resource == conditionsSection:
		l.refuse(p, n, "a condition cannot refer to %q: only to parameters", id)
		return nil
	case r == nil && l.generated(id):
		return &resource{id: id, kind: "resource that SAM makes"}
	case r == nil:
		l.refuse(p, n, "there is no resource or parameter %q%s", id, l.nearest(id))
		return nil
	case r.absent:
		l.refuse(p, n, "%q does not exist, because its Condition does not hold: refer to it inside an Fn::If", id)
		return nil
	}
	if !r.naming || r.named { // otherwise the name depends on itself, which is reported there
		l.depend(p, n, id)
	}
	return r
}

// generated reports whether SAM makes a resource with this id: roles, versions and URLs of
// functions, APIs that events imply.
func (l *loader) generated(id string) bool {
	if strings.HasPrefix(id, "Serverless") {
		return true
	}
	for _, r := range l.resources {
		if rest, found := strings.CutPrefix(id, r.id); found && r.kind == samFunctionType {
			switch {
			case rest == "Role", rest == "Url", rest == "UrlPublicPermissions", strings.HasPrefix(rest, "Alias"), strings.HasPrefix(rest, "Version"), rest == ".Alias", rest == ".Version":
				return true
			}
		}
	}
	return false
}

// standIn returns a text in place of a value that does not exist here, and reports it once.
func (l *loader) standIn(p place, n *node, r *resource, value string) *node {
	if slices.Contains(runTypes, r.kind) {
		l.warn(p, n, "%s has no value here: it is the text %q", value, value)
	} else {
		l.warn(p, n, "%s is an %s, which is not run here: the value is the text %q", r.id, r.kind, value)
	}
	return text(n, value)
}

var (
	queueName    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	functionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	tableName    = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
)

// nameOf returns the physical name of a queue, function or table; "" if it is not valid, which
// has then been reported.
func (l *loader) nameOf(r *resource) string {
	if r.named {
		return r.name
	}
	property := "QueueName"
	if r.isFunction() {
		property = "FunctionName"
	} else if r.kind == tableType {
		property = "TableName"
	}
	p := r.place().at(property)
	if r.naming {
		l.refuse(p, r.properties.get(property), "the name depends on itself")
		return ""
	}
	r.naming = true
	r.name = r.id
	if n := r.properties.get(property); n != nil {
		if v := l.evaluate(p, n); v != nil {
			r.name = l.scalar(p, v)
		}
	}
	if r.kind == queueType {
		r.name = l.checkQueueName(p, r)
	} else if r.kind == tableType {
		if r.name != "" && !tableName.MatchString(r.name) {
			l.refuse(p, r.properties.get(property), "%q is not a name of a table: write 3 to 255 letters, digits, ., - and _", r.name)
			r.name = ""
		}
	} else if r.name != "" && !functionName.MatchString(r.name) {
		l.refuse(p, r.properties.get(property), "%q is not a name of a function: write up to 64 letters, digits, - and _", r.name)
		r.name = ""
	}
	r.named = true
	return r.name
}

// checkQueueName returns the name of a queue, with .fifo if needed.
func (l *loader) checkQueueName(p place, r *resource) string {
	n := r.properties.get("QueueName")
	base, suffixed := strings.CutSuffix(r.name, ".fifo")
	isFIFO := l.isFIFO(r)
	switch {
	case r.name == "":
		return ""
	case n == nil && isFIFO:
		return r.name + ".fifo"
	case isFIFO && !suffixed:
		l.refuse(p, n, "%q is the name of a FIFO queue and does not end in .fifo: add it", r.name)
	case !isFIFO && suffixed:
		l.refuse(p, n, "%q ends in .fifo, and the queue has no FifoQueue: true: add that, or remove the suffix", r.name)
	case !queueName.MatchString(base) || len(r.name) > 80:
		l.refuse(p, n, "%q is not a name of a queue: write up to 80 letters, digits, - and _", r.name)
	default:
		return r.name
	}
	return ""
}

// isFIFO depends on FifoQueue alone, since names depend on isFIFO.
func (l *loader) isFIFO(r *resource) bool {
	n := r.properties.get("FifoQueue")
	if n == nil {
		return false
	}
	quiet := &loader{options: l.options, parameters: l.parameters, mappings: l.mappings, conditions: l.conditions, resources: l.resources}
	v := quiet.evaluate(r.place(), n)
	return v != nil && strings.EqualFold(v.text, "true")
}
