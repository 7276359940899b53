// The attacker is a server that answers a request of the program with anything.

package httpclient_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/httpclient"
)

// TestAttackSwitchedConnection: a reply 101 Switching Protocols is an error at once, the
// connection is closed.
func TestAttackSwitchedConnection(t *testing.T) {
	closed := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // of a test that fails
		_, err = conn.Read(make([]byte, 1))
		closed <- err
	}))
	defer server.Close()
	reply, err := httpclient.Default().Get(server.URL)
	if err == nil {
		reply.Body.Close()
	}
	if !errors.Is(err, httpclient.ErrSwitching) {
		t.Errorf("Get = %v, want ErrSwitching", err)
	}
	if timeout, ok := errors.AsType[net.Error](<-closed); ok && timeout.Timeout() {
		t.Errorf("the connection stayed open: %v", timeout)
	}
}

// TestAttackHeadersOfAReply: a head of more than 64 KiB is an error, so that a server cannot
// make each connection hold 10 MiB. One of 60 KiB is accepted.
func TestAttackHeadersOfAReply(t *testing.T) {
	for size, fits := range map[int]bool{60 << 10: true, 70 << 10: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", size))
		}))
		defer server.Close()
		reply, err := httpclient.Default().Get(server.URL)
		if err == nil {
			reply.Body.Close()
		}
		if (err == nil) != fits {
			t.Errorf("a head of %d bytes: %v, want it accepted: %v", size, err, fits)
		}
	}
}

// TestAttackRedirectedClient: a redirect is a reply like any other.
func TestAttackRedirectedClient(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the other server got %s", r.URL) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	reply, err := httpclient.Default().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("status %d, want that of the redirect", reply.StatusCode)
	}
}
