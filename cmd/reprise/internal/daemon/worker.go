package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// WorkerConfig configures a [Worker].
type WorkerConfig struct {
	// Client and QueueURL lead to the queue.
	Client   reprise.Client
	QueueURL string
	Handler  reprise.Handler
	Config   reprise.Config
	// AdminAddr is the host:port on which health and metrics are served, without
	// authentication. Empty: they are not served.
	AdminAddr string
	// AllowedOrigins are web pages of other machines that may call AdminAddr; it may also
	// be called by their hosts' names: see sqsserver.PageGuard. Default: none.
	AllowedOrigins []string
	// Logger gets what an operator must know. It is required.
	Logger *slog.Logger
}

// Worker is a consumer of a queue on another server, with its health and metrics. It is
// made by [NewWorker] and runs once.
type Worker struct {
	cfg      WorkerConfig
	consumer *consumer
	listener net.Listener // nil without an AdminAddr
	http     *http.Server
	process  *prometheus.Registry // the metrics of the process
	steps    stopStack
}

// NewWorker checks cfg and listens. It consumes nothing until [Worker.Run].
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	w := &Worker{cfg: cfg, process: prometheus.NewRegistry()}
	w.process.MustRegister(collect(collectProcess))
	var err error
	w.consumer, err = newConsumer(cfg.Client, cfg.QueueURL, cfg.Handler, cfg.Config, cfg.AdminAddr != "")
	if err != nil || cfg.AdminAddr == "" {
		return w, err
	}
	const allowRemote = true // it is read-only, and loopback by default: another address is meant
	if w.listener, err = listen("--admin-addr", cfg.AdminAddr, allowRemote, false); err != nil {
		return nil, err
	}
	pages, err := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{
		AllowedOrigins: cfg.AllowedOrigins,
		OnRefused: func(r *http.Request, err error, unreported int) {
			cfg.Logger.Warn("refused a request that may come from a web page or a stranger", "error", err, "remote", r.RemoteAddr, "more_refused", unreported)
		},
	})
	if err != nil {
		return nil, errors.Join(err, w.listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", w.serveHealth)
	mux.HandleFunc("GET /metrics", w.serveMetrics)
	mux.HandleFunc("/", func(out http.ResponseWriter, _ *http.Request) {
		http.Error(out, "only GET /health and GET /metrics are served here", http.StatusNotFound)
	})
	w.http = newHTTPServer(pages.Handler(mux), cfg.Logger)
	return w, nil
}

// AdminURL returns the URL of health and metrics, as programs on this machine can reach
// it; empty if they are not served.
func (w *Worker) AdminURL() string {
	if w.listener == nil {
		return ""
	}
	return localURL("http", w.listener)
}

// Run consumes until drain is closed, then drains within the consumer's stop budget; until
// it returns, health is answered. The end of ctx stops everything at once: handlers are
// cancelled, and Run returns the cause. Run returns nil after a clean stop, and
// [reprise.ErrDrainTimeout] if the budget was not enough.
func (w *Worker) Run(ctx context.Context, drain <-chan struct{}) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if w.http != nil {
		w.startHTTP(fail)
	}
	w.consumer.start(ctx, fail, &w.steps, nil, nil)
	select {
	case <-drain:
	case <-ctx.Done():
	}
	err := w.steps.unwind(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (w *Worker) startHTTP(fail context.CancelCauseFunc) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		err := w.http.Serve(w.listener)
		if !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serving on %v: %w", w.listener.Addr(), err))
		}
	}()
	w.steps.push("the server of health and metrics", func(context.Context) error {
		err := w.http.Close() // cuts off readers of health and metrics only
		<-served
		return err
	})
}

func (w *Worker) serveHealth(out http.ResponseWriter, _ *http.Request) {
	var h health
	code := h.consumed(w.consumer)
	h.write(out, code)
}

func (w *Worker) serveMetrics(rw http.ResponseWriter, _ *http.Request) {
	writeMetrics(rw, w.cfg.Logger, w.process, w.consumer)
}
