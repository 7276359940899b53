//go:build unix

package main_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealthOfAServer: reprise health prints the line that GET /health answers with, and
// its exit code reports whether the server works.
func TestHealthOfAServer(t *testing.T) {
	t.Parallel()
	p, endpoint := serve(t)
	for _, addr := range []string{endpoint, endpoint + "/", strings.TrimPrefix(endpoint, "http://")} {
		got := reprise(t, "", "health", addr)
		if want := (result{0, `{"status":"ok","storage":"memory"}` + "\n", ""}); got != want {
			t.Errorf("reprise health %s = %+v, want %+v", addr, got, want)
		}
	}
	p.stop()
	if got := reprise(t, "", "health", endpoint); got.code != 1 || !strings.Contains(got.stderr, "is it running?") {
		t.Errorf("reprise health of a server that has stopped = %+v, want exit code 1 and a question", got)
	}
}

// TestHealthOfWhatFails: a health that is not good is printed too, with exit code 1.
func TestHealthOfWhatFails(t *testing.T) {
	t.Parallel()
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"status":"failing","problem":"no answer"}` + "\n"))
	}))
	t.Cleanup(failing.Close)
	got := reprise(t, "", "health", failing.URL)
	if got.code != 1 || got.stdout != `{"status":"failing","problem":"no answer"}`+"\n" || !strings.Contains(got.stderr, "503 Service Unavailable") {
		t.Errorf("reprise health = %+v, want exit code 1, the answer and its status", got)
	}
}

// TestHealthWaits: --wait asks until the server works.
func TestHealthWaits(t *testing.T) {
	t.Parallel()
	later, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := later.Addr().String()
	later.Close()
	waiting := start(t, "health", "--wait", patience.String(), addr)
	start(t, "serve", "--memory", "--addr", addr).await("SQS endpoint")
	if code, output := waiting.wait(); code != 0 || !strings.Contains(output, `"status":"ok"`) {
		t.Errorf("reprise health --wait = %d, %s; want 0 and a status of ok", code, output)
	}
}
