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

// TestTheLockHandsOutTheCore finds functions that reach a consumer's core but by the
// methods that take its lock. Those that make a consumer have it to themselves.
func TestTheLockHandsOutTheCore(t *testing.T) {
	permitted := []string{"lock", "unlock", "leave", "build", "consumer", "join"}
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
						t.Errorf("%v: %s reaches the core without the lock: use what enter or lock returns", fset.Position(s.Pos()), f.Name.Name)
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
