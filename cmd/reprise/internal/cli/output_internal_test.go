package cli

import (
	"encoding/json"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// TestYAMLDocument: a document of YAML has what the JSON has, in the same order, and a string is nothing else.
func TestYAMLDocument(t *testing.T) {
	got, err := yamlDocument([]byte(`{"z":1,"a":"yes","no":null,"list":[{"x":[],"y":{}},[1,"2"],"3: #"],"t":true,"a b":"\u001b[2J","e":"\ud83d\ude00","deep":{"k":{"l":[1.50]}}}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `---
z: 1
a: "yes"
"no": null
list:
  - x: []
    "y": {}
  - - 1
    - "2"
  - "3: #"
t: true
a b: "\x1b[2J"
e: "😀"
deep:
  k:
    l:
      - 1.5
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := yamlDocument([]byte(`{"a":"`)); err == nil {
		t.Errorf("half a line of JSON is %q", got)
	}
}

// FuzzYAMLDocument: reading a document of YAML back returns what the JSON has, and nothing in it controls a terminal.
func FuzzYAMLDocument(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"c"}]}`, `"x"`, `[[],[[]],{"":{}}]`, `{"~":"\u0085\u2028"}`, `{"true":"null","1":"0x1","-":"- a"}`, `-0.5e-3`, `{"a":"\ud83d\udca9\u0000"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want any
		if json.Unmarshal([]byte(text), &want) != nil {
			return // no JSON
		}
		line, err := jsonLine(want)
		if err != nil {
			t.Fatal(err)
		}
		document, err := yamlDocument(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, r := range string(document) {
			if r != '\n' && !terminal.Safe(r) {
				t.Fatalf("%q has %q, which could control a terminal", document, r)
			}
		}
		var read any
		if err := yaml.Unmarshal(document, &read); err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		asJSON, err := json.Marshal(read)
		if err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		var got any
		if err := json.Unmarshal(asJSON, &got); err != nil {
			t.Fatalf("%s: %v", asJSON, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", document, diff)
		}
	})
}
