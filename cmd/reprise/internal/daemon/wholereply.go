package daemon

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// net/http gathers a reply in a buffer of 4 KiB. A longer one, ten messages say, is
// written in two: the full buffer, then the rest. Each is a system call, and wakes
// the client up: together a sixth of the processor time of a receive. So while a
// handler of wholeReplies runs, its connection keeps a full buffer back for what
// follows it.

// replyBuffer is the size of the buffer in net/http. With another one everything
// is written as it comes.
const replyBuffer = 4 << 10

// wholeReplies has the handler's replies written in one piece, over connections of
// a wholeListener. The handler must give a Content-Length, and must not stream.
func wholeReplies(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(wholeKey{}).(*wholeConn); ok {
			conn.keeps = true
			defer conn.release()
		}
		handler.ServeHTTP(w, r)
	})
}

type wholeKey struct{}

// knowConn lets wholeReplies find the connection of a request. It is an
// http.Server.ConnContext. The connection of HTTPS is another: what is encrypted
// cannot be told apart.
func knowConn(ctx context.Context, conn net.Conn) context.Context {
	if whole, ok := conn.(*wholeConn); ok {
		return context.WithValue(ctx, wholeKey{}, whole)
	}
	return ctx
}

type wholeListener struct{ net.Listener }

func (l wholeListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &wholeConn{Conn: conn}, nil
}

// wholeConn is a connection to which one goroutine writes at a time.
type wholeConn struct {
	net.Conn
	keeps bool
	kept  *[]byte // nil: nothing
}

var keptBuffers = sync.Pool{New: func() any { return new([]byte) }}

// maxKept is the rest of a reply from which on it is not copied, and keeps a buffer from
// holding more memory.
const maxKept = 64 << 10

// Write writes p, or keeps it if it is a full buffer and more of the reply follows. What
// follows is not copied if it is so long that a write more costs nothing.
func (c *wholeConn) Write(p []byte) (int, error) {
	switch {
	case c.kept != nil && len(p) > maxKept:
		if err := c.writeKept(); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	case c.kept != nil:
		*c.kept = append(*c.kept, p...)
		return len(p), c.writeKept()
	case c.keeps && len(p) == replyBuffer && !isWhole(p):
		c.kept = keptBuffers.Get().(*[]byte)
		*c.kept = append((*c.kept)[:0], p...)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// isWhole says whether p is a reply to its end: nothing would follow it but the end of
// the handler, who must learn before whether it could be written.
func isWhole(p []byte) bool {
	head, body, _ := bytes.Cut(p, []byte("\r\n\r\n"))
	_, length, _ := bytes.Cut(head, []byte("\r\nContent-Length: "))
	length, _, _ = bytes.Cut(length, []byte("\r\n"))
	n, err := strconv.Atoi(string(length))
	return err == nil && n == len(body)
}

// release ends the keeping. net/http takes what was kept for written: if that fails,
// nothing must follow it.
func (c *wholeConn) release() {
	c.keeps = false
	if c.kept != nil && c.writeKept() != nil {
		_ = c.Close()
	}
}

// CloseWrite lets net/http say that a request was too long to be read to its end.
func (c *wholeConn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *wholeConn) writeKept() error {
	kept := c.kept
	c.kept = nil
	_, err := c.Conn.Write(*kept)
	if cap(*kept) <= maxKept {
		keptBuffers.Put(kept)
	}
	return err
}
