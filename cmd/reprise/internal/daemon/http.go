package daemon

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// The limits of one request. A long poll takes up to 20 s to answer, and the read timeout
// must be longer: net/http ends a request's context when a read fails.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 3 * time.Minute // SDKs keep connections for a minute and a half
	maxHeaderBytes    = 64 << 10

	// maxStreams limits how many requests of one HTTP/2 connection may be under way. With
	// net/http's default of 250, one connection could cost as much as 250 connections.
	maxStreams = 32
)

func newHTTPServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ConnContext:       knowConn,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          slog.NewLogLogger(&fewHandshakes{Handler: logger.Handler()}, slog.LevelWarn),
	}
}

// logHandshakesEvery bounds how often failed handshakes are logged: anybody who can connect
// can cause thousands a second.
const logHandshakesEvery = 10 * time.Second

// fewHandshakes filters net/http's log. It drops connections that end before their
// handshake: they are mostly those of a load balancer that checks every few seconds
// whether the port is open. Of other failed handshakes it logs one per logHandshakesEvery,
// with the number of those that it left out.
type fewHandshakes struct {
	slog.Handler
	mu      sync.Mutex
	logged  time.Time
	leftOut int
}

func (h *fewHandshakes) Handle(ctx context.Context, r slog.Record) error {
	if !strings.HasPrefix(r.Message, "http: TLS handshake error ") {
		return h.Handler.Handle(ctx, r)
	}
	if strings.HasSuffix(r.Message, ": EOF") || strings.HasSuffix(r.Message, ": connection reset by peer") {
		return nil
	}
	h.mu.Lock()
	if time.Since(h.logged) < logHandshakesEvery {
		h.leftOut++
		h.mu.Unlock()
		return nil
	}
	if h.leftOut > 0 {
		r.AddAttrs(slog.Int("left_out", h.leftOut))
	}
	h.logged, h.leftOut = time.Now(), 0
	h.mu.Unlock()
	return h.Handler.Handle(ctx, r)
}

// routes sends GET /health, /livez, /readyz, /scale and /metrics to this daemon, and everything else to the SQS
// server and its admin API. Paths that require no signature are guarded against web pages.
func (d *Daemon) routes() http.Handler {
	mux := http.NewServeMux()
	pages := d.sqs.Pages()
	mux.Handle("GET /health", pages.Handler(http.HandlerFunc(d.serveHealth)))
	mux.Handle("GET /livez", pages.Handler(http.HandlerFunc(d.serveLive)))
	mux.Handle("GET /readyz", pages.Handler(http.HandlerFunc(d.serveReady)))
	mux.Handle("GET /scale", pages.Handler(atMost(maxScrapes, d.serveScale)))
	if !d.cfg.Serving.NoMetrics {
		mux.Handle("GET /metrics", pages.Handler(atMost(maxScrapes, d.serveMetrics)))
	}
	switch serving := d.cfg.Serving; {
	case serving.NoAdmin:
	case serving.Admin || len(serving.Credentials) == 0:
		mux.Handle(sqsserver.AdminPath, d.sqs.Admin())
	default:
		mux.Handle(sqsserver.AdminPath, pages.Handler(http.HandlerFunc(refuseAdmin)))
	}
	mux.Handle("/", wholeReplies(d.sqs))
	return mux
}

// refuseAdmin explains why /_reprise/ is off, in the form of its own errors.
func refuseAdmin(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusForbidden)
	// The client may have gone.
	_, _ = io.WriteString(w, `{"error": "/_reprise/ requires no signature, so it is off if there is an access key: start the server with --admin to turn it on"}`+"\n")
}
