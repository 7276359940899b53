package admin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// description is openapi.json, with the schemas in it compiled.
type description struct {
	t        *testing.T
	document map[string]any

	mu       sync.Mutex // of what follows
	compiler *jsonschema.Compiler
	seen     map[string]bool // operations with their status, as answered
}

const documentURL = "https://reprise.example/openapi.json"

func readDescription(t *testing.T) *description {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(admin.Description))
	if err != nil {
		t.Fatal(err)
	}
	d := &description{t: t, document: document.(map[string]any), compiler: jsonschema.NewCompiler(), seen: make(map[string]bool)}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(documentURL, document); err != nil {
		t.Fatal(err)
	}
	return d
}

// at returns what the document has below a path of keys.
func at[T any](t *testing.T, from any, path ...string) T {
	t.Helper()
	for _, key := range path {
		from = from.(map[string]any)[key]
	}
	found, ok := from.(T)
	if !ok {
		t.Fatalf("%q is %T", path, from)
	}
	return found
}

// operation returns the operation of a request, and the JSON pointer to it; nil if there is none.
func (d *description) operation(method, path string) (op map[string]any, pointer string) {
	rest := "/" + strings.TrimPrefix(path, admin.Path)
	for template, item := range at[map[string]any](d.t, d.document, "paths") {
		want, got := strings.Split(template, "/"), strings.Split(rest, "/")
		if len(want) != len(got) || !slices.EqualFunc(want, got, func(w, g string) bool { return w == g || strings.HasPrefix(w, "{") && g != "" }) {
			continue
		}
		if op, ok := item.(map[string]any)[strings.ToLower(method)].(map[string]any); ok {
			escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(template)
			return op, "/paths/" + url.PathEscape(escaped) + "/" + strings.ToLower(method)
		}
	}
	return nil, ""
}

// validate reports whether text is what the schema at a JSON pointer permits.
func (d *description) validate(pointer, text string) error {
	schema, err := d.compiler.Compile(documentURL + "#" + pointer)
	if err != nil {
		d.t.Fatalf("%s: %v", pointer, err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

const jsonContent = "/content/application~1json/schema"

// RoundTrip makes every exchange of the tests one that the description permits: a request that it
// does not permit is refused, and a reply is what it says.
func (d *description) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		sent, r.Body = string(text), io.NopCloser(bytes.NewReader(text))
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	d.mu.Lock()
	defer d.mu.Unlock()
	op, pointer := d.operation(r.Method, r.URL.EscapedPath())
	what := fmt.Sprintf("%s %s %s answers %d %s", r.Method, r.URL.EscapedPath(), sent, response.StatusCode, text)
	switch {
	case op == nil:
		pointer = "/components/schemas/Error"
		if response.StatusCode != http.StatusNotFound && response.StatusCode != http.StatusMethodNotAllowed && response.StatusCode != http.StatusForbidden {
			d.t.Errorf("%s, and the description does not have it", what)
		}
	default:
		status := strconv.Itoa(response.StatusCode)
		if _, own := op["responses"].(map[string]any)[status]; !own {
			status = "default"
		}
		d.seen[op["operationId"].(string)+" "+status] = true
		if _, takes := op["requestBody"]; takes && response.StatusCode == http.StatusOK {
			if err := d.validate(pointer+"/requestBody"+jsonContent, sent); err != nil {
				d.t.Errorf("%s, which the description does not permit: %v", what, err)
			}
		}
		pointer += "/responses/" + status + jsonContent
	}
	if err := d.validate(pointer, string(text)); err != nil {
		d.t.Errorf("%s, which is not what the description says: %v", what, err)
	}
	if got := response.Header.Get("Content-Type"); got != "application/json" {
		d.t.Errorf("%s, as %q", what, got)
	}
	return response, nil
}

// TestDescription: it has all operations and no other, each with a name of its own, a summary and a
// reply for failures; all references lead somewhere.
func TestDescription(t *testing.T) {
	d := readDescription(t)
	if at[string](t, d.document, "openapi") != "3.1.0" {
		t.Error("the version of OpenAPI is not 3.1.0")
	}
	var described []string
	ids := make(map[string]bool)
	for path, item := range at[map[string]any](t, d.document, "paths") {
		for method, op := range item.(map[string]any) {
			described = append(described, strings.ToUpper(method)+" "+path)
			id := at[string](t, op, "operationId")
			if ids[id] {
				t.Errorf("two operations are called %s", id)
			}
			ids[id] = true
			for _, text := range []string{"summary", "description"} {
				if at[string](t, op, text) == "" {
					t.Errorf("%s has no %s", id, text)
				}
			}
			if at[map[string]any](t, op, "responses", "200") == nil || at[map[string]any](t, op, "responses", "default") == nil {
				t.Errorf("%s has no replies for success and failure", id)
			}
		}
	}
	slices.Sort(described)
	if routes := admin.Routes(); !slices.Equal(described, routes) {
		t.Errorf("described are %q, and served %q", described, routes)
	}
	for name := range at[map[string]any](t, d.document, "components", "schemas") {
		if _, err := d.compiler.Compile(documentURL + "#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var references func(any)
	references = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if to, ok := v["$ref"].(string); ok && at[any](t, d.document, strings.Split(strings.TrimPrefix(to, "#/"), "/")...) == nil {
				t.Errorf("%s leads nowhere", to)
			}
			for _, below := range v {
				references(below)
			}
		case []any:
			for _, below := range v {
				references(below)
			}
		}
	}
	references(d.document)
	if !json.Valid(admin.Description) {
		t.Error("it is not JSON")
	}
}
