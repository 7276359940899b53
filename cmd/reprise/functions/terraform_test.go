package functions_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

const terraform = "deploy/terraform"

// TestTerraformIsFormatted: the module is as terraform fmt writes it.
func TestTerraformIsFormatted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, terraform, "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no module (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if formatted := hclwrite.Format(text); string(formatted) != string(text) {
			t.Errorf("%s is not formatted (-is +would be):\n%s", file, gocmp.Diff(string(text), string(formatted)))
		}
	}
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Log("terraform is not installed: the module is formatted as its library does, and that is all that is known")
		return
	}
	cmd := exec.CommandContext(t.Context(), "terraform", "fmt", "-check", "-diff", terraform)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("terraform fmt: %v\n%s", err, out)
	}
}

// TestTerraform evaluates the module: it comes to what the SAM template comes to. No
// provider is asked; whether it knows these names is not tested.
func TestTerraform(t *testing.T) {
	for setting, parameters := range settings {
		t.Run(setting, func(t *testing.T) {
			variables := map[string]cty.Value{
				"function_name":      cty.StringVal(parameters["FunctionName"]),
				"function_role_name": cty.StringVal(parameters["FunctionRoleName"]),
				"package":            cty.StringVal("handler.zip"),
				"idempotency":        cty.BoolVal(parameters["Idempotency"] == "true"),
			}
			if mode := parameters["Mode"]; mode != "" {
				variables["mode"] = cty.StringVal(mode)
			}
			if diff := gocmp.Diff(deployed(t, setting), readModule(t, variables).values(t)); diff != "" {
				t.Errorf("Terraform's module differs from the SAM template (-SAM +Terraform):\n%s", diff)
			}
		})
	}
}

// module is a Terraform module whose expressions can be evaluated.
type module struct {
	blocks  hclsyntax.Blocks
	context *hcl.EvalContext
}

func readModule(t *testing.T, variables map[string]cty.Value) *module {
	t.Helper()
	m := &module{context: &hcl.EvalContext{
		Variables: make(map[string]cty.Value),
		Functions: map[string]function.Function{
			"jsonencode":       stdlib.JSONEncodeFunc,
			"length":           stdlib.LengthFunc,
			"tostring":         stdlib.MakeToFunc(cty.String),
			"filebase64sha256": stdlib.UpperFunc, // of a file that is not there
		},
	}}
	files, err := filepath.Glob(filepath.Join(root, terraform, "*.tf"))
	if err != nil {
		t.Fatal(err)
	}
	parser := hclparse.NewParser()
	for _, name := range files {
		file, problems := parser.ParseHCLFile(name)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		m.blocks = append(m.blocks, file.Body.(*hclsyntax.Body).Blocks...)
	}
	for _, b := range m.blocks {
		if b.Type != "variable" {
			continue
		}
		value, set := variables[b.Labels[0]]
		if standard := b.Body.Attributes["default"]; !set && standard != nil {
			value, set = m.evaluate(t, standard.Expr), true
		}
		kind, problems := typeexpr.TypeConstraint(b.Body.Attributes["type"].Expr)
		if problems.HasErrors() || !set {
			t.Fatalf("the variable %s: it is set: %v; %v", b.Labels[0], set, problems)
		}
		value, err := convert.Convert(value, kind)
		if err != nil {
			t.Fatalf("the variable %s: %v", b.Labels[0], err)
		}
		variables[b.Labels[0]] = value
	}
	m.context.Variables["var"] = cty.ObjectVal(variables)
	m.declare(variables["idempotency"].True())
	m.locals(t)
	return m
}

// declare makes known the other parts to which an expression may refer.
func (m *module) declare(idempotency bool) {
	some := make(map[string]cty.Value)
	for _, name := range []string{"arn", "id", "name", "url", "json", "function_name", "partition", "account_id"} {
		some[name] = cty.StringVal(reference)
	}
	part := cty.ObjectVal(some)
	types := map[string]map[string]map[string]cty.Value{"resource": {}, "data": {}}
	for _, b := range m.blocks {
		parts := types[b.Type]
		if parts == nil {
			continue
		}
		if parts[b.Labels[0]] == nil {
			parts[b.Labels[0]] = make(map[string]cty.Value)
		}
		value := part
		if b.Body.Attributes["count"] != nil {
			value = cty.TupleVal([]cty.Value{part})
			if b.Labels[1] == "idempotency" && !idempotency {
				value = cty.EmptyTupleVal
			}
		}
		parts[b.Labels[0]][b.Labels[1]] = value
	}
	data := make(map[string]cty.Value)
	for name, parts := range types["data"] {
		data[name] = cty.ObjectVal(parts)
	}
	m.context.Variables["data"] = cty.ObjectVal(data)
	for name, parts := range types["resource"] {
		m.context.Variables[name] = cty.ObjectVal(parts)
	}
}

