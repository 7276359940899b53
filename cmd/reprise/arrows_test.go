package main_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// arrows is the table of imports: every package of this module, from the one that imports most to
// those that import none, with the packages of this module that it imports (of those below
// internal/, the rest of the path), the public packages of the library and its adapters (root is
// the consumer), and the requirements, by the names below. An import that is not listed fails the
// test, so a new package needs a row first; a listed import that does not exist fails it too.
const arrows = `
package                     | of this module                                          | library and adapters                    | requirements
.                           | cli                                                     |                                         |
internal/cli                | admin awsclient children choice configfile daemon       | root adapters/dynamostore plan retry    | aws cobra pebble x
                            | dashboard delivery demo diskfault httpclient interrupt  | sqsserver                               |
                            | journal operate plural redrive review simreport         | simulate                                |
                            | telemetry terminal yamltext                             |                                         |
                            | lambda/emulator lambda/stack lambda/template            |                                         |
internal/dashboard          | admin eventstream operate playground plural terminal    | plan sqsserver                          |
internal/admin              | eventstream httpclient latency operate plural redrive   | root plan retry sqsserver               | aws
                            | telemetry terminal                                      |                                         |
internal/release            | cli                                                     |                                         | cobra x
internal/configfile         | daemon yamltext                                         | sqsserver                               | cobra yaml
internal/delivery           | awstarget choice forward httpclient                     | root adapters/dynamostore               | aws cobra
                            |                                                         | adapters/s3payload idempotency retry    |
internal/awstarget          |                                                         | root                                    | aws
internal/daemon             | awsclient httpclient journal telemetry                  | root adapters/repriseotel sqsserver     | aws telemetry x
internal/awsclient          | httpclient                                              | root sqsserver                          | aws
internal/journal            |                                                         | sqsserver                               | pebble
internal/diskfault          |                                                         |                                         | pebble
internal/operate            | interrupt plural terminal                               | root plan repriselambda retry           | aws
internal/review             |                                                         | plan retry                              |
internal/simreport          | yamltext                                                | retry simulate                          | yaml
internal/playground         | simreport                                               | plan retry simulate                     |
internal/redrive            | interrupt operate terminal                              | root repriselambda sqsserver            | aws

demo                        | demo interrupt                                          |                                         |
internal/demo               | forward plural terminal                                 | root examples retry sqsserver           | aws
internal/forward            | children httpclient terminal                            | root                                    |

internal/lambda/stack       | lambda/build lambda/emulator lambda/mapping             | sqsserver                               |
                            | lambda/table lambda/template                            |                                         |
internal/lambda/mapping     | lambda/emulator                                         | sqsserver                               |
internal/lambda/emulator    | children plural                                         | sqsserver                               |
internal/lambda/build       | children lambda/template                                |                                         |
internal/lambda/table       |                                                         | sqsserver                               |
internal/lambda/template    | plural yamltext                                         |                                         | yaml

internal/children           |                                                         |                                         | x
internal/choice             |                                                         |                                         |
internal/eventstream        |                                                         |                                         |
internal/httpclient         |                                                         |                                         |
internal/interrupt          |                                                         |                                         |
internal/plural             |                                                         |                                         |
internal/latency            |                                                         |                                         |
internal/telemetry          |                                                         |                                         | telemetry
internal/terminal           |                                                         |                                         | x
internal/yamltext           |                                                         |                                         | yaml

functions                   |                                                         |                                         |
functions/flaky             |                                                         | repriselambda                           | aws
functions/retryhandler      |                                                         | root adapters/dynamostore idempotency   | aws
                            |                                                         | repriselambda retry                     |
`

// requirements are the short names of the modules that packages may require.
var requirements = map[string][]string{
	"aws":       {"github.com/aws/"},
	"cobra":     {"github.com/spf13/"},
	"pebble":    {"github.com/cockroachdb/pebble/"},
	"telemetry": {"github.com/prometheus/", "go.opentelemetry.io/"},
	"x":         {"golang.org/x/"},
	"yaml":      {"github.com/goccy/go-yaml"},
}

const (
	libraryPath = "github.com/reprise-sqs/reprise"
	modulePath  = libraryPath + "/cmd/reprise"
)

// readArrows returns what each package of the table may import, in the table's words.
func readArrows(t *testing.T) map[string][]string {
	t.Helper()
	permitted := make(map[string][]string)
	from := ""
	_, rows, _ := strings.Cut(strings.TrimSpace(arrows), "\n") // below the heading
	for line := range strings.Lines(rows) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			t.Fatalf("the row %q has %d columns, want 4", line, len(cells))
		}
		if name := strings.TrimSpace(cells[0]); name != "" {
			if _, again := permitted[name]; again {
				t.Errorf("package %s has two rows", name)
			}
			from = name
			permitted[from] = nil
		}
		for _, own := range strings.Fields(cells[1]) {
			permitted[from] = append(permitted[from], "internal/"+own)
		}
		permitted[from] = append(permitted[from], strings.Fields(cells[2]+cells[3])...)
	}
	return permitted
}

