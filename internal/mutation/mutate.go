package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reprise-sqs/reprise/internal/variants"
)

// mutant is one mistake.
type mutant struct {
	number int
	file   string
	line   int
	name   string // FUNCTION: what was -> what is; the same after lines have moved
}

// edit inserts text into a file.
type edit struct {
	at   int
	text string
}

// The rules: the wrong operators for each operator. For a comparison the first one negates it, the
// second moves its bound.
var (
	compared = map[token.Token][]token.Token{
		token.EQL: {token.NEQ},
		token.NEQ: {token.EQL},
		token.LSS: {token.GEQ, token.LEQ},
		token.LEQ: {token.GTR, token.LSS},
		token.GTR: {token.LEQ, token.GEQ},
		token.GEQ: {token.LSS, token.GTR},
	}
	joined     = map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}
	calculated = map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL}
)

// walk visits a function and makes the edits of its mutants.
type walk struct {
	p        *pack
	f        *source
	function string
	mutants  *[]mutant
	names    map[string]int
}

// mutate makes the edits of all mutants of the package, and returns these.
func (p *pack) mutate() []mutant {
	var mutants []mutant
	for _, f := range p.files {
		if *files != "" && !slices.Contains(strings.Split(*files, ","), filepath.Base(f.path)) {
			continue
		}
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			w := &walk{p, f, variants.FuncName(fn), &mutants, make(map[string]int)}
			w.block(fn.Body.List)
		}
	}
	return mutants
}

// add counts a mutant, and returns the condition under which it is the one that runs.
func (w *walk) add(n ast.Node, was, is string) string {
	name := fmt.Sprintf("%s: %s -> %s", w.function, oneLine(was), oneLine(is))
	if w.names[name]++; w.names[name] > 1 {
		name += fmt.Sprintf(" (%d)", w.names[name])
	}
	number := len(*w.mutants) + 1
	*w.mutants = append(*w.mutants, mutant{number, w.f.path, w.p.fset.Position(n.Pos()).Line, name})
	return fmt.Sprintf("mutant_(%d)", number)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (w *walk) text(n ast.Node) string {
	return string(w.f.text[w.offset(n.Pos()):w.offset(n.End())])
}

func (w *walk) offset(p token.Pos) int { return w.p.fset.Position(p).Offset }

// around inserts text before and after a node. Edits inside the node come between.
func (w *walk) around(n ast.Node, before string, inside func(), behind string) {
	w.f.edits = append(w.f.edits, edit{w.offset(n.Pos()), before})
	inside()
	w.f.edits = append(w.f.edits, edit{w.offset(n.End()), behind})
}

func (w *walk) block(list []ast.Stmt) {
	for _, s := range list {
		w.statement(s)
	}
}

// statement mutates a statement in a list of statements.
func (w *walk) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok && w.text(call.Fun) == "panic" {
			w.inside(s)
			return
		}
		w.leaveOut(s)
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE || w.forBlank(s) {
			w.inside(s)
			return
		}
		w.leaveOut(s)
	case *ast.IncDecStmt, *ast.BranchStmt:
		w.leaveOut(s)
	case *ast.LabeledStmt:
		w.inside(s)
	default:
		w.inside(s)
	}
}

func (w *walk) forBlank(s *ast.AssignStmt) bool {
	return !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { return w.text(e) != "_" })
}

func (w *walk) leaveOut(s ast.Stmt) {
	if b, ok := s.(*ast.BranchStmt); ok && b.Tok != token.CONTINUE && b.Tok != token.BREAK {
		return
	}
	condition := w.add(s, w.text(s), "nothing")
	w.around(s, "if !"+condition+" { ", func() { w.inside(s) }, " }")
}

// inside mutates the parts of a node.
func (w *walk) inside(n ast.Node) {
	ast.Inspect(n, func(child ast.Node) bool {
		if child == nil || child == n {
			return true
		}
		switch c := child.(type) {
		case *ast.BlockStmt:
			w.block(c.List)
			return false
		case *ast.CaseClause:
			for _, e := range c.List {
				w.expression(e)
			}
			w.block(c.Body)
			return false
		case *ast.CommClause:
			w.block(c.Body)
			return false
		case ast.Expr:
			w.expression(c)
			return false
		}
		return true
	})
}

