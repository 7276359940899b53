//go:build unix

package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The attacker answers each request with 101 Switching Protocols, and keeps the connection open.

// switching starts the attacker, and returns its URL.
func switching(t *testing.T) string {
	t.Helper()
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		<-done
	}))
	t.Cleanup(func() {
		close(done)
		server.Close()
	})
	return server.URL
}

const switched = "101 Switching Protocols"

// TestAttackSwitchingProtocols: a command that gets such a reply ends with an error that says so, whatever it called:
// SQS, Lambda, a process's admin API, or its health.
func TestAttackSwitchingProtocols(t *testing.T) {
	t.Parallel()
	attacker := switching(t)
	for _, args := range [][]string{
		{"run", "--queue", "orders", "--url", "http://127.0.0.1:9/", "--admin-addr", "none", "--endpoint", attacker},
		{"send", "orders", "hello", "--endpoint", attacker},
		{"peek", "orders", "--endpoint", attacker},
		{"search", "orders", "--body", "x", "--endpoint", attacker},
		{"dead", "orders", "--endpoint", attacker},
		{"redrive", "orders", "--endpoint", attacker},
		{"queues", "--endpoint", attacker},
		{"lambda", "invoke", "orders", "--endpoint", attacker},
		{"stats", "--admin", attacker},
		{"consumers", "--admin", attacker},
		{"jobs", "--admin", attacker},
		{"tail", "--admin", attacker},
		{"wake", "orders", "--admin", attacker},
		{"health", attacker},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			p := start(t, args...)
			code, output := p.wait() // which kills it if it hangs
			if code <= 0 || !strings.Contains(output, switched) {
				t.Errorf("%v: exit code %d: %s, want an error about %s", args, code, output, switched)
			}
		})
	}
}

// TestAttackSwitchingTarget: a target or a function that answers so fails the attempt, long before the handler's
// timeout, and holds up no stop.
func TestAttackSwitchingTarget(t *testing.T) {
	t.Parallel()
	attacker := switching(t)
	for name, more := range map[string][]string{
		"a target":   {"--url", attacker},
		"a function": {"--lambda", "work"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startIn(t, environment("AWS_ENDPOINT_URL_LAMBDA="+attacker), append([]string{"up", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders", "--timeout", "1h", "--retry", "attempts=1"}, more...)...)
			endpoint := p.await("SQS endpoint")
			sendAll(t, endpoint, "orders", "body")
			p.await(switched)
			p.signal(os.Interrupt)
			if code, output := p.wait(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, output)
			}
		})
	}
}

// TestAttackSecondSignal: the second signal ends a command that hangs where no context reaches it, here in a write of
// a message to a reader that has stopped reading.
func TestAttackSecondSignal(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q")
	sendAll(t, endpoint, "q", strings.Repeat("x", 100<<10)) // more than a pipe has room for
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := exec.Command(program(t), "peek", "q", "--endpoint", endpoint, "-o", "json")
	cmd.Env, cmd.Stdout = environment(), writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	killer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer killer.Stop()
	if _, err := reader.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if code := exitCode(t, cmd.Wait()); code != 130 && code != 143 {
		t.Errorf("exit code %d, want that of a program that was stopped by a second signal", code)
	}
}
