package reprise

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheLockHandsOutTheCore finds functions that use a consumer's machine without one of the
// methods that take its lock. Functions that make a consumer are exempt, because no other goroutine
// has it yet.
func TestTheLockHandsOutTheCore(t *testing.T) {
	permitted := []string{"enter", "begin", "startEffects", "arm", "build", "consumer", "admit", "closed", "checkRetryLane", "Status", "reportBroken", "brokenStatus"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	fset := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, isFunc := decl.(*ast.FuncDecl)
			if !isFunc {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "guarded" {
					used[f.Name.Name] = true
					if !slices.Contains(permitted, f.Name.Name) {
						t.Errorf("%v: %s reaches the core without the lock: use what enter or look gives you", fset.Position(s.Pos()), f.Name.Name)
					}
				}
				return true
			})
		}
	}
	for _, name := range permitted {
		if !used[name] {
			t.Errorf("%s does not reach the core any more: take it out of the list", name)
		}
	}
}
