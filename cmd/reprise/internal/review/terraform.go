package review

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// terraform has the used parts of the output of `terraform show -json`, of a plan or of a state.
// See https://developer.hashicorp.com/terraform/internals/json-format.
type terraform struct {
	FormatVersion string `json:"format_version"`
	PlannedValues struct {
		Root *tfModule `json:"root_module"`
	} `json:"planned_values"`
	Values struct { // of a state
		Root *tfModule `json:"root_module"`
	} `json:"values"`
	Changes []struct {
		Address string `json:"address"`
		Change  struct {
			// Unknown has true for each value that is known only after apply.
			Unknown map[string]any `json:"after_unknown"`
		} `json:"change"`
	} `json:"resource_changes"`
	Configuration struct {
		Root tfConfiguration `json:"root_module"`
	} `json:"configuration"`
}

type tfModule struct {
	Address   string       `json:"address"`
	Resources []tfResource `json:"resources"`
	Children  []tfModule   `json:"child_modules"`
}

type tfResource struct {
	Address string         `json:"address"`
	Mode    string         `json:"mode"`
	Type    string         `json:"type"`
	Name    string         `json:"name"`
	Index   any            `json:"index"` // of count or for_each
	Values  map[string]any `json:"values"`

	module string // its address; empty: the root module
}

type tfConfiguration struct {
	Resources []struct {
		Address     string                     `json:"address"`
		Expressions map[string]json.RawMessage `json:"expressions"`
	} `json:"resources"`
	Calls map[string]struct {
		Module tfConfiguration `json:"module"`
	} `json:"module_calls"`
}

// The types of resources that matter.
const (
	tfQueue    = "aws_sqs_queue"
	tfRedrive  = "aws_sqs_queue_redrive_policy"
	tfFunction = "aws_lambda_function"
	tfMapping  = "aws_lambda_event_source_mapping"
	tfInvokes  = "aws_lambda_function_event_invoke_config"
)

// tfAttributes are the attributes of queues, by the names that Terraform has for them.
var tfAttributes = map[string]string{
	"visibility_timeout_seconds":  "VisibilityTimeout",
	"message_retention_seconds":   "MessageRetentionPeriod",
	"delay_seconds":               "DelaySeconds",
	"fifo_queue":                  "FifoQueue",
	"content_based_deduplication": "ContentBasedDeduplication",
	"fifo_throughput_limit":       "FifoThroughputLimit",
	"kms_master_key_id":           "KmsMasterKeyId",
	"redrive_policy":              "RedrivePolicy",
}

// IsTerraform reports whether text is the output of `terraform show -json`.
func IsTerraform(text []byte) bool {
	var t struct {
		FormatVersion string          `json:"format_version"`
		Planned       json.RawMessage `json:"planned_values"`
		Values        json.RawMessage `json:"values"`
	}
	return json.Unmarshal(text, &t) == nil && t.FormatVersion != "" && (t.Planned != nil || t.Values != nil)
}

// Terraform reads the queues in the output of `terraform show -json` about a plan or a state. file
// is its name.
func Terraform(file string, text []byte) ([]Subject, error) {
	var doc terraform
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: not the output of terraform show -json: %w", file, err)
	}
	root := cmp.Or(doc.PlannedValues.Root, doc.Values.Root)
	if root == nil {
		return nil, errors.New(file + ": has no resources: make it with terraform show -json PLANFILE")
	}
	r := tfReader{config: &doc.Configuration.Root, unknown: make(map[string]map[string]any), byAddress: make(map[string]*tfResource)}
	for _, c := range doc.Changes {
		r.unknown[c.Address] = c.Change.Unknown
	}
	r.gather(root)
	var subjects []Subject
	for i := range r.resources {
		if r.resources[i].Type == tfQueue {
			subjects = append(subjects, r.subject(file, &r.resources[i]))
		}
	}
	return Link(subjects), nil
}

type tfReader struct {
	config    *tfConfiguration
	unknown   map[string]map[string]any // by address, then by attribute
	resources []tfResource
	byAddress map[string]*tfResource
}

// gather lists the resources of a module and of those in it.
func (r *tfReader) gather(m *tfModule) {
	var walk func(m *tfModule)
	walk = func(m *tfModule) {
		for _, resource := range m.Resources {
			if resource.module = m.Address; resource.Mode != "data" {
				r.resources = append(r.resources, resource)
			}
		}
		for i := range m.Children {
			walk(&m.Children[i])
		}
	}
	walk(m)
	for i := range r.resources {
		r.byAddress[r.resources[i].Address] = &r.resources[i]
	}
}