// expression mutates an expression and its parts.
func (w *walk) expression(e ast.Expr) {
	known := w.p.info.Types[e]
	if known.Value != nil || known.IsType() { // a reader checks a constant
		if w.isBool(e) && (w.text(e) == "true" || w.text(e) == "false") {
			w.around(e, "(", func() {}, " != "+w.add(e, w.text(e), "not "+w.text(e))+")")
		}
		return
	}
	switch e := e.(type) {
	case *ast.FuncLit:
		w.block(e.Body.List)
	case *ast.BinaryExpr:
		w.binary(e)
	case *ast.UnaryExpr:
		if e.Op == token.NOT && w.isBool(e) {
			condition := w.add(e, w.text(e), w.text(e.X))
			w.around(e, "(", func() { w.inside(e) }, " != "+condition+")")
			return
		}
		w.inside(e)
	case *ast.KeyValueExpr:
		w.expression(e.Value)
	default:
		w.inside(e)
	}
}

func (w *walk) isBool(e ast.Expr) bool {
	t := w.p.info.Types[e].Type
	return t != nil && (types.Identical(t, types.Typ[types.Bool]) || types.Identical(t, types.Typ[types.UntypedBool]))
}

func (w *walk) binary(e *ast.BinaryExpr) {
	left, right := w.text(e.X), w.text(e.Y)
	var instead strings.Builder
	replace := func(op token.Token) {
		is := left + " " + op.String() + " " + right
		fmt.Fprintf(&instead, "if %s { return %s }; ", w.add(e, w.text(e), is), is)
	}
	result := "bool"
	switch {
	case compared[e.Op] != nil && w.isBool(e):
		for _, op := range compared[e.Op] {
			replace(op)
		}
	case joined[e.Op] != 0 && w.isBool(e):
		replace(joined[e.Op])
	case calculated[e.Op] != 0 && w.isNumber(e):
		replace(calculated[e.Op])
		result = types.TypeString(w.p.info.Types[e].Type, types.RelativeTo(w.p.types))
		if i := strings.LastIndex(result, "/"); i >= 0 {
			result = result[i+1:] // another package's, by its name
		}
	default:
		w.inside(e)
		return
	}
	w.around(e, "(func() "+result+" { "+instead.String()+"return ", func() { w.inside(e) }, " }())")
}

func (w *walk) isNumber(e ast.Expr) bool {
	t := w.p.info.Types[e].Type
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0 && b.Info()&types.IsUntyped == 0
}

// The variables of the environment that the test binary reads.
const (
	mutantName = "MUTATION_MUTANT"
	seenName   = "MUTATION_SEEN"
	limitName  = "MUTATION_LIMIT"
)

// selector is added to the package. A mutated place asks mutant_ whether it is to be wrong. Without a
// mistake that is noted, and how often mutant_ is asked, to a factor of two. With one,
// a test that asks more often than the limit is ended.
const selector = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

var (
	mutantNow_, _   = strconv.Atoi(os.Getenv("` + mutantName + `"))
	mutantLimit_, _ = strconv.ParseInt(os.Getenv("` + limitName + `"), 10, 64)
	mutantAsked_    atomic.Int64
	mutantFile_     = mutantNotes_(os.Getenv("` + seenName + `")) // no init function: what sets variables may ask before
)

var mutantsSeen_ struct {
	sync.Mutex
	known [%d]bool
	asked, noted int64
}

func mutantNotes_(name string) (file *os.File) {
	if name != "" {
		file, _ = os.Create(name)
	}
	return file
}

func mutant_(n int) bool {
	if mutantFile_ != nil {
		mutantSeen_(n)
	} else if mutantAsked_.Add(1) > mutantLimit_ {
		os.Exit(2)
	}
	return n == mutantNow_
}

func mutantSeen_(n int) {
	s := &mutantsSeen_
	s.Lock()
	defer s.Unlock()
	if !s.known[n] {
		s.known[n] = true
		fmt.Fprintln(mutantFile_, "reached", n)
	}
	if s.asked++; s.asked >= 2*s.noted {
		s.noted = s.asked
		fmt.Fprintln(mutantFile_, "asked", s.asked)
	}
}
`

// overlay returns the mutated files.
func (p *pack) overlay() variants.Overlay {
	overlay := make(variants.Overlay)
	most := 1
	for _, f := range p.files {
		most += len(f.edits)
		slices.SortStableFunc(f.edits, func(a, b edit) int { return a.at - b.at })
		var text strings.Builder
		done := 0
		for _, e := range f.edits {
			text.Write(f.text[done:e.at])
			text.WriteString(e.text)
			done = e.at
		}
		text.Write(f.text[done:])
		overlay[f.path] = []byte(text.String())
	}
	overlay[filepath.Join(p.Dir, "mutants_overlay.go")] = fmt.Appendf(nil, selector, p.types.Name(), 4*most)
	return overlay
}
