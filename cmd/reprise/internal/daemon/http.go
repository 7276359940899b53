package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// The limits of one request. A long poll takes up to 20 s to answer, and reading
// must not time out before: net/http ends a request's context when a read fails.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 3 * time.Minute // SDKs keep connections for a minute and a half
	maxHeaderBytes    = 64 << 10
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
		ErrorLog:          slog.NewLogLogger(withoutProbes{logger.Handler()}, slog.LevelWarn),
	}
}

// withoutProbes leaves out of what net/http logs the connections that end before their
// handshake has begun: mostly those of a load balancer, which looks every few seconds
// whether the port is open.
type withoutProbes struct{ slog.Handler }

func (h withoutProbes) Handle(ctx context.Context, r slog.Record) error {
	gone := strings.HasSuffix(r.Message, ": EOF") || strings.HasSuffix(r.Message, ": connection reset by peer")
	if gone && strings.HasPrefix(r.Message, "http: TLS handshake error ") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// routes sends GET /health and /metrics to this daemon, the admin API to that of
// the SQS server, and everything else to SQS.
func (d *Daemon) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", d.serveHealth)
	if !d.cfg.Serving.NoMetrics {
		mux.HandleFunc("GET /metrics", d.serveMetrics)
	}
	if !d.cfg.Serving.NoAdmin {
		mux.Handle(sqsserver.AdminPath, d.sqs.Admin())
	}
	mux.Handle("/", wholeReplies(d.sqs))
	return mux
}

// health is the answer of GET /health.
type health struct {
	// Status is the state of the consumer, or ok without one: see reprise.Health. A
	// consumer that fails to receive, or is stopping, answers 503. So does a journal
	// that has failed, with the status failing, in the moment before the program ends
	// of it, and a server in memory that has met a defect of its own. A disk that is nearly full makes ok degraded.
	Status string `json:"status"`
	// Problem says what is wrong.
	Problem string `json:"problem,omitempty"`
	// Storage is where messages are kept: memory or disk.
	Storage string `json:"storage"`
	// Consumer counts the messages in the consumer's hands.
	Consumer *consumerHealth `json:"consumer,omitempty"`
}

type consumerHealth struct {
	Running      int   `json:"running"`
	Waiting      int   `json:"waiting"`
	Settling     int   `json:"settling"`
	InBackoff    int   `json:"in_backoff"`
	Deleted      int64 `json:"deleted"`
	Retried      int64 `json:"retried"`
	DeadLettered int64 `json:"dead_lettered"`
}

func (d *Daemon) serveHealth(w http.ResponseWriter, _ *http.Request) {
	h := health{Status: reprise.HealthOK.String(), Storage: "memory"}
	code := http.StatusOK
	if d.consumer != nil {
		s := d.consumer.Status()
		switch s.Health {
		case reprise.HealthFailing, reprise.HealthStopping, reprise.HealthStopped:
			code = http.StatusServiceUnavailable
		}
		h.Status, h.Problem = s.Health.String(), s.Problem
		h.Consumer = &consumerHealth{
			Running: s.Running, Waiting: s.Waiting, Settling: s.Settling, InBackoff: s.InBackoff,
			Deleted: s.Counts.Deleted, Retried: s.Counts.Retried, DeadLettered: s.Counts.DeadLettered,
		}
	}
	if d.durable() {
		h.Storage = "disk"
	}
	switch err := d.failure(); {
	case err != nil:
		h.Status, h.Problem, code = reprise.HealthFailing.String(), err.Error(), http.StatusServiceUnavailable
	case h.Problem == "" && d.durable() && d.journal.LowOnSpace():
		h.Status, h.Problem = reprise.HealthDegraded.String(), "the disk is nearly full: sends are refused"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	text, err := json.Marshal(h)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(code)
	fmt.Fprintf(w, "%s\n", text)
}
