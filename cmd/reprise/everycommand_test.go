//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/cli"
)

// TestEveryCommand: some test runs each command of the program, as a list of arguments or on a
// page whose sessions are typed; and each command refuses a flag that it does not have, with exit
// code 2 and where its flags are described.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for page := range sessionPages {
		sources = append(sources, filepath.Join(root, page))
	}
	var all strings.Builder
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	tests := all.String()

	found := 0
	eachCommand(cli.Commands(), nil, func(words []string) {
		found++
		asArguments, typed := `"`+strings.Join(words, `", "`)+`"`, "reprise "+strings.Join(words, " ")
		if !strings.Contains(tests, asArguments) && !strings.Contains(tests, typed) {
			t.Errorf("no test runs %s", strings.Join(words, " "))
		}
		r := reprise(t, "", append(words, "--no-such-flag")...)
		if help := "reprise " + strings.Join(words, " ") + " --help"; r.code != 2 || !strings.Contains(r.stderr, "--no-such-flag") || !strings.Contains(r.stderr, help) {
			t.Errorf("%s --no-such-flag ends with %d, want 2 and a pointer to %q:\n%s", strings.Join(words, " "), r.code, help, r.stderr)
		}
	})
	if found < 40 {
		t.Errorf("%d commands, want 40 at least", found)
	}
}

// eachCommand calls visit with the words of every command below c that does something itself.
func eachCommand(c *cobra.Command, words []string, visit func(words []string)) {
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue // cobra's own
		}
		path := append(words[:len(words):len(words)], sub.Name())
		if sub.Runnable() {
			visit(path)
		}
		eachCommand(sub, path, visit)
	}
}