// subject reads a queue.
func (r *tfReader) subject(file string, q *tfResource) Subject {
	s := Subject{Name: r.nameOf(q), Source: file, Attributes: map[string]string{"QueueArn": r.arnOf(q)}}
	for name, attribute := range tfAttributes {
		switch value := q.Values[name]; {
		case value != nil:
			s.Attributes[attribute] = tfText(value)
		case r.isUnknown(q, name):
			s.Unknown = append(s.Unknown, attribute)
		}
	}
	for name, value := range map[string]string{"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600"} {
		if s.Attributes[name] == "" && !slices.Contains(s.Unknown, name) {
			s.Attributes[name] = value
		}
	}
	if s.Attributes["RedrivePolicy"] == "" {
		delete(s.Attributes, "RedrivePolicy") // Terraform's "none"
		r.redrive(&s, q)
	}
	slices.Sort(s.Unknown)
	r.functions(&s, q)
	return s
}

// redrive finds the RedrivePolicy of q in a resource of its own, and the target of one that is not
// known yet, as the configuration names it.
func (r *tfReader) redrive(s *Subject, q *tfResource) {
	from := q
	for i := range r.resources {
		if p := &r.resources[i]; p.Type == tfRedrive && r.refersTo(p, "queue_url", q) {
			from = p
			if value, ok := p.Values["redrive_policy"].(string); ok && value != "" {
				s.Attributes["RedrivePolicy"] = value
				return
			}
			s.Unknown = append(s.Unknown, "RedrivePolicy")
		}
	}
	if !slices.Contains(s.Unknown, "RedrivePolicy") {
		return
	}
	for i := range r.resources {
		if dead := &r.resources[i]; dead.Type == tfQueue && dead != q && r.refersTo(from, "redrive_policy", dead) {
			text, _ := json.Marshal(map[string]string{"deadLetterTargetArn": r.arnOf(dead)}) // strings always marshal
			s.Attributes["RedrivePolicy"] = string(text)
			return
		}
	}
}

// functions notes the mappings of q to functions, the longest timeout of these, and whether failed
// invokes go to q.
func (r *tfReader) functions(s *Subject, q *tfResource) {
	for i := range r.resources {
		from := &r.resources[i]
		switch {
		case from.Type == tfMapping && r.refersTo(from, "event_source_arn", q):
			s.FunctionTimeout = max(s.FunctionTimeout, r.functionTimeout(from))
			if types, _ := from.Values["function_response_types"].([]any); len(types) == 0 && !r.isUnknown(from, "function_response_types") {
				s.Wholesale = append(s.Wholesale, from.Address)
			}
		case from.Type == tfInvokes && r.isOnFailure(from, q):
			s.OnFailure = true
		}
	}
}

// functionTimeout is the longest timeout of the functions that a mapping may name.
func (r *tfReader) functionTimeout(mapping *tfResource) (longest time.Duration) {
	for i := range r.resources {
		f := &r.resources[i]
		if f.Type != tfFunction || !r.refersTo(mapping, "function_name", f) {
			continue
		}
		timeout, ok := f.Values["timeout"].(float64)
		if !ok {
			timeout = 3 // Lambda's default
		}
		longest = max(longest, time.Duration(timeout)*time.Second)
	}
	return longest
}

// isOnFailure reports whether an invoke configuration names q as the destination of failed events.
func (r *tfReader) isOnFailure(from, q *tfResource) bool {
	const block = "destination_config"
	if value, ok := tfOnFailure(from.Values[block]).(string); ok && value != "" {
		return q.isNamed(value)
	}
	if unknown, _ := tfOnFailure(r.unknown[from.Address][block]).(bool); !unknown || from.module != q.module {
		return false
	}
	var blocks any
	if json.Unmarshal(r.expression(from, block), &blocks) != nil {
		return false
	}
	expression, _ := tfOnFailure(blocks).(map[string]any)
	references, _ := expression["references"].([]any)
	var names []string
	for _, reference := range references {
		if name, ok := reference.(string); ok {
			names = append(names, name)
		}
	}
	return tfRefer(from, names, q)
}

// tfOnFailure is destination_config[0].on_failure[0].destination, in values, in what is unknown and
// in the configuration; nil: there is none.
func tfOnFailure(blocks any) any {
	for _, name := range []string{"on_failure", "destination"} {
		list, _ := blocks.([]any)
		if len(list) == 0 {
			return nil
		}
		block, _ := list[0].(map[string]any)
		blocks = block[name]
	}
	return blocks
}

