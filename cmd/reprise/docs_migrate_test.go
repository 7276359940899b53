//go:build unix

package main_test

import (
	"strings"
	"syscall"
	"testing"
)

// TestNodeWorkerOfThePage runs the worker of docs/migrate.md as it stands there, with nothing but
// Node: what it does is deleted, and what it can never do is a dead letter with its error.
func TestNodeWorkerOfThePage(t *testing.T) {
	t.Parallel()
	node := installed(t, "node")
	var worker string
	for _, b := range blocks(t, "docs/migrate.md") {
		if strings.HasPrefix(b.text, "// worker.mjs\n") {
			worker = written(t, "worker.mjs", b.text)
		}
	}
	if worker == "" {
		t.Fatal("docs/migrate.md has no worker.mjs")
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
