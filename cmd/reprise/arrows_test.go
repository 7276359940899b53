package main_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// arrows are the imports between the packages of this module that its design
// permits. A package that is not listed may not exist, so a new one fails here first.
var arrows = map[string][]string{
	".":                      {"internal/cli"},
	"demo":                   {"internal/demo", "internal/interrupt"},
	"functions":              {},
	"functions/flaky":        {},
	"functions/retryhandler": {},
	"internal/awsclient":     {},
	"internal/children":      {},
	"internal/cli": {
		"internal/awsclient", "internal/children", "internal/configfile", "internal/daemon", "internal/demo",
		"internal/diskfault", "internal/forward", "internal/interrupt", "internal/journal", "internal/lambda/emulator",
		"internal/lambda/stack", "internal/lambda/template", "internal/plural", "internal/redrive",
		"internal/terminal",
	},
	"internal/configfile": {"internal/daemon", "internal/yamltext"},
	"internal/daemon":     {"internal/awsclient", "internal/journal"},
	"internal/demo":       {"internal/forward", "internal/plural", "internal/terminal"},
	"internal/diskfault":  {},
	"internal/forward":    {"internal/children", "internal/terminal"},
	"internal/interrupt":  {},
	"internal/journal":    {},
	"internal/plural":     {},
	"internal/redrive":    {"internal/terminal"},
	"internal/terminal":   {},
	"internal/yamltext":   {},

	// Lambda on this machine: see TestLambdaStandsApart.
	"internal/lambda/build":    {"internal/children", "internal/lambda/template"},
	"internal/lambda/emulator": {"internal/children", "internal/plural"},
	"internal/lambda/mapping":  {"internal/lambda/emulator"},
	"internal/lambda/stack": {
		"internal/lambda/build", "internal/lambda/emulator", "internal/lambda/mapping", "internal/lambda/table",
		"internal/lambda/template",
	},
	"internal/lambda/table":    {},
	"internal/lambda/template": {"internal/plural", "internal/yamltext"},
}

// TestArrows holds the permitted imports between the packages of this module. The
// arrows between modules are held by the library's test of the same name.
func TestArrows(t *testing.T) {
	const module = "github.com/reprise-sqs/reprise/cmd/reprise"
	within := func(importPath string) (string, bool) {
		if importPath == module {
			return ".", true
		}
		return strings.CutPrefix(importPath, module+"/")
	}

	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Env = append(os.Environ(), "GOOS=linux") // some files, and so imports, are of one system
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	unseen := make(map[string][]string)
	for from, permitted := range arrows {
		unseen[from] = slices.Clone(permitted)
	}
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
		from, ok := within(p.ImportPath)
		if !ok {
			continue
		}
		permitted, known := arrows[from]
		if !known {
			t.Errorf("package %s is new: list in arrows_test.go which packages it may import", from)
			continue
		}
		for _, imported := range p.Imports {
			to, ok := within(imported)
			if !ok {
				continue
			}
			if !slices.Contains(permitted, to) {
				t.Errorf("%s imports %s: it may import only %v of this module; see arrows_test.go", from, to, permitted)
			}
			unseen[from] = slices.DeleteFunc(unseen[from], func(name string) bool { return name == to })
		}
		if len(unseen[from]) == 0 {
			delete(unseen, from)
		}
	}
	for from, rest := range unseen {
		t.Errorf("arrows_test.go permits imports %v of package %s that it does not have: remove them", rest, from)
	}
}

// TestLambdaStandsApart holds that who reads about queues need not read about Lambda: only
// the commands of reprise lambda know its packages, in files that say so, and these know
// nothing that serves, journals or forwards.
func TestLambdaStandsApart(t *testing.T) {
	isLambda := func(name string) bool { return strings.HasPrefix(name, "internal/lambda/") }
	smallParts := []string{"internal/children", "internal/plural", "internal/yamltext"}
	for from, permitted := range arrows {
		for _, to := range permitted {
			switch {
			case isLambda(to) && !isLambda(from) && from != "internal/cli":
				t.Errorf("%s may import %s: only the command line may know Lambda on this machine", from, to)
			case isLambda(from) && !isLambda(to) && !slices.Contains(smallParts, to):
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
