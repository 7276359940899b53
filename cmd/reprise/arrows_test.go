package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// arrows are the imports between the packages of this module that its design
// permits. A package that is not listed may not exist, so a new one fails here first.
// The parts of lambda up know none of what serves, journals or forwards, and outside of
// these parts only the command line knows them.
var arrows = map[string][]string{
	".":                            {"internal/cli"},
	"demo":                         {"internal/demo", "internal/interrupt"},
	"functions":                    {},
	"functions/flaky":              {},
	"functions/retryhandler":       {},
	"internal/awsclient":           {},
	"internal/children":            {},
	"internal/configfile":          {"internal/daemon", "internal/yamltext"},
	"internal/daemon":              {"internal/awsclient", "internal/journal"},
	"internal/demo":                {"internal/forward", "internal/plural", "internal/terminal"},
	"internal/diskfault":           {},
	"internal/forward":             {"internal/children", "internal/terminal"},
	"internal/interrupt":           {},
	"internal/journal":             {},
	"internal/lambdalocal":         {"internal/children", "internal/plural"},
	"internal/plural":              {},
	"internal/redrive":             {"internal/terminal"},
	"internal/template":            {"internal/plural", "internal/yamltext"},
	"internal/terminal":            {},
	"internal/yamltext":            {},
	"internal/lambdalocal/build":   {"internal/children", "internal/template"},
	"internal/lambdalocal/mapping": {"internal/lambdalocal"},
	"internal/lambdalocal/stack": {
		"internal/lambdalocal", "internal/lambdalocal/build", "internal/lambdalocal/mapping",
		"internal/lambdalocal/table", "internal/template",
	},
	"internal/lambdalocal/table": {},
	"internal/cli": {
		"internal/awsclient", "internal/children", "internal/configfile", "internal/daemon", "internal/demo",
		"internal/diskfault", "internal/forward", "internal/interrupt", "internal/journal", "internal/lambdalocal",
		"internal/lambdalocal/stack", "internal/plural", "internal/redrive", "internal/template",
		"internal/terminal",
	},
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
