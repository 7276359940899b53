package reprise

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/internal/alarms"
)

// TestTheLockHandsOutTheCore finds functions that use a consumer's machine without one of the
// methods that take its lock. Functions that make a consumer are exempt, because no other goroutine
// has it yet.
func TestTheLockHandsOutTheCore(t *testing.T) {
	permitted := []string{"lock", "leave", "startEffects", "arm", "build", "consumer", "admit", "closed", "checkRetryLane"}
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

// TestAlarmThatPanics: a panic in one alarm ends neither the process nor the leases of other
// messages.
func TestAlarmThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(struct{ Client }{}, "https://sqs.eu-west-1.amazonaws.com/1/q",
			HandlerFunc(func(context.Context, *Message) error { return nil }), Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		m := c.enter()
		m.Start(true)
		// Only a mistake in the machine makes an alarm panic, so the test makes one.
		fields := reflect.ValueOf(m).Elem()
		keeping := (*alarms.Alarm)(fields.FieldByName("keeping").Addr().UnsafePointer())
		clock := (*alarms.Clock)(fields.FieldByName("alarms").Addr().UnsafePointer())
		keeping.Do = func(now time.Time) {
			kept++
			clock.Set(keeping, now.Add(time.Minute))
			if kept == 2 {
				panic("a mistake")
			}
		}
		keeping.Do(m.Now())
		clock.Stop(keeping) // as one that panics before it is set again
		clock.After(m.Now().Add(time.Second), func(time.Time) { panic("a mistake") })
		c.leave()
		time.Sleep(10 * time.Minute)
		c.lock()
		looks := kept
		c.unlock()
		if looks < 9 {
			t.Errorf("leases were looked at %d times in ten minutes after a panic, want about once a minute", looks)
		}
		if s := c.Status(); s.Health != HealthDegraded || !strings.Contains(s.Problem, "timer panicked") {
			t.Errorf("the health is %v, %q: want degraded, and a word of the panic", s.Health, s.Problem)
		}
	})
}
