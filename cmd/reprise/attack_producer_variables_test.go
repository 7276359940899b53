//go:build unix

// Holds off a producer, who may send messages with any attributes to a queue whose
// messages a command gets.

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// awaitThat waits until a condition holds.
func awaitThat(t *testing.T, what string, so func() bool) {
	t.Helper()
	for begun := time.Now(); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("it never was so: %s", what)
		}
	}
}

// TestAttackVariables: no attribute sets another attribute's variable or a variable that is not
// for attributes, and the command does not see the program's own settings.
func TestAttackVariables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "environment")
	secrets := []string{"REPRISE_ACCESS_KEY=local", "REPRISE_SECRET=hush", "REPRISE_ATTR_STALE=of another message", "TOLD=by the operator"}
	p := startIn(t, environment(append(secrets, "FILE="+file)...), "up", "--memory", "--addr", "127.0.0.1:0", "--no-metrics",
		"--queue", "q", "--exec", `env >"$FILE.new"; mv "$FILE.new" "$FILE"`)
	endpoint := p.await("SQS endpoint")
	send := startIn(t, environment("AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=hush"), "send", "--endpoint", endpoint, "q", "body",
		"--attribute", "a.b=dot", "--attribute", "a_b=underscore", "--attribute", "traceId=plain",
		"--attribute", "Case=upper", "--attribute", "case=lower", "--attribute", "PATH=/evil", "--attribute", "LD_PRELOAD=evil.so")
	if code, output := send.wait(); code != 0 {
		t.Fatalf("send: exit code %d: %s", code, output)
	}
	p.await("attribute left out") // by the first run
	var text []byte
	awaitThat(t, "the command has run", func() (ran bool) {
		var err error
		text, err = os.ReadFile(file)
		return err == nil
	})
	variables := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		variables[name] = value
	}
	for name, want := range map[string]string{
		"REPRISE_ATTR_TRACEID": "plain", "REPRISE_ATTR_PATH": "/evil", "REPRISE_ATTR_LD_PRELOAD": "evil.so", "REPRISE_LEFT_OUT": "4",
		"TOLD": "by the operator", "PATH": os.Getenv("PATH"),
	} {
		if variables[name] != want {
			t.Errorf("%s is %q, want %q", name, variables[name], want)
		}
	}
	for _, name := range []string{"REPRISE_ATTR_A_B", "REPRISE_ATTR_CASE", "REPRISE_ATTR_STALE", "REPRISE_SECRET", "REPRISE_ACCESS_KEY", "LD_PRELOAD"} {
		if value, set := variables[name]; set {
			t.Errorf("%s is set: %q", name, value)
		}
	}
	var all map[string]string
	if err := json.Unmarshal([]byte(variables["REPRISE_ATTRIBUTES"]), &all); err != nil || len(all) != 7 ||
		all["a.b"] != "dot" || all["a_b"] != "underscore" || all["Case"] != "upper" || all["case"] != "lower" {
		t.Errorf("REPRISE_ATTRIBUTES is %s: %v", variables["REPRISE_ATTRIBUTES"], err)
	}
	p.stop()
}
