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

// Serving is how the server treats those who call it. The zero value takes every
// request that no web page of another origin may have made.
type Serving struct {
	// Credentials make requests need a signature. Default: none is looked at.
	Credentials []sqsserver.Credentials
	// Certificate makes the address one of HTTPS, with TLS 1.2 or newer. Default:
	// HTTP.
	Certificate *tls.Certificate
	// MaxConnections is how many connections are open at once. When they are, the one
	// that has been without a request for longest is closed for the next; if all have
	// requests, others wait to be accepted. An address of another machine has at most
	// three quarters of them. Negative: any number. Default: 16,384, or half of the files that the
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
