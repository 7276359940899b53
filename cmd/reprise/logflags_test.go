//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLogFlags: logs are on the standard error alone, in the form and from the level
// that is asked for.
func TestLogFlags(t *testing.T) {
	t.Parallel()
	needShell(t)
	for _, test := range []struct {
		level     string
		has, lack []string
	}{
		{"debug", []string{"attempt failed", "consuming", "message dead-lettered"}, nil},
		{"info", []string{"consuming", "stopped", "message dead-lettered"}, []string{"attempt failed"}},
		{"warn", []string{"message dead-lettered"}, []string{"consuming", "attempt failed"}},
		{"error", nil, []string{"message dead-lettered", "consuming"}},
	} {
		t.Run(test.level, func(t *testing.T) {
			t.Parallel()
			endpoint := orders(t)
			sendOrders(t, endpoint, 1)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, program(t), "run", "--queue", "orders", "--endpoint", endpoint, "--admin-addr", "none",
				"--exec", "exit 3", "--retry", "constant(1s) jitter=none attempts=2", "--log-level", test.level, "--log-format", "json")
			cmd.Env = environment()
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(patience); inQueue(t, endpoint, "orders-dead") == 0 || inQueue(t, endpoint, "orders") > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("no dead letter")
				}
			}
			cmd.Process.Signal(syscall.SIGTERM)
			if code := exitCode(t, cmd.Wait()); code != 0 {
				t.Errorf("exit code %d", code)
			}
			var messages []string
			for line := range strings.Lines(stderr.String()) {
				var record struct{ Level, Msg string }
				if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "reprise: stopping") {
					continue // for the user who has pressed Ctrl-C
				}
				if err := json.Unmarshal([]byte(line), &record); err != nil {
					t.Errorf("%v: %s", err, line)
				}
				messages = append(messages, record.Msg)
			}
			all := strings.Join(messages, "\n")
			for _, want := range test.has {
				if !strings.Contains(all, want) {
					t.Errorf("the log lacks %q:\n%s", want, all)
				}
			}
			for _, not := range test.lack {
				if strings.Contains(all, not) {
					t.Errorf("the log has %q:\n%s", not, all)
				}
			}
			if strings.Contains(stdout.String(), "{") {
				t.Errorf("a log on the standard output:\n%s", &stdout)
			}
		})
	}
}