// inTable returns the table's word for an import path; "" for Go's own packages.
func inTable(importPath string) string {
	if own, ok := strings.CutPrefix(importPath, modulePath+"/"); ok {
		return own
	}
	if importPath == libraryPath {
		return "root"
	}
	if library, ok := strings.CutPrefix(importPath, libraryPath+"/"); ok {
		return library
	}
	for name, prefixes := range requirements {
		for _, prefix := range prefixes {
			if strings.HasPrefix(importPath, prefix) {
				return name
			}
		}
	}
	if first, _, _ := strings.Cut(importPath, "/"); strings.Contains(first, ".") {
		return importPath // of a module that nobody has permitted
	}
	return ""
}

// TestArrows compares the table with the imports. The library's test of the same name checks the
// arrows between modules.
func TestArrows(t *testing.T) {
	permitted := readArrows(t)
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Env = append(os.Environ(), "GOOS=linux") // some files, and so imports, are of one system
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	unseen := maps.Clone(permitted)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("reading go list's output: %v", err)
		}
		from := "."
		if p.ImportPath != modulePath {
			from = inTable(p.ImportPath)
		}
		may, known := permitted[from]
		if !known {
			t.Errorf("package %s is new: give it a row in arrows_test.go with the packages that it may import, and one in docs/map.md", from)
			continue
		}
		rest := slices.Clone(may)
		for _, imported := range p.Imports {
			to := inTable(imported)
			if to == "" {
				continue
			}
			if !slices.Contains(may, to) {
				t.Errorf("%s imports %s: it may import only %v; see the table in arrows_test.go", from, imported, may)
			}
			rest = slices.DeleteFunc(rest, func(name string) bool { return name == to })
		}
		if unseen[from] = rest; len(rest) == 0 {
			delete(unseen, from)
		}
	}
	for from, rest := range unseen {
		t.Errorf("the table in arrows_test.go lets %s import %v, which it does not: remove that, or the row of a package that is gone", from, rest)
	}
}

// TestLambdaStandsApart: readers of the rest can skip Lambda: only the files lambda*.go of cli
// import its packages, and these import none that serves, journals or forwards.
func TestLambdaStandsApart(t *testing.T) {
	isLambda := func(name string) bool { return strings.HasPrefix(name, "internal/lambda/") }
	smallParts := []string{"internal/children", "internal/plural", "internal/yamltext"}
	for from, may := range readArrows(t) {
		for _, to := range may {
			switch {
			case isLambda(to) && !isLambda(from) && from != "internal/cli":
				t.Errorf("%s may import %s: only the command line may know Lambda on this machine", from, to)
			case isLambda(from) && !isLambda(to) && strings.HasPrefix(to, "internal/") && !slices.Contains(smallParts, to):
				t.Errorf("%s may import %s: what Lambda on this machine needs of a server comes from sqsserver", from, to)
			}
		}
	}
	files, err := filepath.Glob("internal/cli/*.go")
	if err != nil {
		t.Fatal(err)
	}
	apart := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			if !strings.Contains(spec.Path.Value, "/cmd/reprise/internal/lambda/") {
				continue
			}
			if apart++; !strings.HasPrefix(filepath.Base(file), "lambda") {
				t.Errorf("%s imports %s: do that in a file that is called lambda*.go", file, spec.Path.Value)
			}
		}
	}
	if apart == 0 {
		t.Error("no file of the command line imports Lambda on this machine")
	}
}

// TestAttackClientsAreMadeOnce: the rules about replies of others hold for each HTTP client of the program, since
// one package makes them all. Clients of the AWS SDK are made by awsclient, or pass reprise.Tuned, which has the
// same rules.
func TestAttackClientsAreMadeOnce(t *testing.T) {
	const owner = "internal/httpclient/httpclient.go"
	permitted := map[string]string{
		owner:                      "it makes them",
		"internal/admin/inside.go": "it makes no connection",
	}
	makes := regexp.MustCompile(`\bhttp\.(Client\{|DefaultClient\b|Get\(|Head\(|Post\(|PostForm\()`)
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		here := makes.FindString(string(text))
		if _, may := permitted[filepath.ToSlash(file)]; here != "" && !may {
			t.Errorf("%s makes an HTTP client itself, by %s: call httpclient.New or httpclient.Default", file, here)
		} else if may && here == "" {
			t.Errorf("%s makes no HTTP client any more: take it out of the list", file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
