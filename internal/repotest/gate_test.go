package repotest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// excused are packages in which nothing runs at once, although they import what has more run.
var excused = map[string]string{
	"plan":                                 "a test reads the methods of reprise.Client, and calls none",
	"cmd/reprise/internal/lambda/template": "a test runs cfn-lint and waits for its end",
	"cmd/reprise/internal/playground":      "of what it uses simulate alone draws with several goroutines, which its own tests do with the detector",
	"cmd/reprise/internal/simreport":       "of what it uses simulate alone draws with several goroutines, which its own tests do with the detector",
}

// TestPackagesWithoutGoroutines: make test runs without the race detector those packages, and all of those, in which
// nothing can run at once: neither the package, nor its tests, nor a package of the project that they import starts a
// goroutine, waits for one, speaks HTTP or starts a process.
func TestPackagesWithoutGoroutines(t *testing.T) {
	packages := withTests(t)
	files := token.NewFileSet()
	starts := make(map[string]string) // the first reason of a package's code, and of its tests
	for name, p := range packages {
		starts[name] = goroutineIn(t, files, p.Dir, p.GoFiles)
		starts[name+" tests"] = goroutineIn(t, files, p.Dir, slices.Concat(p.TestGoFiles, p.XTestGoFiles))
	}
	var alone []string
	for name, p := range packages {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		why := starts[name+" tests"]
		seen := make(map[string]bool)
		var visit func(imported string)
		visit = func(imported string) {
			p, ours := packages[imported]
			if !ours || seen[imported] || why != "" {
				return
			}
			seen[imported] = true
			why = starts[imported]
			for _, next := range p.Imports {
				visit(next)
			}
		}
		visit(name)
		for _, next := range slices.Concat(p.TestImports, p.XTestImports) {
			visit(next)
		}
		rel, _ := within(name)
		if excused[rel] != "" && why == "" {
			t.Errorf("nothing runs at once in %s without its excuse: remove that", rel)
		}
		if why == "" || excused[rel] != "" {
			alone = append(alone, "./"+rel)
		} else if slices.Contains(makeVariable(t, "ALONE"), "./"+rel) {
			t.Errorf("the Makefile's ALONE has ./%s, in which something may run at once: %s", rel, why)
		}
	}
	slices.Sort(alone)
	if got := makeVariable(t, "ALONE"); !slices.Equal(got, alone) {
		t.Errorf("the packages in which nothing runs at once are not those of the Makefile's ALONE. Write there:\nALONE = %s", strings.Join(alone, " "))
	}
}

// TestReleaseRequiresANight: make release asks for the result of a night before it makes anything.
func TestReleaseRequiresANight(t *testing.T) {
	_, rest, _ := strings.Cut(readText(t, "Makefile"), "\nrelease: ")
	recipe, _, found := strings.Cut(rest, "\n\n")
	lines := strings.Split(recipe, "\n")
	if !found || len(lines) < 3 || lines[1] != "\t$(GO) run ./internal/night -check" || !strings.Contains(lines[2], "internal/release") {
		t.Errorf("make release does not begin with the check of the night's result, but is:\n%s", recipe)
	}
}

// makeVariable returns the words that the Makefile gives a variable.
func makeVariable(t *testing.T, name string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` *\??= *((?:.*\\\n)*.*)$`).FindStringSubmatch(readText(t, "Makefile"))
	if m == nil {
		t.Fatalf("the Makefile has no variable %s", name)
	}
	return strings.Fields(strings.ReplaceAll(m[1], "\\\n", " "))
}

// tested is a package of the project, as go list describes it.
type tested struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

// withTests returns the project's packages by their import paths.
func withTests(t *testing.T) map[string]tested {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "work").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := make(map[string]tested)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p tested
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("reading go list's output: %v", err)
		}
		packages[p.ImportPath] = p
	}
}

// goroutineIn returns what in Go files starts a goroutine or a process, or does what has others do so, and where.
// Returns "" if there is nothing.
func goroutineIn(t *testing.T, files *token.FileSet, dir string, names []string) (why string) {
	t.Helper()
	for _, name := range names {
		file, err := parser.ParseFile(files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := func(at token.Pos, what string) {
			if why == "" {
				why = fmt.Sprintf("%s: %s", files.Position(at), what)
			}
		}
		for _, imported := range file.Imports {
			switch path, _ := strconv.Unquote(imported.Path.Value); path {
			case "net/http", "net/http/httptest", "os/exec", "testing/synctest":
				found(imported.Pos(), "imports "+path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found(n.Pos(), "go statement")
			case *ast.SelectorExpr:
				switch n.Sel.Name {
				case "Go", "AfterFunc", "Parallel", "RunParallel":
					found(n.Pos(), "use of "+n.Sel.Name)
				}
			}
			return true
		})
	}
	return why
}
