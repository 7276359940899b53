package configfile_test

import (
	"bytes"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
)

// TestSchema: what the schema accepts is read, and what it refuses is refused.
func TestSchema(t *testing.T) {
	text, err := configfile.Schema(keys)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		text string
		good bool
	}{
		{"addr: 127.0.0.1:0\nmemory: true\nmax-connections: 5\n", true},
		{"queues: [{name: a, attributes: {VisibilityTimeout: 60, Policy: '{}', SqsManagedSseEnabled: true}, dead-letter: d, max-receives: 5, tags: {a: b}, faults: [{kind: throttle}]}]", true},
		{"faults: {'*': [{kind: slow-reply, action: SendMessage, skip: 1, every: 2, probability: 0.5, limit: 3, delay: 2s}], q: []}", true},
		{"queues: [{name: a, consume: {url: x, retry-status: [404, 5xx], pool: p}}, {name: b, consume: {retry-status: 404}}, {name: c, consume: }]\npools: {p: {concurrency: 1}}", true},
		{"queues: [{name: a, consume: {adress: x}}]", false},
		{"queues: [{name: a, consume: [x]}]", false},
		{"queues: [{name: a, consume: {url: {a: b}}}]", false},
		{"queues: [{name: a, consume: {retry-status: [[404]]}}]", false},
		{"pools: {p: 5}", false},
		{"pools: {p: {}}", false},
		{"pools: {p: {concurrency: 0}}", false},
		{"pools: {p: {concurrency: 1, places: 1}}", false},
		{"port: 1", false},
		{"addr: [x]", false},
		{"queues: {a: {}}", false},
		{"queues: [orders]", false},
		{"queues: [{dead-letter: d}]", false},
		{"queues: [{name: a, color: red}]", false},
		{"queues: [{name: a, max-receives: 5}]", false},
		{"queues: [{name: a, dead-letter: d, max-receives: 1001}]", false},
		{"queues: [{name: a, dead-letter: d, max-receives: few}]", false},
		{"queues: [{name: a, attributes: {Policy: {a: b}}}]", false},
		{"queues: [{name: a, faults: [{kind: fire}]}]", false},
		{"faults: {q: {kind: throttle}}", false},
		{"faults: {q: [{skip: 1}]}", false},
		{"faults: {q: [{kind: throttle, often: true}]}", false},
		{"faults: {q: [{kind: throttle, probability: 1.5}]}", false},
		{"faults: {q: [{kind: throttle, every: -1}]}", false},
	} {
		var value any
		if err := yaml.Unmarshal([]byte(test.text), &value); err != nil {
			t.Fatal(err)
		}
		invalid := schema.Validate(value)
		_, refused := configfile.Read(file(t, test.text), keys)
		if (invalid == nil) != test.good || (refused == nil) != test.good {
			t.Errorf("%s\nwant it good: %v; the schema says %v, the reader %v", test.text, test.good, invalid, refused)
		}
	}
}
