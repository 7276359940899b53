package daemon

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
)

// countingListener counts what is written to its connections.
type countingListener struct {
	net.Listener
	writes *atomic.Int64
	fail   *atomic.Bool
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countingConn{conn, l}, err
}

type countingConn struct {
	net.Conn
	of countingListener
}

var errBroken = errors.New("broken")

func (c countingConn) Write(p []byte) (int, error) {
	if c.of.fail.Load() {
		return 0, errBroken
	}
	c.of.writes.Add(1)
	return c.Conn.Write(p)
}

// TestRepliesAreWrittenWhole: a reply is one write whatever its size, and the
// handler learns that it could not be written.
func TestRepliesAreWrittenWhole(t *testing.T) {
	var writes atomic.Int64
	var fail atomic.Bool
	var learned atomic.Value
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newHTTPServer(wholeReplies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		w.Header().Set("Content-Length", strconv.Itoa(n))
		_, err := w.Write(bytes.Repeat([]byte("x"), n))
		learned.Store(errors.Is(errors.Join(err, http.NewResponseController(w).Flush()), errBroken))
	})), slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(wholeListener{countingListener{listener, &writes, &fail}}) }() // until Close
	defer server.Close()
	get := func(n int) (reply []byte, err error) {
		r, err := http.Get("http://" + listener.Addr().String() + "/?n=" + strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		defer r.Body.Close()
		return io.ReadAll(r.Body)
	}

	// Whatever the length of the header, one of these fills the buffer to the last byte.
	sizes := []int{1, 2000, 14_000, 200_000, 4096, 8192}
	for n := replyBuffer - 300; n <= replyBuffer; n++ {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		writes.Store(0)
		if reply, err := get(n); err != nil || len(reply) != n {
			t.Fatalf("a reply of %d bytes has %d: %v", n, len(reply), err)
		}
		if got := writes.Load(); got != 1 {
			t.Errorf("a reply of %d bytes took %d writes", n, got)
		}
	}
	fail.Store(true)
	if reply, err := get(14_000); err == nil {
		t.Errorf("%d bytes came through a broken connection", len(reply))
	}
	if learned.Load() != true {
		t.Error("the handler did not learn that its reply could not be written")
	}
}
