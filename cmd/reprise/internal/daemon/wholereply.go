package daemon

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// net/http collects a reply in a buffer of 4 KiB. A longer one, such as ten messages, is
// written in two pieces: the full buffer, then the rest. Each is a system call, and wakes
// the client up; this cost a sixth of the processor time of a receive. So while a handler
// of wholeReplies runs, its connection holds a full buffer back until the rest follows.

// replyBuffer is the size of net/http's buffer. If Go changes it, everything is written as
// it comes.
const replyBuffer = 4 << 10

// wholeReplies writes the handler's replies in one piece, on connections of a
// wholeListener. The handler must set a Content-Length, and must not stream.
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

// knowConn is an http.Server.ConnContext with which wholeReplies finds the connection of a
// request. It does nothing for HTTPS: encrypted replies cannot be held back by their
// length.
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
	kept  *[]byte // the buffer that is held back; nil if none is
}

var keptBuffers = sync.Pool{New: func() any { return new([]byte) }}

// maxKept is the longest rest of a reply that is copied behind the kept buffer, and the
// largest buffer that is used again.
const maxKept = 64 << 10

// Write writes p, or keeps it if it is a full buffer and more of the reply follows. A long
// rest is not copied: its size makes the cost of one more write negligible.
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

// isWhole reports whether p is a complete reply. Nothing follows such a one, and the handler
// must learn before it ends whether the reply could be written.
func isWhole(p []byte) bool {
	head, body, _ := bytes.Cut(p, []byte("\r\n\r\n"))
	_, length, _ := bytes.Cut(head, []byte("\r\nContent-Length: "))
	length, _, _ = bytes.Cut(length, []byte("\r\n"))
	n, err := strconv.Atoi(string(length))
	return err == nil && n == len(body)
}

// release writes what is held back, at the handler's end. net/http believes that it has been
// written, so if this fails the connection must not be used any more.
func (c *wholeConn) release() {
	c.keeps = false
	if c.kept != nil && c.writeKept() != nil {
		_ = c.Close()
	}
}

// CloseWrite lets net/http answer a request that is too long to be read to its end.
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
