package daemon

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Serving is how the server treats those who call it. The zero value takes every
// request that no web page of another origin may have made.
type Serving struct {
	// Credentials make requests need a signature. Default: none is looked at.
	Credentials []sqsserver.Credentials
	// Certificate makes the address one of HTTPS, with TLS 1.2 or newer. Default:
	// HTTP.
	Certificate *tls.Certificate
	// MaxConnections is how many connections are open at once; others wait to be
	// accepted. Negative: any number. Default: 16,384, or half of the files that the
	// process may open if that is less: a journal that can open none has failed.
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
	// AllowedOrigins are the web pages of other machines that may use what needs no
	// signature, and further names of the server: see sqsserver.Config. Default: only pages
	// of this machine.
	AllowedOrigins []string
	// Admin serves /_reprise/ although there are Credentials, which it does not ask for.
	// Default: it is served only without Credentials.
	Admin bool
	// NoAdmin and NoMetrics leave out /_reprise/ and /metrics.
	NoAdmin, NoMetrics bool
}

const defaultMaxConnections = 16_384

func (s Serving) apply(cfg *sqsserver.Config, onRequest func(sqsserver.Request)) {
	cfg.Credentials = s.Credentials
	cfg.AllowedOrigins = s.AllowedOrigins
	cfg.TimeScale = s.TimeScale
	cfg.KeepUnwritten = s.KeepUnwritten
	if s.LogRequests || !s.NoMetrics {
		cfg.OnRequest = onRequest
	}
}

// serve serves until the server is shut down.
func (d *Daemon) serve() error {
	listener := d.listener
	if limit := cmp.Or(d.cfg.Serving.MaxConnections, connectionLimit(maxOpenFiles())); limit > 0 {
		listener = newLimitedListener(listener, limit)
	}
	if d.cfg.Serving.Certificate == nil {
		return d.http.Serve(wholeListener{listener})
	}
	d.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*d.cfg.Serving.Certificate}, MinVersion: tls.VersionTLS12}
	return d.http.ServeTLS(listener, "", "")
}

// connectionLimit is the default of Serving.MaxConnections where so many files can
// be open, 0 if nobody knows.
func connectionLimit(files uint64) int {
	if files == 0 || files/2 > defaultMaxConnections {
		return defaultMaxConnections
	}
	return max(1, int(files/2)) //nolint:gosec // G115: no more than the default
}

// client is a client of this daemon's own server, for its consumer: like any other
// it signs with the key and asks for the certificate, if there are such.
func (d *Daemon) client() *sqs.Client {
	return awsclient.Local(d.URL(), d.cfg.Region, func(o *sqs.Options) {
		for _, c := range d.cfg.Serving.Credentials {
			o.Credentials = credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, "")
		}
		if certificate := d.cfg.Serving.Certificate; certificate != nil {
			o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
				t.TLSClientConfig = trustOnly(certificate.Certificate[0])
			})
		}
	})
}

// trustOnly is the configuration of a client that talks to whoever has this very
// certificate: it is made for the names by which others reach the server, and its
// authority may be one that this machine does not know.
func trustOnly(certificate []byte) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // G402: VerifyConnection is stricter
		VerifyConnection: func(state tls.ConnectionState) error {
			if !bytes.Equal(state.PeerCertificates[0].Raw, certificate) {
				return errors.New("another certificate than the server's own")
			}
			return nil
		},
	}
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

func (c *limitedConn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
