package sqsserver

// Holds off: a client without a key, which may open connections and send any bytes, or
// none.

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAttackBodyThatDoesNotCome: the room for a body is that of what has come, not of what
// its Content-Length announces.
func TestAttackBodyThatDoesNotCome(t *testing.T) {
	s := New(Config{})
	t.Cleanup(func() { s.Close() })
	for _, c := range []struct{ came, most int }{{10, 8 << 10}, {100 << 10, 512 << 10}} {
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader(strings.Repeat("x", c.came)), stopped{}))
		r.ContentLength = maxRequestSize
		e := new(exchange)
		if _, err := e.read(httptest.NewRecorder(), r, &s.bodies); err == nil {
			t.Error("half a body was taken for a whole one")
		}
		if got := e.request.Cap(); got > c.most {
			t.Errorf("for %d bytes there is room of %d, want at most %d", c.came, got, c.most)
		}
		e.free()
	}
	if n := s.bodies.Load(); n != 0 {
		t.Errorf("%d bytes are held by nobody", n)
	}
}

type stopped struct{}

func (stopped) Read([]byte) (int, error) { return 0, errors.New("the client is gone") }

// TestAttackBodiesInAll: while others hold as many bytes as there may be, small requests
// are served and large ones are refused with what clients retry; they hold nothing then.
func TestAttackBodiesInAll(t *testing.T) {
	s := New(Config{})
	t.Cleanup(func() { s.Close() })
	send := func(size int) int {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"QueueNamePrefix":"q"`+strings.Repeat(" ", size)+`}`))
		r.Host = "localhost"
		r.Header.Set("X-Amz-Target", "AmazonSQS.ListQueues")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	s.bodies.Store(maxBodies - 10<<10)
	if small, large := send(1<<10), send(100<<10); small != http.StatusOK || large != http.StatusServiceUnavailable {
		t.Errorf("status %d of a small request, %d of a large one, want 200 and 503", small, large)
	}
	if n := s.bodies.Load(); n != maxBodies-10<<10 {
		t.Errorf("%d bytes are held after the requests, want as many as before", n)
	}
	s.bodies.Store(0)
	if status := send(100 << 10); status != http.StatusOK {
		t.Errorf("status %d, want 200", status)
	}
}
