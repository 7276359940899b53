package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostInACycle is how many files of a package may call each other in a cycle.
const mostInACycle = 3

// TestFilesHaveAnOrder: the files of the shell and of the consumer's machine call files below them,
// so that a reader need not go back and forth. Calls in a function literal do not count: they are
// made later.
func TestFilesHaveAnOrder(t *testing.T) {
	for _, folder := range []string{".", "internal/consumer"} {
		t.Run(folder, func(t *testing.T) { checkOrder(t, callsBetweenFiles(t, folder)) })
	}
}

// checkOrder checks that calls, by file, have no large cycles.
func checkOrder(t *testing.T, calls map[string]map[string]bool) {
	t.Helper()
	if len(calls["work.go"]) == 0 {
		t.Fatal("work.go calls no other file: this test finds no calls")
	}
	reach := make(map[string]map[string]bool)
	for file := range calls {
		reach[file] = make(map[string]bool)
		for next := []string{file}; len(next) > 0; {
			from := next[0]
			next = next[1:]
			for to := range calls[from] {
				if !reach[file][to] {
					reach[file][to] = true
					next = append(next, to)
				}
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(reach)) {
		var cycle []string
		for other := range reach[file] {
			if reach[other][file] {
				cycle = append(cycle, other)
			}
		}
		if slices.Sort(cycle); len(cycle) > mostInACycle {
			t.Errorf("%s is one of %d files that call each other in a circle, %d are permitted: %s", file, len(cycle), mostInACycle, strings.Join(cycle, ", "))
		}
	}
}

// callsBetweenFiles returns, for each file of the package in folder, the files whose functions it uses.
func callsBetweenFiles(t *testing.T, folder string) map[string]map[string]bool {
	t.Helper()
	set := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	uses := make(map[*ast.Ident]types.Object)
	// The other packages are not loaded: this one's functions are known without them.
	check := types.Config{Error: func(error) {}}
	pkg, _ := check.Check(folder, set, files, &types.Info{Uses: uses})
	calls := make(map[string]map[string]bool)
	for _, file := range files {
		from := filepath.Base(set.Position(file.Pos()).Filename)
		calls[from] = make(map[string]bool)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit:
					return false
				case *ast.Ident:
					if called, ok := uses[n].(*types.Func); ok && called.Pkg() == pkg {
						if to := filepath.Base(set.Position(called.Pos()).Filename); to != from {
							calls[from][to] = true
						}
					}
				}
				return true
			})
		}
	}
	return calls
}
