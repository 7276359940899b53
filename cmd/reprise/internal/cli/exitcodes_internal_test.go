package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestExitCodes: the table has each exit code of the package once, in order, and the help shows it behind the usage.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("exitcodes.go")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "exitcodes.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[int]string{130: "SIGINT", 143: "SIGTERM"}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && strings.HasPrefix(spec.Names[0].Name, "exit") && len(spec.Values) == 1 {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				code, err := strconv.Atoi(value.Value)
				if err != nil {
					t.Error(err)
				}
				declared[code] = spec.Names[0].Name
			}
		}
		return true
	})
	last := -1
	for _, e := range exitMeanings {
		if declared[e.code] == "" || e.code <= last {
			t.Errorf("exit code %d is unknown, a second time in the table, or behind a greater one", e.code)
		}
		delete(declared, e.code)
		last = e.code
	}
	if len(declared) > 0 {
		t.Errorf("the table of exit codes has no %v", declared)
	}

	var help strings.Builder
	root := Commands()
	root.SetOut(&help)
	if err := root.Help(); err != nil {
		t.Fatal(err)
	}
	if usage, codes := strings.Index(help.String(), "Usage:"), strings.Index(help.String(), ExitCodes()); usage < 0 || codes < usage {
		t.Errorf("the help has its usage at %d and the exit codes at %d:\n%s", usage, codes, help.String())
	}
}

// TestCommandsAreGrouped: the help lists each command in a group.
func TestCommandsAreGrouped(t *testing.T) {
	t.Parallel()
	for _, cmd := range Commands().Commands() {
		if cmd.GroupID == "" {
			t.Errorf("reprise %s is in no group", cmd.Name())
		}
	}
}

// TestQueuesAreCompleted: each command whose usage has a queue completes its name.
func TestQueuesAreCompleted(t *testing.T) {
	t.Parallel()
	found := 0
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			each(sub)
		}
		if !regexp.MustCompile(`\b(QUEUE|FROM|TO)\b`).MatchString(cmd.Use) {
			return
		}
		found++
		if cmd.ValidArgsFunction == nil {
			t.Errorf("%q takes a queue, and does not complete its name", cmd.Use)
		}
	}
	each(Commands())
	if found < 20 {
		t.Errorf("%d commands take queues, want 20 at least", found)
	}
}
