package daemon

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Health checks that only open the port are not logged; a client that fails to speak TLS is
// logged with its address.
func TestProbesAreNotLogged(t *testing.T) {
	var log bytes.Buffer // read when the server has ended
	server := newHTTPServer(http.NotFoundHandler(), slog.New(slog.NewTextHandler(&log, nil)))
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }}
	ended := make(chan struct{}, 3)
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			ended <- struct{}{}
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	for _, probe := range []func(*net.TCPConn) error{
		func(*net.TCPConn) error { return nil },
		func(c *net.TCPConn) error { return c.SetLinger(0) }, // a reset
		func(c *net.TCPConn) error { _, err := c.Write([]byte("GET / HTTP/1.1\r\n\r\n")); return err },
	} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := probe(conn.(*net.TCPConn)); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("the connection does not end")
		}
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	<-served
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "client sent an HTTP request to an HTTPS server") {
		t.Errorf("the log says:\n%s", text)
	}
}
