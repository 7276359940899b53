package variants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// source is a file of Go.
type source struct {
	path string
	text []byte
	fset *token.FileSet
	tree *ast.File
}

// original is a file of the original program, with the bodies that variants have for
// its functions, by FuncName.
type original struct {
	*source
	bodies map[string][]body
}

// body is a function's body in a variant.
type body struct {
	function, variant string
	line              int
	text              string // what is between the braces
}

func parse(path string, text []byte) (*source, error) {
	s := &source{path: path, text: text, fset: token.NewFileSet()}
	var err error
	s.tree, err = parser.ParseFile(s.fset, path, text, parser.SkipObjectResolution)
	return s, err
}

// FuncName returns the name of a function, with its receiver's type if it is a method:
// Type.Method.
func FuncName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.Ident:
			return u.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// between returns the text from one position to another.
func (s *source) between(from, to token.Pos) string {
	return string(s.text[s.offset(from):s.offset(to)])
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// functions returns the functions that have a body and a unique name: init and _ may occur several
// times.
func (s *source) functions() map[string]*ast.FuncDecl {
	found := make(map[string]*ast.FuncDecl)
	for _, d := range s.tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && mergeable(fn) {
			found[FuncName(fn)] = fn
		}
	}
	return found
}

func mergeable(fn *ast.FuncDecl) bool {
	return fn.Body != nil && fn.Name.Name != "init" && fn.Name.Name != "_"
}

// outside returns the declarations in their order, without the bodies of functions that
// can be merged.
func (s *source) outside() []string {
	var all []string
	for _, d := range s.tree.Decls {
		end := d.End()
		if fn, ok := d.(*ast.FuncDecl); ok && mergeable(fn) {
			end = fn.Body.Lbrace
		}
		all = append(all, strings.TrimSpace(s.between(d.Pos(), end)))
	}
	return all
}

// differs returns how changed differs from f outside of bodies, or "".
func (f *original) differs(changed *source) string {
	was, is := f.outside(), changed.outside()
	for _, d := range was {
		if !slices.Contains(is, d) {
			return fmt.Sprintf("it changes or takes out %q", missing(d, changed))
		}
	}
	for _, d := range is {
		if !slices.Contains(was, d) {
			return fmt.Sprintf("it adds %q", missing(d, f.source))
		}
	}
	if !slices.Equal(was, is) {
		return "it changes the order of declarations"
	}
	return ""
}

// missing returns the first line of a declaration that s does not have.
func missing(declaration string, s *source) string {
	lines := strings.Split(declaration, "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return !strings.Contains(string(s.text), line) })
	return strings.TrimSpace(lines[max(0, i)])
}

// changes returns the bodies that are others in changed.
func (f *original) changes(changed *source, variant string) []body {
	var bodies []body
	now := changed.functions()
	for name, fn := range f.functions() {
		is := now[name].Body
		if changed.between(is.Lbrace, is.End()) == f.between(fn.Body.Lbrace, fn.Body.End()) {
			continue
		}
		bodies = append(bodies, body{name, variant, changed.fset.Position(is.Lbrace).Line, changed.inside(is, "_"+strings.ReplaceAll(variant, "-", "_"))})
	}
	return bodies
}

// inside returns the text between the braces of a body. The suffix is added to the
// labels in it, because one function gets several bodies.
func (s *source) inside(b *ast.BlockStmt, suffix string) string {
	var ends []token.Pos // of the names of labels
	ast.Inspect(b, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.LabeledStmt:
			ends = append(ends, n.Label.End())
		case *ast.BranchStmt:
			if n.Label != nil {
				ends = append(ends, n.Label.End())
			}
		}
		return true
	})
	slices.Sort(ends)
	var text strings.Builder
	from := b.Lbrace + 1
	for _, end := range ends {
		text.WriteString(s.between(from, end) + suffix)
		from = end
	}
	text.WriteString(s.between(from, b.Rbrace))
	return text.String()
}

// merged returns the text of f in which each function begins with a switch that runs
// the chosen variant's body, if it has one.
//
// Line directives keep the lines of the original. In a variant's body the file is
// called FILE@VARIANT, by which the compiler's errors and stack traces name it.
func (f *original) merged() []byte {
	var text strings.Builder
	base, done := filepath.Base(f.path), f.tree.FileStart
	for _, d := range f.tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !mergeable(fn) || f.bodies[FuncName(fn)] == nil {
			continue
		}
		text.WriteString(f.between(done, fn.Body.Lbrace+1))
		done = fn.Body.Lbrace + 1
		text.WriteString("\nswitch variant_ {\n")
		for _, b := range f.bodies[FuncName(fn)] {
			fmt.Fprintf(&text, "case %q:\n//line %s@%s:%d\n%s\n", b.variant, base, b.variant, b.line, b.text)
			if fn.Type.Results == nil {
				text.WriteString("return\n")
			}
		}
		fmt.Fprintf(&text, "}\n//line %s:%d\n", base, f.fset.Position(fn.Body.Lbrace).Line)
	}
	text.WriteString(f.between(done, f.tree.FileEnd))
	return []byte(text.String())
}
