//go:build unix

package main_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// TestBench: reprise bench measures queues of the server, and leaves them as they were.
func TestBench(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "scratch", "--queue", "scratch.fifo", "--queue", "full")
	sendJSON(t, endpoint, "full", "{}", nil)
	for _, test := range []struct {
		args []string
		code int
		want []string
		left string // in the queue
	}{
		{[]string{"scratch", "--messages", "300", "-o", "table"}, 0, []string{"300 messages of 1024 bytes to ", "sent ", "300", "end to end", "requests a message (", "for a million messages (list price"}, "0"},
		{[]string{"scratch.fifo", "--messages", "50", "--groups", "3", "--size", "2000", "--request-price", "0.7", "-o", "table"}, 0, []string{"50 messages of 2000 bytes in 3 groups", "(--request-price)"}, "0"},
		{[]string{"scratch", "--messages", "30", "--for", "1h", "--rate", "20", "-o", "table"}, 0, []string{"30 messages"}, "0"},
		{[]string{"full", "--messages", "10"}, 1, []string{`queue "full" holds 1 message`, "raises their receive counts", "--yes"}, "1"},
		{[]string{"full", "--messages", "10", "--yes", "-o", "table"}, 0, []string{"10 messages", "1 message of others"}, "0"}, // in flight, for 30 s
		{[]string{"absent"}, 5, []string{`"absent" does not exist`}, ""},
		{[]string{"scratch", "--size", "12"}, 2, []string{"--size is 12: pass 128 to 1048576 bytes"}, "0"},
		{[]string{"scratch", "--messages", "-1"}, 2, []string{"--messages is -1"}, "0"},
		{[]string{"scratch", "--rate", "-1"}, 2, []string{"--rate is -1"}, "0"},
		{[]string{"scratch", "--senders", "0"}, 2, []string{"--senders is 0: pass 1 to 256"}, "0"},
		{[]string{"scratch", "--request-price", "-1"}, 2, []string{"--request-price is -1"}, "0"},
		{nil, 2, []string{"reprise bench --help"}, ""},
	} {
		r := reprise(t, "", append(append([]string{"bench"}, test.args...), "--endpoint", endpoint)...)
		text := r.stdout + r.stderr
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("bench %q does not print %q:\n%s", test.args, want, text)
			}
		}
		if r.code != test.code {
			t.Errorf("bench %q: exit code %d, want %d:\n%s", test.args, r.code, test.code, text)
		}
		if test.left != "" {
			if visible, _ := visibleIn(t, endpoint, test.args[0]); visible != test.left {
				t.Errorf("bench %q: %s messages are visible, want %s", test.args, visible, test.left)
			}
		}
	}
}

// TestBenchStopped: Ctrl-C ends the sending; what was sent is deleted, and what was measured printed.
func TestBenchStopped(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "scratch")
	cmd := exec.Command(program(t), "bench", "scratch", "--for", "1h", "--rate", "50", "--endpoint", endpoint, "-o", "json")
	cmd.Env = environment()
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var stats admin.Stats
		r := reprise(t, "", "stats", "--admin", endpoint, "-o", "json")
		if err := json.Unmarshal([]byte(r.stdout), &stats); err != nil {
			t.Fatalf("%v: %s%s", err, r.stdout, r.stderr)
		}
		if q := stats.Queues; len(q) == 1 && q[0].Traffic != nil && q[0].Traffic.Deleted > 20 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the bench deletes no messages: %s", r.stdout)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code := exitCode(t, cmd.Wait())
	var report struct {
		Messages struct{ Sent, Deleted, Left int }
		Cost     struct{ Dollars float64 }
	}
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil {
		t.Fatalf("exit code %d: %v:\n%s%s", code, err, out.String(), problems.String())
	}
	visible, hidden := visibleIn(t, endpoint, "scratch")
	if m := report.Messages; code != 0 || m.Sent == 0 || m.Deleted != m.Sent || m.Left != 0 || report.Cost.Dollars <= 0 || visible != "0" || hidden != "0" {
		t.Errorf("exit code %d, %+v, %s visible and %s in flight:\n%s", code, report, visible, hidden, problems.String())
	}
}