// locals evaluates the module's locals, in whatever order they need.
func (m *module) locals(t *testing.T) {
	t.Helper()
	known := make(map[string]cty.Value)
	open := make(map[string]hclsyntax.Expression)
	for _, b := range m.blocks {
		if b.Type == "locals" {
			for name, a := range b.Body.Attributes {
				open[name] = a.Expr
			}
		}
	}
	for before := 0; len(open) > 0; {
		m.context.Variables["local"] = cty.ObjectVal(known)
		for name, expression := range open {
			if value, problems := expression.Value(m.context); !problems.HasErrors() {
				known[name] = value
				delete(open, name)
			}
		}
		if len(known) == before {
			t.Fatalf("the locals %v cannot be evaluated", open)
		}
		before = len(known)
	}
	m.context.Variables["local"] = cty.ObjectVal(known)
}

func (m *module) evaluate(t *testing.T, expression hclsyntax.Expression) cty.Value {
	t.Helper()
	value, problems := expression.Value(m.context)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return value
}

// properties are the resources of Terraform that are a property of another one in
// CloudFormation.
var properties = map[string]string{"aws_lambda_function_recursion_config": "aws_lambda_function"}

// values returns what the module comes to.
func (m *module) values(t *testing.T) values {
	t.Helper()
	found := make(values)
	for _, b := range m.blocks {
		if b.Type == "data" && b.Labels[0] == "aws_iam_policy_document" && b.Labels[1] != "assume" {
			for _, statement := range m.nested(t, b.Body, "statement") {
				var actions []string
				for _, action := range m.evaluate(t, statement.Attributes["actions"].Expr).AsValueSlice() {
					actions = append(actions, action.AsString())
				}
				found.permit(m.evaluate(t, statement.Attributes["sid"].Expr).AsString(), actions)
			}
		}
		if b.Type != "resource" {
			continue
		}
		if count := b.Body.Attributes["count"]; count != nil && m.evaluate(t, count.Expr).RawEquals(cty.NumberIntVal(0)) {
			continue
		}
		for name, kind := range kinds {
			if kind.terraform != cmp.Or(properties[b.Labels[0]], b.Labels[0]) {
				continue
			}
			flat := make(map[string]string)
			m.flatten(t, flat, "", b.Body)
			called := make(map[string]string)
			for path, attribute := range kind.properties {
				called[path] = flat[attribute]
			}
			found.add(name, called)
		}
	}
	return found
}

// nested returns the blocks of a name in a body, dynamic ones if they are there.
func (m *module) nested(t *testing.T, body *hclsyntax.Body, name string) (found []*hclsyntax.Body) {
	t.Helper()
	for _, b := range body.Blocks {
		switch {
		case b.Type == name:
			found = append(found, b.Body)
		case b.Type == "dynamic" && b.Labels[0] == name && m.evaluate(t, b.Body.Attributes["for_each"].Expr).LengthInt() > 0:
			found = append(found, b.Body.Blocks[0].Body)
		}
	}
	return found
}

// flatten writes the attributes of a block under their paths.
func (m *module) flatten(t *testing.T, into map[string]string, path string, body *hclsyntax.Body) {
	t.Helper()
	for name, attribute := range body.Attributes {
		name = strings.TrimPrefix(path+"."+name, ".")
		switch {
		case name == "depends_on", name == "count":
		case name == "redrive_policy":
			var policy any
			if err := json.Unmarshal([]byte(m.evaluate(t, attribute.Expr).AsString()), &policy); err != nil {
				t.Fatal(err)
			}
			flatten(into, name, policy)
		default:
			flattenValue(t, into, name, m.evaluate(t, attribute.Expr))
		}
	}
	for _, b := range body.Blocks {
		m.flatten(t, into, strings.TrimPrefix(path+"."+b.Type, "."), b.Body)
	}
}

func flattenValue(t *testing.T, into map[string]string, path string, value cty.Value) {
	t.Helper()
	switch {
	case value.Type().IsTupleType(), value.Type().IsListType():
		var items []string
		for _, item := range value.AsValueSlice() {
			items = append(items, item.AsString())
		}
		into[path] = strings.Join(items, " ")
	case value.Type().IsObjectType(), value.Type().IsMapType():
		for name, member := range value.AsValueMap() {
			flattenValue(t, into, path+"."+name, member)
		}
	default:
		text, err := convert.Convert(value, cty.String)
		if err != nil {
			t.Fatal(err)
		}
		into[path] = text.AsString()
	}
}
