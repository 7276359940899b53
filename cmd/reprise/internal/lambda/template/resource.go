package template

import (
	"maps"
	"slices"
	"strings"
)

// loader reads one template.
type loader struct {
	options    Options
	template   *Template
	refusals   kept
	warnings   kept
	parameters map[string]*node    // the values; nil: not valid
	stored     map[string]*Finding // of parameters whose value only AWS has
	// noteEachUse of such a parameter, and of a condition that is not known, so that the value it is used for is not known
	// either.
	noteEachUse bool
	steps       int // values that were evaluated: see maxSteps
	mappings    *node
	conditions  map[string]*condition
	resources   map[string]*resource
	order       []*resource  // as in the file
	needs       []dependency // between resources, as they were met
	wholesale   []wholesale  // mappings to warn of
}

// resource is a resource of the template.
type resource struct {
	id         string
	kind       string // its Type
	line       int
	properties *node            // nil: none
	metadata   *node            // nil: none
	opened     map[string]*node // the used properties of a function, evaluated
	absent     bool             // its condition does not hold
	doubtful   bool             // in a survey: whether its condition holds is not known; it may exist
	condition  *node            // its Condition; nil: none

	name          string // the physical one
	named, naming bool
}

func (r *resource) place() place { return place{resource: r.id, line: r.line} }

func (r *resource) isFunction() bool {
	return r.kind == samFunctionType || r.kind == lambdaFunctionType
}

const samTransform = "AWS::Serverless-2016-10-31"

func (l *loader) load(root *node) {
	if root.kind != mapping {
		l.refuse(place{}, root, "this is %v: a template is a mapping with Resources", root.kind)
		return
	}
	l.checkSections(root)
	if version := root.get("AWSTemplateFormatVersion"); version != nil && version.text != "2010-09-09" {
		l.refuse(place{resource: "AWSTemplateFormatVersion"}, version, "%q is not a version: write 2010-09-09", version.text)
	}
	sam := l.transforms(root.get("Transform"))
	l.loadParameters(root.get("Parameters"))
	l.mappings = root.get("Mappings")
	l.loadConditions(root.get("Conditions"))
	l.loadResources(root, sam)
	if len(l.order) == 0 && l.reported() == 0 {
		l.refuse(place{}, root, "the template has no Resources: there is nothing to run")
	}
	l.readResources()
}

// transforms reports whether the template is one of SAM.
func (l *loader) transforms(n *node) (sam bool) {
	if n == nil {
		return false
	}
	items := n.items
	if n.kind == scalar {
		items = []*node{n}
	}
	for _, item := range items {
		if item.text == samTransform {
			sam = true
			continue
		}
		l.refuse(place{resource: "Transform"}, n, "macros are not run here, only %s", samTransform)
	}
	return sam
}

// attributesOfResources are a resource's keys beside its properties.
var attributesOfResources = schema{
	"Type": used, "Properties": used, "Condition": used, "Metadata": used, "DependsOn": used,
	"DeletionPolicy": harmless, "UpdateReplacePolicy": harmless, "CreationPolicy": harmless,
	"UpdatePolicy": harmless, "Connectors": harmless,
	"IgnoreGlobals": refused("is not known here: write the values that are to differ into the resource"),
}

// loadResources makes the list of the template's resources.
func (l *loader) loadResources(root *node, sam bool) {
	l.resources = make(map[string]*resource)
	globals := l.globals(root.get("Globals"), sam)
	for _, m := range members(root.get("Resources")) {
		r := &resource{id: m.key, line: m.line, properties: m.value.get("Properties"), metadata: m.value.get("Metadata")}
		p := r.place()
		for _, attribute := range m.value.members {
			switch t, known := attributesOfResources[attribute.key]; {
			case !known:
				l.refuse(p, attribute.value, "a resource has no %s%s: correct its name, or remove it", attribute.key, suggest(attribute.key, maps.Keys(attributesOfResources)))
			case t.kind == isRefused:
				l.refuse(p.at(attribute.key), attribute.value, "%s", t.text)
			}
		}
		kind := m.value.get("Type")
		if kind == nil || kind.kind != scalar {
			l.refuse(p, m.value, "it has no Type: write one, like Type: %s", queueType)
			continue
		}
		r.kind = kind.text
		l.checkResource(r, kind, sam)
		if r.kind == samFunctionType {
			r.properties = merge(globals, r.properties)
		}
		if name := m.value.get("Condition"); name != nil {
			r.condition = name
			holds, known := l.condition(p.at("Condition"), name, l.scalar(p.at("Condition"), name))
			r.doubtful = l.noteEachUse && !known
			r.absent = !holds && !r.doubtful
		}
		l.resources[r.id] = r
		l.order = append(l.order, r)
	}
	for _, m := range members(root.get("Resources")) {
		l.checkDependencies(m)
	}
}

