package template

import (
	"slices"
	"strings"
	"time"
)

var (
	samInvokeSchema  = schema{"MaximumRetryAttempts": used, "MaximumEventAgeInSeconds": used, "DestinationConfig": used}
	invokeSchema     = samInvokeSchema.with(schema{"FunctionName": used, "Qualifier": used})
	destinationsForm = schema{"OnSuccess": used, "OnFailure": used}
)

// targetForm is the form in which a template names a target.
type targetForm struct {
	arn   string   // the property with the ARN
	kinds []string // the Types known here; empty: the form has no Type
}

var (
	samDestination = targetForm{"Destination", []string{"SQS", "Lambda"}}
	destination    = targetForm{"Destination", nil}
	samDeadLetter  = targetForm{"TargetArn", []string{"SQS"}}
	deadLetter     = targetForm{"TargetArn", nil}
)

// invokes reads the configuration of a function's asynchronous invokes, and the events among the
// properties of a SAM function.
func (l *loader) invokes(r *resource) {
	p := r.place()
	f := l.functionByID(r.id)
	if n := r.opened["EventInvokeConfig"]; n != nil {
		at := p.at("EventInvokeConfig")
		l.async(at, f, l.open(at, n, samInvokeSchema), samDestination)
	}
	for name, form := range map[string]targetForm{"DeadLetterQueue": samDeadLetter, "DeadLetterConfig": deadLetter} {
		if n := r.opened[name]; n != nil {
			f.Async.DeadLetter = l.target(p.at(name), n, form, false)
		}
	}
	for _, m := range members(r.opened["Events"]) {
		l.event(r, f, m)
	}
}

// invokeConfig reads an AWS::Lambda::EventInvokeConfig.
func (l *loader) invokeConfig(r *resource) {
	p := r.place()
	properties := l.open(p, r.properties, invokeSchema)
	f := l.functionNamed(p, properties)
	if f == nil {
		return
	}
	if missing(properties, "Qualifier") {
		l.refuse(p, nil, "it has no Qualifier: write Qualifier: $LATEST")
	} else if n := properties["Qualifier"]; n != nil && n.text != "$LATEST" {
		l.warn(p.at("Qualifier"), n, noAlias)
	}
	if !equalAsync(f.Async, Async{DeadLetter: f.Async.DeadLetter}) {
		l.refuse(p, nil, "%s has an EventInvokeConfig already: keep one", f.ID)
		return
	}
	l.async(p, f, properties, destination)
}

func equalAsync(a, b Async) bool {
	return a.MaxRetryAttempts == nil && b.MaxRetryAttempts == nil && a.MaxEventAge == b.MaxEventAge &&
		a.OnSuccess == b.OnSuccess && a.OnFailure == b.OnFailure && a.DeadLetter == b.DeadLetter
}

func (l *loader) async(p place, f *Function, properties map[string]*node, form targetForm) {
	if n := properties["MaximumRetryAttempts"]; n != nil {
		attempts := l.integer(p.at("MaximumRetryAttempts"), n, 0, 2, 2)
		f.Async.MaxRetryAttempts = &attempts
	}
	if n := properties["MaximumEventAgeInSeconds"]; n != nil {
		f.Async.MaxEventAge = time.Duration(l.integer(p.at("MaximumEventAgeInSeconds"), n, 60, 21_600, 21_600)) * time.Second
	}
	p = p.at("DestinationConfig")
	destinations := l.open(p, properties["DestinationConfig"], destinationsForm)
	f.Async.OnSuccess = l.target(p.at("OnSuccess"), destinations["OnSuccess"], form, true)
	f.Async.OnFailure = l.target(p.at("OnFailure"), destinations["OnFailure"], form, true)
}

// target reads the ARN of a queue, or of a function if that is allowed; empty if n is nil.
func (l *loader) target(p place, n *node, form targetForm, functions bool) string {
	s := schema{form.arn: used}
	if form.kinds != nil {
		s["Type"] = used
	}
	properties := l.open(p, n, s)
	if properties == nil {
		return ""
	}
	if form.kinds != nil {
		if missing(properties, "Type") {
			l.refuse(p, n, "it has no Type: write Type: %s", strings.Join(form.kinds, " or Type: "))
			return ""
		}
		if l.choice(p.at("Type"), properties["Type"], form.kinds...) == "" {
			return ""
		}
	}
	if missing(properties, form.arn) {
		l.refuse(p, n, "it has no %s: write !GetAtt QUEUE.Arn, and add the queue", form.arn)
		return ""
	}
	arn := l.targetARN(p.at(form.arn), properties[form.arn], functions)
	if form.kinds != nil && arn != "" && properties["Type"].text == "SQS" != (l.queueByARN(arn) != nil) {
		l.refuse(p.at("Type"), properties["Type"], "it is %s, and the %s is %s: correct one, as SAM permits the function what the Type says", properties["Type"].text, form.arn, arn)
	}
	return arn
}

func (l *loader) targetARN(p place, n *node, functions bool) string {
	arn := l.scalar(p, n)
	if arn == "" {
		return ""
	}
	if q := l.queueByARN(arn); q != nil {
		if q.FIFO() {
			l.refuse(p, n, "%s is a FIFO queue: Lambda sends to standard ones only", q.ID)
			return ""
		}
		return arn
	}
	isFunction := slices.ContainsFunc(l.template.Functions, func(f Function) bool { return f.ARN == arn })
	if functions && isFunction {
		return arn
	}
	what := "queue"
	if functions {
		what = "queue or function"
	}
	l.refuse(p, n, "%q is not a %s of this template: add one, and write !GetAtt NAME.Arn", arn, what)
	return ""
}

func (l *loader) functionByID(id string) *Function {
	i := slices.IndexFunc(l.template.Functions, func(f Function) bool { return f.ID == id })
	return &l.template.Functions[i]
}

// functionNamed returns the function that the FunctionName means: by its name or ARN, whole or
// without the account, with or without a qualifier.
func (l *loader) functionNamed(p place, properties map[string]*node) *Function {
	if missing(properties, "FunctionName") {
		l.refuse(p, nil, "it has no FunctionName: write !Ref FUNCTION")
		return nil
	}
	n := properties["FunctionName"]
	p = p.at("FunctionName")
	given := l.scalar(p, n)
	name := given
	if _, after, found := strings.Cut(given, ":function:"); found {
		name = after
	}
	name, qualifier, _ := strings.Cut(name, ":")
	for i := range l.template.Functions {
		f := &l.template.Functions[i]
		if f.Name == name && (qualifier == "" || qualifier == "$LATEST") {
			return f
		}
	}
	if given != "" {
		l.refuse(p, n, "%q is not a function of this template: add it, or write !Ref FUNCTION", given)
	}
	return nil
}
