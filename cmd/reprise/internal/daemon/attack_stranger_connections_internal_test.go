package daemon

// Holds off: a client without a key, which may open as many connections as it likes.

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// addressed is a connection from an address, which counts its closing.
type addressed struct {
	net.Conn
	remote net.IP
	closed chan struct{}
}

func (c *addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.remote, Port: 1} }

func (c *addressed) Close() error {
	close(c.closed)
	return nil
}

// arrivals is a listener with connections that have come.
type arrivals struct{ conns chan net.Conn }

func (a arrivals) Accept() (net.Conn, error) {
	select {
	case conn := <-a.conns:
		return conn, nil
	default:
		return nil, errors.New("none has come")
	}
}
func (arrivals) Close() error   { return nil }
func (arrivals) Addr() net.Addr { return &net.TCPAddr{} }

func (a arrivals) come(ip string) *addressed {
	conn := &addressed{remote: net.ParseIP(ip), closed: make(chan struct{})}
	a.conns <- conn
	return conn
}

// TestAttackIdleConnections: of connections that are all open the one that has been idle
// for longest goes, and none with a request; the log says so once.
func TestAttackIdleConnections(t *testing.T) {
	var log strings.Builder
	a := arrivals{make(chan net.Conn, 10)}
	l := newLimitedListener(a, 3, slog.New(slog.NewTextHandler(&log, nil)))
	var sent []*addressed
	var open []net.Conn
	accept := func() {
		t.Helper()
		sent = append(sent, a.come("127.0.0.1"))
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		l.changed(conn, http.StateNew)
		l.changed(conn, http.StateActive)
	}
	for range 3 {
		accept()
	}
	for _, i := range []int{2, 1, 0} {
		l.changed(open[i], http.StateIdle)
	}
	l.changed(open[2], http.StateActive) // has a request again
	accept()
	<-sent[1].closed
	accept()
	<-sent[0].closed
	select {
	case <-sent[2].closed:
		t.Error("a connection with a request was closed")
	default:
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "idle for longest") {
		t.Errorf("logged %q, want one line", log.String())
	}
}

// TestAttackConnectionsOfAnAddress: one address gets three quarters of the connections,
// this machine all. A connection that is refused takes no place: then Accept would wait, which
// the bubble ends at once.
func TestAttackConnectionsOfAnAddress(t *testing.T) {
	for _, addresses := range [][]string{{"192.0.2.1", "192.0.2.1"}, {"2001:db8::1", "2001:db8::ffff:1"}} {
		synctest.Test(t, func(t *testing.T) {
			a := arrivals{make(chan net.Conn, 10)}
			l := newLimitedListener(a, 4, slog.New(slog.DiscardHandler))
			var open []net.Conn
			for range 3 {
				a.come(addresses[0])
				conn, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, conn)
			}
			refused := a.come(addresses[1])
			a.come("127.0.0.1")
			if conn, err := l.Accept(); err != nil || conn.RemoteAddr().String() != "127.0.0.1:1" {
				t.Fatalf("accepted %v, %v, want the connection of this machine", conn, err)
			}
			<-refused.closed
			if err := open[0].Close(); err != nil {
				t.Fatal(err)
			}
			a.come(addresses[1])
			if _, err := l.Accept(); err != nil {
				t.Errorf("after one has gone: %v", err)
			}
		})
	}
}