// checkDependencies checks that the resources in DependsOn exist.
func (l *loader) checkDependencies(m member) {
	n := m.value.get("DependsOn")
	if n == nil {
		return
	}
	names := n.items
	if n.kind == scalar {
		names = []*node{n}
	}
	p := place{resource: m.key}.at("DependsOn")
	for _, name := range names {
		if l.resources[name.text] == nil {
			l.refuse(p, n, "there is no resource %q%s", name.text, l.nearest(name.text))
		} else {
			l.depend(p, n, name.text)
		}
	}
}

// nearest suggests the resource or parameter with the nearest name.
func (l *loader) nearest(id string) suggestion {
	return suggest(id, func(yield func(string) bool) {
		for name := range l.resources {
			if !yield(name) {
				return
			}
		}
		maps.Keys(l.parameters)(yield)
	})
}

// merge adds Globals to a function, as SAM does: mappings are merged, lists joined, and of single
// values the function's wins.
func merge(global, own *node) *node {
	switch {
	case global == nil:
		return own
	case own == nil:
		return global
	case isCall(global) || isCall(own) || global.kind != own.kind || own.kind == scalar:
		return own
	case own.kind == list:
		return &node{kind: list, line: own.line, items: slices.Concat(global.items, own.items)}
	}
	result := &node{kind: mapping, line: own.line}
	for _, m := range global.members {
		m.value = merge(m.value, own.get(m.key))
		result.members = append(result.members, m)
	}
	for _, m := range own.members {
		if global.get(m.key) == nil {
			result.members = append(result.members, m)
		}
	}
	return result
}

func isCall(n *node) bool {
	name, _ := n.intrinsic()
	return name != ""
}

// withoutEffect are the types of resources whose absence makes no difference to a local run, such as
// permissions and alarms.
var withoutEffect = []string{
	"AWS::IAM::", "AWS::CloudWatch::", "AWS::Logs::", "AWS::KMS::", "AWS::SQS::QueuePolicy", "AWS::SQS::QueueInlinePolicy",
	"AWS::Lambda::Permission", "AWS::Serverless::Connector", "AWS::ApplicationInsights::", "AWS::ResourceGroups::", "AWS::CDK::Metadata",
}

// readResources reads queues, then functions, then mappings: each kind needs those before it.
func (l *loader) readResources() {
	var idle []*resource
	for _, kind := range []struct {
		names []string
		read  func(*resource)
	}{
		{[]string{queueType}, l.queue},
		{[]string{queueType}, l.redrives},
		{[]string{samFunctionType, lambdaFunctionType}, l.function},
		{[]string{samFunctionType, lambdaFunctionType}, l.invokes},
		{[]string{invokeConfigType}, l.invokeConfig},
		{[]string{mappingType}, l.mapping},
		{[]string{tableType}, l.table},
	} {
		for _, r := range l.order {
			if slices.Contains(kind.names, r.kind) && !r.absent {
				kind.read(r)
			}
		}
	}
	for _, r := range l.order {
		if r.absent || slices.Contains(runTypes, r.kind) || r.isTable() {
			continue
		}
		if slices.ContainsFunc(withoutEffect, func(prefix string) bool { return strings.HasPrefix(r.kind, prefix) }) {
			idle = append(idle, r)
			continue
		}
		l.warn(r.place(), nil, "%s is not run here: queues, functions and tables whose key is one string are", r.kind)
	}
	l.noteIdle(idle)
	l.checkNames()
	l.checkMappings()
	l.checkResponses()
	l.checkCircles()
}

// noteIdle reports in one finding the resources that would clutter the list one by one.
func (l *loader) noteIdle(idle []*resource) {
	if len(idle) == 0 {
		return
	}
	ids := make([]string, len(idle))
	for i, r := range idle {
		ids[i] = r.id
	}
	l.warn(place{}, nil, "permissions, alarms and logs of AWS are not made here: %s", strings.Join(ids, ", "))
}
