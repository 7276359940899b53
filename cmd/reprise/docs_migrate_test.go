//go:build unix

package main_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWorkersOfThePages runs the workers in examples, to which docs/run.md and docs/migrate.md link,
// with nothing but their interpreters: what they do is deleted, and what they can never do is a dead
// letter with its error.
func TestWorkersOfThePages(t *testing.T) {
	t.Parallel()
	for _, worker := range []struct{ interpreter, file, reports string }{
		{"node", "worker.mjs", "SyntaxError"},
		{"python3", "worker.py", "Expecting value"},
	} {
		t.Run(worker.file, func(t *testing.T) {
			t.Parallel()
			interpreter := installed(t, worker.interpreter)
			file, err := filepath.Abs(filepath.Join(root, "examples", worker.file))
			if err != nil {
				t.Fatal(err)
			}
			_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead")
			sendAll(t, endpoint, "orders", "not JSON", `{"id":"o-1"}`)
			p := start(t, "run", "--endpoint", endpoint, "--queue", "orders", "--admin-addr", "none", "--worker", interpreter+" "+file)
			p.await("shipping o-1")
			if body, story := deadLetter(t, endpoint, "orders-dead"); body != "not JSON" || story.Reason != "permanent" || !strings.Contains(story.Error, worker.reports) {
				t.Errorf("dead letter %q, %+v", body, story)
			}
			p.signal(syscall.SIGTERM)
			if code, output := p.wait(); code != 0 || !strings.Contains(output, "1 deleted") {
				t.Errorf("exit code %d:\n%s", code, output)
			}
		})
	}
}