// refersTo reports whether the attribute of from is target: by its value, or, if that is not known
// yet, because the configuration refers to it.
func (r *tfReader) refersTo(from *tfResource, attribute string, target *tfResource) bool {
	if value, ok := from.Values[attribute].(string); ok && value != "" {
		return target.isNamed(value)
	}
	return from.module == target.module && r.isUnknown(from, attribute) && tfRefer(from, r.references(from, attribute), target)
}

// isNamed reports whether value is one of the names that AWS has for r.
func (r *tfResource) isNamed(value string) bool {
	for _, own := range []string{"arn", "url", "id", "function_name", "invoke_arn", "qualified_arn"} {
		if is, ok := r.Values[own].(string); ok && is == value {
			return true
		}
	}
	return false
}

// tfRefer reports whether one of the references that an expression in the configuration of from has is to target. Of
// aws_sqs_queue.dead[0].arn Terraform lists the resource, aws_sqs_queue.dead, too, which is every instance's.
func tfRefer(from *tfResource, references []string, target *tfResource) bool {
	whole := target.Type + "." + target.Name
	indexed := slices.ContainsFunc(references, func(name string) bool { return strings.HasPrefix(name, whole+"[") })
	return slices.ContainsFunc(references, func(name string) bool {
		return !(indexed && name == whole) && tfRefers(from, name, target)
	})
}

// tfRefers reports whether a reference in the configuration of from is to target, which is in the
// same module: aws_sqs_queue.dead[0].arn, aws_sqs_queue.dead["a"].arn, or
// aws_sqs_queue.dead[count.index].arn, of which only aws_sqs_queue.dead is listed.
func tfRefers(from *tfResource, reference string, target *tfResource) bool {
	rest, found := strings.CutPrefix(reference, target.Type+"."+target.Name)
	if !found || rest != "" && rest[0] != '.' && rest[0] != '[' {
		return false
	}
	if index, _, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok && strings.HasPrefix(rest, "[") {
		return strings.HasSuffix(target.Address, "["+index+"]")
	}
	return target.Index == nil || from.Index == nil || tfText(target.Index) == tfText(from.Index)
}

// references are the names that the configuration of a resource's attribute uses.
func (r *tfReader) references(of *tfResource, attribute string) []string {
	var expression struct {
		References []string `json:"references"`
	}
	if json.Unmarshal(r.expression(of, attribute), &expression) != nil {
		return nil // there is none, or it is a block
	}
	return expression.References
}

// expression is the configuration of a resource's attribute or block; nil: there is none.
func (r *tfReader) expression(of *tfResource, attribute string) json.RawMessage {
	config := r.config
	for part := range strings.SplitSeq(withoutIndexes(of.module), ".") {
		if part == "" || part == "module" {
			continue
		}
		call, ok := config.Calls[part]
		if !ok {
			return nil
		}
		config = &call.Module
	}
	for _, c := range config.Resources {
		if c.Address == of.Type+"."+of.Name {
			return c.Expressions[attribute]
		}
	}
	return nil
}

// withoutIndexes is the address of a module without those of count and for_each.
func withoutIndexes(address string) string {
	var b strings.Builder
	for rest := address; rest != ""; {
		before, after, found := strings.Cut(rest, "[")
		b.WriteString(before)
		if !found {
			break
		}
		_, rest, _ = strings.Cut(after, "]")
	}
	return b.String()
}

// isUnknown reports whether the configuration sets the attribute to something that is known only
// after apply. The provider calls those unknown, too, that are not set.
func (r *tfReader) isUnknown(of *tfResource, attribute string) bool {
	unknown, _ := r.unknown[of.Address][attribute].(bool)
	return unknown && len(r.references(of, attribute)) > 0
}

func (r *tfReader) nameOf(q *tfResource) string {
	if name, ok := q.Values["name"].(string); ok && name != "" {
		return name
	}
	return q.Address
}

// arnOf is the ARN of q, or its like if it is not known yet.
func (r *tfReader) arnOf(q *tfResource) string {
	if known, ok := q.Values["arn"].(string); ok && known != "" {
		return known
	}
	region, ok := q.Values["region"].(string)
	if !ok {
		region = "REGION"
	}
	return "arn:aws:sqs:" + region + ":ACCOUNT:" + strings.ReplaceAll(r.nameOf(q), ":", "_")
}

// tfText is a value as GetQueueAttributes would write it.
func tfText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
