package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Serving is how the server treats those who call it. The zero value takes every
// request.
type Serving struct {
	// Credentials make requests need a signature. Default: none is looked at.
	Credentials []sqsserver.Credentials
	// Certificate makes the address one of HTTPS, with TLS 1.2 or newer. Default:
	// HTTP.
	Certificate *tls.Certificate
	// MaxConnections is how many connections are open at once; others wait to be
	// accepted. Negative: any number. Default: 16,384.
	MaxConnections int
	// Faults are set from the start, by the name of the queue; "*" is every one.
	Faults map[string][]sqsserver.Fault
	// TimeScale is how many times as fast as the machine's the server's time goes.
	// Only a server in memory can have one. Default: 1.
	TimeScale float64
	// KeepUnwritten is sqsserver.Config.KeepUnwritten.
	KeepUnwritten bool
	// LogRequests has each request logged, without what is in it.
	LogRequests bool
	// NoAdmin and NoMetrics leave out /_reprise/ and /metrics.
	NoAdmin, NoMetrics bool
}

const defaultMaxConnections = 16_384

func (s Serving) apply(cfg *sqsserver.Config, onRequest func(sqsserver.Request)) {
	cfg.Credentials = s.Credentials
	cfg.TimeScale = s.TimeScale
	cfg.KeepUnwritten = s.KeepUnwritten
	if s.LogRequests || !s.NoMetrics {
		cfg.OnRequest = onRequest
	}
}

// serve serves until the server is shut down.
func (d *Daemon) serve() error {
	listener := d.listener
	if limit := cmp.Or(d.cfg.Serving.MaxConnections, defaultMaxConnections); limit > 0 {
		listener = newLimitedListener(listener, limit)
	}
	if d.cfg.Serving.Certificate == nil {
		return d.http.Serve(listener)
	}
	d.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*d.cfg.Serving.Certificate}, MinVersion: tls.VersionTLS12}
	return d.http.ServeTLS(listener, "", "")
}

// onRequest learns what became of a request.
func (d *Daemon) onRequest(r sqsserver.Request) {
	d.metrics.request(r)
	if !d.cfg.Serving.LogRequests {
		return
	}
	attributes := []slog.Attr{
		slog.String("action", r.Action), slog.String("queue", r.Queue), slog.Int("status", r.Status), slog.String("code", r.Code),
		slog.Int("messages", r.Messages), slog.Int("failed", r.Failed), slog.Duration("took", r.Duration),
		slog.Int("in", r.BytesIn), slog.Int("out", r.BytesOut), slog.String("protocol", r.Protocol), slog.String("region", r.Region),
		slog.String("account", r.Account), slog.String("key", r.AccessKey), slog.String("remote", r.Remote), slog.String("id", r.ID),
	}
	d.cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, "request", attributes...)
}

// limitedListener has no more than so many connections open at a time.
type limitedListener struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newLimitedListener(l net.Listener, limit int) *limitedListener {
	return &limitedListener{Listener: l, places: make(chan struct{}, limit), closed: make(chan struct{})}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn gives its place free when it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
