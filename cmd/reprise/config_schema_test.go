//go:build unix

package main_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write docs/reprise.schema.json anew")

// TestConfigSchema: the schema in the documentation is the program's, which has every
// flag that a file can set with its type, and accepts the files of the pages.
func TestConfigSchema(t *testing.T) {
	published := filepath.Join(root, "docs", "reprise.schema.json")
	got := reprise(t, "", "config", "schema")
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if *update {
		if err := os.WriteFile(published, []byte(got.stdout), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	if got.stdout != string(want) {
		t.Errorf("%s is not what the program prints: go test ./cmd/reprise -run TestConfigSchema -update", published)
	}

	compiler := jsonschema.NewCompiler()
	schema, err := compiler.Compile(published)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"addr", "data", "memory", "sync-interval", "access-key", "secret-file", "tls-cert", "time-scale", "admin-addr", "url", "retry", "lease", "outage"} {
		if property := schema.Properties[name]; property == nil || property.Types.IsEmpty() || property.Description == "" {
			t.Errorf("the schema has %s as %+v, want a type and a description", name, property)
		}
	}
	for _, name := range []string{"secret", "config", "help"} {
		if schema.Properties[name] != nil {
			t.Errorf("the schema has %s, which no file can set", name)
		}
	}
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.info != "yaml" || !strings.HasPrefix(b.text, "# reprise.yaml") {
				continue
			}
			var content any
			if err := yaml.Unmarshal([]byte(b.text), &content); err != nil {
				t.Fatalf("%v: %v", b, err)
			}
			if err := schema.Validate(content); err != nil {
				t.Errorf("%v: %v", b, err)
			}
		}
	}
}
