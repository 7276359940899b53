//go:build unix

package main_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNodeWorkerOfThePage runs examples/worker.mjs, to which docs/migrate.md links, with nothing but
// Node: what it does is deleted, and what it can never do is a dead letter with its error.
func TestNodeWorkerOfThePage(t *testing.T) {
	t.Parallel()
	node := installed(t, "node")
	worker, err := filepath.Abs(filepath.Join(root, "examples/worker.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead")
	sendAll(t, endpoint, "orders", "not JSON", `{"id":"o-1"}`)
	p := start(t, "run", "--endpoint", endpoint, "--queue", "orders", "--admin-addr", "none", "--worker", node+" "+worker)
	p.await("shipping o-1")
	if body, story := deadLetter(t, endpoint, "orders-dead"); body != "not JSON" || story.Reason != "permanent" || !strings.Contains(story.Error, "SyntaxError") {
		t.Errorf("dead letter %q, %+v", body, story)
	}
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 || !strings.Contains(output, "1 deleted") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}
