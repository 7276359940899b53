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

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Serving is how the server treats its clients. The zero value accepts every request,
// except those that may come from web pages of other origins.
type Serving struct {
	// Credentials are the keys that requests must be signed with. Default: signatures are
	// ignored.
	Credentials []sqsserver.Credentials
	// Certificate makes the server speak HTTPS, with TLS 1.2 or newer. Default: HTTP.
	Certificate *tls.Certificate
	// MaxConnections bounds how many connections are open at once. At the limit, the one
	// that has been without a request for longest is closed for the next; if all have
	// requests, new ones wait to be accepted. One address of another machine may have at
	// most three quarters of them. Negative: no limit. Default: 16,384, or half of the
	// process's limit of open files if that is less: a journal that cannot open a file
	// fails.
	MaxConnections int
	// Faults are set from the start, by the name of the queue; "*" is every queue.
	Faults map[string][]sqsserver.Fault
	// TimeScale is how many times faster than the machine's time the server's passes.
	// Only a server in memory can have one. Default: 1.
	TimeScale float64
	// KeepUnwritten is sqsserver.Config.KeepUnwritten.
	KeepUnwritten bool
	// LogRequests logs each request, without its content.
	LogRequests bool
	// AllowedOrigins are web pages of other machines that may use what requires no
	// signature; the server may also be called by their hosts' names: see
	// sqsserver.Config. Default: only pages of this machine.
	AllowedOrigins []string
	// Admin serves /_reprise/, which requires no signature, although there are
	// Credentials. Default: it is served only without Credentials.
	Admin bool
	// NoAdmin and NoMetrics turn /_reprise/ and /metrics off.
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
		limited := newLimitedListener(listener, limit, d.cfg.Logger)
		listener = limited
		d.http.ConnState = func(conn net.Conn, state http.ConnState) {
			d.metrics.connection(conn, state)
			limited.changed(conn, state)
		}
	}
	if d.cfg.Serving.Certificate == nil {
		return d.http.Serve(wholeListener{listener})
	}
	d.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*d.cfg.Serving.Certificate}, MinVersion: tls.VersionTLS12}
	return d.http.ServeTLS(listener, "", "")
}

// connectionLimit returns the default of Serving.MaxConnections for a limit of open files,
// which is 0 if it is unknown.
func connectionLimit(files uint64) int {
	if files == 0 || files/2 > defaultMaxConnections {
		return defaultMaxConnections
	}
	return max(1, int(files/2)) //nolint:gosec // G115: no more than the default
}

// Client returns a client of this daemon's own server, for its consumers. It signs with the
// key and verifies the certificate, if there are any.
func (d *Daemon) Client() *sqs.Client {
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

// trustOnly returns the TLS configuration of a client that trusts exactly this certificate.
// Its names are those by which other machines reach the server, and this machine may not
// know its authority.
func trustOnly(certificate []byte) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // G402: VerifyConnection is stricter
		VerifyConnection: func(state tls.ConnectionState) error {
			if !bytes.Equal(state.PeerCertificates[0].Raw, certificate) {
				return errors.New("this is not the server's own certificate")
			}
			return nil
		},
	}
}

// onRequest counts and logs a request that has ended.
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
