package delivery

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/httpclient"
)

// TestAttackSwitchingProbe: a probe that is answered with 101 Switching Protocols has failed, and does not hang: its
// body would be the bare connection, of which no context ends a read.
func TestAttackSwitchingProbe(t *testing.T) {
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
	defer server.Close()
	defer close(done)
	ask, err := probe(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- ask(t.Context(), "") }()
	select {
	case err := <-answered:
		if !errors.Is(err, httpclient.ErrSwitching) {
			t.Errorf("the probe = %v, want ErrSwitching", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the probe hangs")
	}
}
