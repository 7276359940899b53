package template

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var sections = schema{
	"AWSTemplateFormatVersion": used, "Transform": used, "Parameters": used, "Mappings": used,
	"Conditions": used, "Globals": used, "Resources": used,
	"Description": harmless, "Metadata": harmless, "Outputs": harmless,
	"Rules": warned("the rules are not checked here"),
	"Hooks": warned("hooks are not run here"),
}

// checkSections refuses unknown sections, and those of a wrong form.
func (l *loader) checkSections(root *node) {
	for _, m := range root.members {
		p := place{resource: m.key}
		switch t, known := sections[m.key]; {
		case !known:
			l.refuse(p, m.value, "a template has no such section%s: correct its name, or remove it", suggest(m.key, maps.Keys(sections)))
		case t.kind == isWarned:
			l.warn(p, m.value, "%s", t.text)
		}
	}
	for _, name := range []string{"Parameters", "Mappings", "Conditions", "Globals", "Resources"} {
		l.isMapping(place{resource: name}, root.get(name))
	}
	for _, m := range members(root.get("Mappings")) {
		p := place{resource: "Mappings", property: m.key}
		l.isMapping(p, m.value)
		for _, second := range members(m.value) {
			l.isMapping(p.at(second.key), second.value)
		}
	}
}

// isMapping reports whether n is a mapping, and refuses it otherwise.
func (l *loader) isMapping(p place, n *node) {
	if n != nil && n.kind != mapping {
		l.refuse(p, n, "this is %v: it has to be a mapping", n.kind)
	}
}

// globalsSchema are the parts of Globals; those for resources that are not run here are ignored.
var globalsSchema = schema{
	"Function": raw, "Api": harmless, "HttpApi": harmless, "WebSocketApi": harmless, "SimpleTable": harmless,
	"StateMachine": harmless, "LayerVersion": harmless, "CapacityProvider": harmless,
}

// ownProperties are those of functions that SAM does not take from Globals.
var ownProperties = []string{"FunctionName", "InlineCode", "Events"}

// globals returns the properties for all functions, without those that no function can have; nil
// if there are none.
func (l *loader) globals(n *node, sam bool) *node {
	p := place{resource: "Globals"}
	if n != nil && !sam {
		l.refuse(p, n, "only SAM has globals: add Transform: %s", samTransform)
	}
	if n == nil || n.kind != mapping {
		return nil // the problem has been reported
	}
	functions := l.open(p, n, globalsSchema)["Function"]
	p = p.at("Function")
	l.isMapping(p, functions)
	if functions == nil {
		return nil
	}
	known := &node{kind: mapping, line: functions.line}
	for _, m := range functions.members {
		at := p.at(m.key)
		switch _, exists := samFunctionSchema[m.key]; {
		case !exists:
			l.refuse(at, m.value, "there is no such property%s: correct its name, or remove it", suggest(m.key, maps.Keys(samFunctionSchema)))
		case slices.Contains(ownProperties, m.key):
			l.refuse(at, m.value, "SAM does not take it from here: write it into each function")
		default:
			known.members = append(known.members, m)
		}
	}
	return known
}

var (
	logicalID    = regexp.MustCompile(`^[A-Za-z0-9]{1,255}$`)
	resourceType = regexp.MustCompile(`^(Custom::[A-Za-z0-9_@-]+|[A-Za-z0-9]+(::[A-Za-z0-9]+){2,3})$`)
	runTypes     = []string{queueType, samFunctionType, lambdaFunctionType, invokeConfigType, mappingType}
)

// checkResource refuses invalid ids and unknown types. Of the types that are not run here only
// the form of the name is checked.
func (l *loader) checkResource(r *resource, kind *node, sam bool) {
	p := r.place()
	if !logicalID.MatchString(r.id) {
		l.refuse(p, nil, "%q is not a logical id: write letters and digits", r.id)
	}
	meant := suggest(r.kind, slices.Values(runTypes)).String()
	switch {
	case slices.Contains(runTypes, r.kind):
	case meant != "":
		l.refuse(p, kind, "there is no type %s%s: correct it", r.kind, meant)
	case !resourceType.MatchString(r.kind):
		l.refuse(p, kind, "%q is not a type of a resource: write one, like %s", r.kind, queueType)
	}
	if strings.HasPrefix(r.kind, "AWS::Serverless::") && !sam {
		l.refuse(p, kind, "%s is one of SAM: add Transform: %s", r.kind, samTransform)
	}
}
