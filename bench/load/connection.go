package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// connection makes one call after the other.
type connection struct {
	addr    string
	conn    net.Conn // nil: to be made
	replies *bufio.Reader

	reply   []byte // of the previous call
	request []byte // reused
	took    []time.Duration
	handles []string // received and not yet deleted, as JSON has them
}

// callTimeout ends a call that the server does not answer.
const callTimeout = time.Minute

func (c *connection) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// The texts to find in replies. Some servers put a space after the colon.
var (
	idKey         = []byte(`"Id":`)
	handleKey     = []byte(`"ReceiptHandle":`)
	senderFault   = []byte(`"SenderFault"`)
	errEndOfReply = errors.New("the reply is cut off")
)

func (c *connection) send(request []byte) error {
	if err := c.call(request); err != nil {
		return err
	}
	return c.confirmed(BatchSize)
}

// receive receives messages, and keeps their receipt handles.
func (c *connection) receive(request []byte) (n int, err error) {
	if err := c.call(request); err != nil {
		return 0, err
	}
	for rest := c.reply; ; n++ {
		_, after, found := bytes.Cut(rest, handleKey)
		if !found {
			return n, nil
		}
		_, after, _ = bytes.Cut(after, []byte(`"`))
		handle, after, found := bytes.Cut(after, []byte(`"`)) // no handle has quotes in it
		if !found {
			return n, errEndOfReply
		}
		c.handles = append(c.handles, string(handle))
		rest = after
	}
}

// delete deletes a batch of received messages.
func (c *connection) delete(r *requests) (int, error) {
	n := min(BatchSize, len(c.handles))
	batch := c.handles[len(c.handles)-n:]
	c.request = r.appendDelete(c.request[:0], batch)
	if err := c.call(c.request); err != nil {
		return 0, err
	}
	if err := c.confirmed(n); err != nil {
		return 0, err
	}
	c.handles = c.handles[:len(c.handles)-n]
	return n, nil
}

// confirmed checks whether a batch's reply confirms n entries.
func (c *connection) confirmed(n int) error {
	if got := bytes.Count(c.reply, idKey); got != n || bytes.Contains(c.reply, senderFault) {
		return fmt.Errorf("a batch of %d was answered with %.500q", n, c.reply)
	}
	return nil
}

// call sends a request and reads the reply.
func (c *connection) call(request []byte) error {
	began := time.Now()
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, callTimeout)
		if err != nil {
			return err
		}
		c.conn, c.replies = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	if err := c.conn.SetDeadline(began.Add(callTimeout)); err != nil {
		return err
	}
	if _, err := c.conn.Write(request); err != nil {
		return fmt.Errorf("write a request: %w", err)
	}
	status, keep, err := c.read()
	if err != nil {
		return fmt.Errorf("read a reply: %w", err)
	}
	c.took = append(c.took, time.Since(began))
	if !keep {
		c.close()
	}
	if status != 200 {
		return fmt.Errorf("status %d: %.500q", status, c.reply)
	}
	return nil
}

// read reads a reply, and reports whether the connection is kept.
func (c *connection) read() (status int, keep bool, err error) {
	line, err := c.line()
	if err != nil {
		return 0, false, err
	}
	protocol, rest, _ := bytes.Cut(line, []byte(" "))
	code, _, _ := bytes.Cut(rest, []byte(" "))
	if status, err = strconv.Atoi(string(code)); err != nil {
		return 0, false, fmt.Errorf("status line %q", line)
	}
	keep = string(protocol) == "HTTP/1.1"
	length, chunked := -1, false
	for {
		if line, err = c.line(); err != nil {
			return 0, false, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, false, fmt.Errorf("header %q", line)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Connection")):
			keep = keep && !bytes.EqualFold(value, []byte("close"))
		}
	}
	c.reply = c.reply[:0]
	switch {
	case chunked:
		return status, keep, c.readChunks()
	case length >= 0:
		return status, keep, c.readBody(length)
	}
	c.reply, err = io.ReadAll(c.replies)
	return status, false, err
}

// line reads a line, which is valid until the next read.
func (c *connection) line() ([]byte, error) {
	line, err := c.replies.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

// readBody appends n bytes to the reply.
func (c *connection) readBody(n int) error {
	start := len(c.reply)
	c.reply = append(c.reply, make([]byte, n)...)
	_, err := io.ReadFull(c.replies, c.reply[start:])
	return err
}

func (c *connection) readChunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		size, err := strconv.ParseInt(string(digits), 16, 32)
		if err != nil {
			return fmt.Errorf("chunk %q", line)
		}
		if err := c.readBody(int(size)); err != nil {
			return err
		}
		if _, err := c.line(); err != nil || size == 0 {
			return err
		}
	}
}
