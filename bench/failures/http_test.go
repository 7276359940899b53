package failures_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ownFailures are not failures of the dependency: they are caused by the message, the handler or
// the consumer itself.
var ownFailures = []failure{
	{"a handler", "an empty message body, by `json.Decoder`", "EOF", false, func(*testing.T) error {
		var v any
		return json.NewDecoder(strings.NewReader("")).Decode(&v)
	}},
	{"a handler", "half a message body, by `json.Unmarshal`", "unexpected end of JSON input", false, func(*testing.T) error {
		var v any
		return json.Unmarshal([]byte(`{"id":`), &v)
	}},
	{"a handler", "half a message body, by `json.Decoder`", "unexpected EOF", true, func(*testing.T) error {
		var v any
		return json.NewDecoder(strings.NewReader(`{"id":`)).Decode(&v)
	}},
	{"a handler", "a URL without a host, from the message", "no Host in request URL", false, get("http:///orders")},
	{"a handler", "a URL of another scheme", "unsupported protocol scheme", false, get("ftp://127.0.0.1/orders")},
	{"a handler", "a URL with a port that is none", "invalid port", false, get("http://127.0.0.1:99999/orders")},
	{"a handler", "a call that the handler cancels", "context canceled", false, func(t *testing.T) error {
		ctx, cancel := context.WithCancel(t.Context())
		url := answering(t, func(net.Conn) { cancel(); <-t.Context().Done() })
		return do(ctx, http.DefaultTransport, url)
	}},
}

var httpFailures = []failure{
	{"net", "cut while a request is sent", "write: broken pipe", true, brokenPipe},
	{"net/http", "no such host", "no such host", true, func(t *testing.T) error {
		return do(t.Context(), &http.Transport{DialContext: (&net.Dialer{Resolver: nowhere(t)}).DialContext}, "http://orders.invalid/")
	}},
	{"net/http", "connection refused", "connect: connection refused", true, func(t *testing.T) error {
		return get("http://" + closedAddr(t))(t)
	}},
	{"net/http", "connection reset", "connection reset by peer", true, func(t *testing.T) error {
		return get(answering(t, func(conn net.Conn) {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}))(t)
	}},
	{"net/http", "cut before the answer", "EOF", true, func(t *testing.T) error {
		return get(answering(t, func(net.Conn) {}))(t)
	}},
	{"net/http", "cut in the header", "transport connection broken", true, func(t *testing.T) error {
		return get(answering(t, says("HTTP/1.1 200 OK\r\nContent-Le")))(t)
	}},
	{"net/http", "cut in the body", "unexpected EOF", true, func(t *testing.T) error {
		return get(answering(t, says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"done\":")))(t)
	}},
	{"net/http", "cut in a chunked body, decoded", "unexpected EOF", true, func(t *testing.T) error {
		url := answering(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"done\":\r\n"))
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var v any
		return json.NewDecoder(resp.Body).Decode(&v)
	}},
	{"net/http", "an answer that is not HTTP", "malformed HTTP", true, func(t *testing.T) error {
		return get(answering(t, says("-ERR maintenance\r\n\r\n")))(t)
	}},
	{"net/http", "no answer in time", "timeout awaiting response headers", true, func(t *testing.T) error {
		url := answering(t, func(net.Conn) { <-t.Context().Done() })
		return do(t.Context(), &http.Transport{ResponseHeaderTimeout: 10 * time.Millisecond}, url)
	}},
	{"net/http", "no answer before the deadline", "context deadline exceeded", true, func(t *testing.T) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		return do(ctx, http.DefaultTransport, answering(t, func(net.Conn) { <-t.Context().Done() }))
	}},
}

// get returns a function that requests a URL and reads the reply.
func get(url string) func(*testing.T) error {
	return func(t *testing.T) error {
		transport := new(http.Transport)
		defer transport.CloseIdleConnections()
		return do(t.Context(), transport, url)
	}
}

func do(ctx context.Context, transport http.RoundTripper, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

// answering listens, reads each request, calls answer, and closes the
// connection. It returns the URL.
func answering(t *testing.T, answer func(net.Conn)) (url string) {
	return "http://" + accepting(t, func(conn net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err == nil {
			_, err = io.Copy(io.Discard, req.Body)
		}
		if err == nil {
			answer(conn)
		}
	})
}

func says(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

// accepting listens on a port of the loopback address, calls serve for each
// connection, and closes that.
func accepting(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// closedAddr is an address on which nothing listens.
func closedAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// nowhere resolves names by a DNS server, on a socket of its own, that knows no name.
func nowhere(t *testing.T) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return // closed
			}
			reply := bytes.Clone(query[:n])
			reply[2], reply[3] = 0x81, 0x83 // a response: there is no such name
			_, _ = server.WriteTo(reply, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// brokenPipe writes to a connection whose other side is closed. It uses net, because net/http may
// read the reset before it writes again.
func brokenPipe(t *testing.T) error {
	gone := make(chan struct{})
	conn, err := net.Dial("tcp", accepting(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
		close(gone)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("P")); err != nil {
		t.Fatal(err)
	}
	<-gone
	for {
		// The first write after the reset returns the reset, each later one a broken pipe.
		if _, err := conn.Write([]byte("OST / HTTP/1.1\r\n")); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			return err
		}
	}
}
