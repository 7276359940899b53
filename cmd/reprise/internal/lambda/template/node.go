package template

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/yamltext"
)

// node is a piece of a template: a text, a list or a mapping. Like CloudFormation it does not
// distinguish 3 and "3". Short forms of intrinsic functions (!Sub x) are long ones here
// ({Fn::Sub: x}).
type node struct {
	kind    kind
	line    int
	text    string
	items   []*node
	members []member // in the order of the file, no key twice
}

type member struct {
	key   string
	line  int
	value *node
}

type kind int

const (
	scalar kind = iota
	list
	mapping
)

func (k kind) String() string {
	switch k {
	case scalar:
		return "a single value"
	case list:
		return "a list"
	case mapping:
		return "a mapping"
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// text returns a scalar with n's position.
func text(n *node, s string) *node { return &node{kind: scalar, line: n.line, text: s} }

// get returns the member called key; nil if there is none, or n is not a mapping.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// intrinsic returns the name of the function that n calls, and its argument.
func (n *node) intrinsic() (name string, argument *node) {
	if n.kind != mapping || len(n.members) != 1 {
		return "", nil
	}
	m := n.members[0]
	if m.key == "Ref" || strings.HasPrefix(m.key, "Fn::") {
		return m.key, m.value
	}
	return "", nil
}

const (
	maxTemplate = 1 << 20 // bytes, the limit of CloudFormation
	maxDepth    = 64
)

// parse reads YAML, of which JSON is a part.
func parse(text []byte) (*node, *Finding) {
	if len(text) > maxTemplate {
		return nil, &Finding{Refused: true, Text: "the template is larger than 1 MB: CloudFormation refuses larger ones, split it"}
	}
	file, err := yamltext.Parse(text)
	if err != nil {
		return nil, syntaxError(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			return nil, refusedAt(doc.Body, "a second document begins: a template is one")
		default:
			body = doc.Body
		}
	}
	if body == nil {
		return nil, &Finding{Refused: true, Text: "the template is empty: it needs Resources"}
	}
	return convert(body, 0)
}

func syntaxError(err error) *Finding {
	if deep, ok := errors.AsType[*yamltext.DepthError](err); ok {
		return &Finding{Line: deep.Position.Line, Refused: true, Text: err.Error()}
	}
	// The text of an error with a token quotes lines of the file, which may be long.
	if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil {
		return &Finding{Line: e.GetToken().Position.Line, Refused: true, Text: "this is not YAML: " + e.GetMessage()}
	}
	return &Finding{Refused: true, Text: "this is not YAML: " + err.Error()}
}

func refusedAt(n ast.Node, text string) *Finding {
	return &Finding{Line: lineOf(n), Refused: true, Text: text}
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// convert makes a node from the YAML package's.
func convert(n ast.Node, depth int) (*node, *Finding) {
	if depth > maxDepth {
		return nil, refusedAt(n, "this is nested too deeply")
	}
	switch n := n.(type) {
	case *ast.TagNode:
		return convertTag(n, depth)
	case *ast.MappingNode:
		return convertMapping(n, n.Values, depth)
	case *ast.MappingValueNode:
		return convertMapping(n, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		result := &node{kind: list, line: lineOf(n)}
		for _, value := range n.Values {
			item, problem := convert(value, depth+1)
			if problem != nil {
				return nil, problem
			}
			result.items = append(result.items, item)
		}
		return result, nil
	case *ast.LiteralNode:
		return &node{kind: scalar, line: lineOf(n), text: n.Value.Value}, nil
	case *ast.StringNode:
		return &node{kind: scalar, line: lineOf(n), text: n.Value}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		// Keep the text: an account id that begins with zeros is not an octal number.
		return &node{kind: scalar, line: lineOf(n), text: n.GetToken().Value}, nil
	case *ast.NullNode:
		return nil, refusedAt(n, "there is no value: CloudFormation takes no null, write one or leave the key out")
	case *ast.AnchorNode, *ast.AliasNode:
		return nil, refusedAt(n, "CloudFormation takes no YAML anchors and aliases: write the value out")
	}
	return nil, refusedAt(n, "CloudFormation does not take this kind of YAML")
}

func convertMapping(n ast.Node, values []*ast.MappingValueNode, depth int) (*node, *Finding) {
	result := &node{kind: mapping, line: lineOf(n)}
	for i, v := range values {
		key, ok := v.Key.(ast.ScalarNode)
		if _, merge := v.Key.(*ast.MergeKeyNode); !ok || merge {
			return nil, refusedAt(v.Key, "a key must be a text")
		}
		line := lineOf(v.Key)
		if i == 0 {
			result.line = line
		}
		value, problem := convert(v.Value, depth+1)
		if problem != nil {
			return nil, problem
		}
		// Editors jump to the key, not to the text below it.
		value.line = line
		result.members = append(result.members, member{key.GetToken().Value, line, value})
	}
	return result, nil
}

// convertTag makes the long form of a short one.
func convertTag(n *ast.TagNode, depth int) (*node, *Finding) {
	if strings.HasPrefix(n.Start.Value, "!!") {
		return nil, refusedAt(n, n.Start.Value+" is not a tag of CloudFormation's: remove it")
	}
	if n.Value == nil {
		return nil, refusedAt(n, n.Start.Value+" has no argument")
	}
	argument, problem := convert(n.Value, depth+1)
	if problem != nil {
		return nil, problem
	}
	name := strings.TrimPrefix(n.Start.Value, "!")
	switch name {
	case "Ref", "Condition":
	case "GetAtt":
		name = "Fn::GetAtt"
		if argument.kind == scalar {
			id, attribute, _ := strings.Cut(argument.text, ".")
			argument = &node{kind: list, line: argument.line, items: []*node{text(argument, id), text(argument, attribute)}}
		}
	default:
		name = "Fn::" + name
	}
	line := lineOf(n)
	return &node{kind: mapping, line: line, members: []member{{name, line, argument}}}, nil
}
