//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTimeline: who comes after the fact reads what happened, the newest last, of all or of a queue; also where nothing may
// be changed, and only with the token where there is one.
func TestTimeline(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "up", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders", "--exec", "false", "--retry", "constant(1h) attempts=1", "--admin-token", "file:"+token, "--admin-read-only")
	endpoint := p.await("SQS endpoint  ")
	asks := func(args ...string) result {
		return reprise(t, "", append([]string{"timeline", "--admin", endpoint, "--admin-token", "file:" + token}, args...)...)
	}
	if got := reprise(t, "", "send", "--endpoint", endpoint, "orders", "x"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
	var all []map[string]any
	var dead string
	for deadline := time.Now().Add(patience); dead == ""; time.Sleep(20 * time.Millisecond) {
		all = records(t, asks().stdout)
		for _, e := range all {
			if e["kind"] == "dead-letters" && e["queue"] == "orders" {
				dead, _ = e["text"].(string)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the timeline has no dead letter: %v", all)
		}
	}
	if first, _ := all[0]["text"].(string); all[0]["kind"] != "start" || !strings.HasPrefix(first, "The process started, version ") {
		t.Errorf("the timeline begins with %v", all[0])
	}
	if !strings.HasPrefix(dead, "A message was dead-lettered, the first since the process began: reason attempts; last error: ") {
		t.Errorf("the dead letter: %s", dead)
	}
	if got := asks("orders", "-o", "table", "--limit", "1"); got.code != 0 || strings.Count(got.stdout, "\n") != 1 || !strings.Contains(got.stdout, "Z  orders: A message was dead-lettered") {
		t.Errorf("of the queue: %+v", got)
	}
	if got := asks("absent", "--since", "1h"); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "nothing happened") {
		t.Errorf("of another queue: %+v", got)
	}
	if got := reprise(t, "", "timeline", "--admin", endpoint); got.code != 1 || !strings.Contains(got.stderr, "token") {
		t.Errorf("without the token: %+v", got)
	}
	for _, args := range [][]string{{"--since", "-1h"}, {"--limit", "0"}, {"--limit", "x"}, {"a", "b"}} {
		if got := asks(args...); got.code != 2 {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := asks("--limit", "1001"); got.code != 1 || !strings.Contains(got.stderr, "limit") {
		t.Errorf("more than there can be: %+v", got)
	}
}
