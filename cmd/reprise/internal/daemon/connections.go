package daemon

import (
	"container/list"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// logFullEvery bounds how often a full listener is logged.
const logFullEvery = time.Minute

// limitedListener bounds how many connections are open at a time. When it is full it closes
// the connection that has been idle for longest to accept the next, so that connections
// without requests cannot keep others out. It never closes one with a request, such as a
// long poll.
type limitedListener struct {
	net.Listener
	logger     *slog.Logger
	places     chan struct{}
	perAddress int // most connections from one address that is not loopback
	closed     chan struct{}
	once       sync.Once

	mu        sync.Mutex
	waiting   bool                       // Accept waits for a place
	idle      *list.List                 // of net.Conn, the one idle for longest first
	elements  map[net.Conn]*list.Element // of idle
	addresses map[string]int             // connections by address, loopback ones left out
	logged    time.Time
}

func newLimitedListener(l net.Listener, limit int, logger *slog.Logger) *limitedListener {
	return &limitedListener{
		Listener: l, logger: logger, places: make(chan struct{}, limit), perAddress: max(1, limit-limit/4), closed: make(chan struct{}),
		idle: list.New(), elements: make(map[net.Conn]*list.Element), addresses: make(map[string]int),
	}
}

// Accept accepts the next connection that may be open.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		if err := l.takePlace(); err != nil {
			return nil, err
		}
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.places
			return nil, err
		}
		address, allowed := l.enter(conn)
		if allowed {
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(address) })}, nil
		}
		l.logFull("an address has reached its limit of connections: refusing more from it", "address", address, "most", l.perAddress)
		_ = conn.Close() // nothing was read or written
		<-l.places
	}
}

// takePlace waits until there is room for a connection.
func (l *limitedListener) takePlace() error {
	select {
	case l.places <- struct{}{}:
		return nil
	default:
	}
	l.mu.Lock()
	l.waiting = true
	l.mu.Unlock()
	l.makeRoom()
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return net.ErrClosed
	}
	l.mu.Lock()
	l.waiting = false
	l.mu.Unlock()
	return nil
}

// makeRoom closes the connection that has been idle for longest, if Accept waits for a
// place.
func (l *limitedListener) makeRoom() {
	l.mu.Lock()
	var oldest net.Conn
	if e := l.idle.Front(); l.waiting && e != nil {
		oldest = l.idle.Remove(e).(net.Conn)
		delete(l.elements, oldest)
		l.waiting = false
	}
	l.mu.Unlock()
	if oldest == nil {
		return
	}
	l.logFull("the limit of connections is reached: closing those that have been idle for longest to accept others", "most", cap(l.places))
	go func() { _ = oldest.Close() }() // TLS sends a last alert, which may take seconds; the error does not matter
}

// changed is the hook http.Server.ConnState. Its connections may be TLS connections around
// those that were accepted.
func (l *limitedListener) changed(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	if e := l.elements[conn]; e != nil {
		l.idle.Remove(e)
		delete(l.elements, conn)
	}
	if state == http.StateIdle {
		l.elements[conn] = l.idle.PushBack(conn)
	}
	l.mu.Unlock()
	l.makeRoom()
}

// enter counts a connection by its address, unless it comes from this machine: address is
// empty then. It reports whether the address may have one more.
func (l *limitedListener) enter(conn net.Conn) (address string, allowed bool) {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || sqsserver.IsLoopbackAddr(tcp) {
		return "", true
	}
	ip := tcp.IP
	if ip.To4() == nil {
		ip = ip.Mask(net.CIDRMask(64, 128)) // a host usually has all addresses of a /64
	}
	address = ip.String()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.addresses[address] >= l.perAddress {
		return address, false
	}
	l.addresses[address]++
	return address, true
}

func (l *limitedListener) leave(address string) {
	if address != "" {
		l.mu.Lock()
		if l.addresses[address]--; l.addresses[address] == 0 {
			delete(l.addresses, address)
		}
		l.mu.Unlock()
	}
	<-l.places
}

func (l *limitedListener) logFull(text string, args ...any) {
	l.mu.Lock()
	due := time.Since(l.logged) >= logFullEvery
	if due {
		l.logged = time.Now()
	}
	l.mu.Unlock()
	if due {
		l.logger.Warn(text, args...)
	}
}

// Close ends Accept.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn frees its place when it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
