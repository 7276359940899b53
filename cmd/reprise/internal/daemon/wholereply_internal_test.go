package daemon

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
)

// countingListener counts the writes to its connections.
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

// serveWhole serves replies of so many bytes as the parameter n says. Each handler says
// whether it learned that its reply could not be written.
func serveWhole(t *testing.T, writes *atomic.Int64, fail *atomic.Bool) (get func(n int) ([]byte, error), learned chan bool) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	learned = make(chan bool, 1)
	server := newHTTPServer(wholeReplies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		w.Header().Set("Content-Length", strconv.Itoa(n))
		_, err := w.Write(bytes.Repeat([]byte("x"), n))
		learned <- errors.Is(errors.Join(err, http.NewResponseController(w).Flush()), errBroken)
	})), slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(wholeListener{countingListener{listener, writes, fail}}) }() // until Close
	t.Cleanup(func() { server.Close() })
	return func(n int) ([]byte, error) {
		r, err := http.Get("http://" + listener.Addr().String() + "/?n=" + strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		defer r.Body.Close()
		return io.ReadAll(r.Body)
	}, learned
}

// aroundTheBuffer are sizes of replies. With every length of the header, one of them fills the
// buffer to the last byte.
func aroundTheBuffer() (sizes []int) {
	for n := replyBuffer - 300; n <= replyBuffer; n++ {
		sizes = append(sizes, n)
	}
	return sizes
}

// TestRepliesAreWrittenWhole: a reply is one write, unless it is too long to be copied.
func TestRepliesAreWrittenWhole(t *testing.T) {
	var writes atomic.Int64
	get, learned := serveWhole(t, &writes, new(atomic.Bool))
	for _, n := range append(aroundTheBuffer(), 1, 2000, 8192, 14_000, 60_000, 1<<20) {
		writes.Store(0)
		if reply, err := get(n); err != nil || len(reply) != n {
			t.Fatalf("a reply of %d bytes has %d: %v", n, len(reply), err)
		}
		if <-learned {
			t.Errorf("the handler of a reply of %d bytes learned that it was not written", n)
		}
		if got := writes.Load(); got != 1 && n < maxKept || got > 2 {
			t.Errorf("a reply of %d bytes took %d writes", n, got)
		}
	}
}

// TestHandlersLearnWhatCouldNotBeWritten, and their clients do not wait.
func TestHandlersLearnWhatCouldNotBeWritten(t *testing.T) {
	var fail atomic.Bool
	fail.Store(true)
	get, learned := serveWhole(t, new(atomic.Int64), &fail)
	for _, n := range append(aroundTheBuffer(), 1, 8192, 14_000, 1<<20) {
		if reply, err := get(n); err == nil {
			t.Errorf("%d bytes of a reply of %d came through a broken connection", len(reply), n)
		}
		if !<-learned {
			t.Errorf("the handler of a reply of %d bytes did not learn that it could not be written", n)
		}
	}
}

type nowhere struct{ net.Conn }

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func TestLongRepliesAreNotCopied(t *testing.T) {
	conn := &wholeConn{Conn: nowhere{}, keeps: true}
	first, rest := make([]byte, replyBuffer), make([]byte, 10<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = conn.Write(first)
	_, _ = conn.Write(rest)
	conn.release()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("a reply of 10 MiB took %d bytes", n)
	}
}
