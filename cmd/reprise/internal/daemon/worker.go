package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// WorkerConfig configures a [Worker].
type WorkerConfig struct {
	// AdminAddr is the host:port on which health and metrics, which ask for no authentication, and
	// the parts are served; unix:PATH is a Unix socket that other users cannot connect to. Empty:
	// they are not served.
	AdminAddr string
	// AllowedOrigins are web pages of other machines that may call AdminAddr; it may also
	// be called by their hosts' names: see sqsserver.PageGuard. Default: none.
	AllowedOrigins []string
	// Watching is how the worker is watched besides.
	Watching Watching
	// Logger gets what an operator must know. It is required.
	Logger *slog.Logger
}

// Worker consumes queues of other servers, and serves health and metrics. It is made by
// [NewWorker] and runs once.
type Worker struct {
	consumers
	parts
	cfg      WorkerConfig
	listener net.Listener // nil without an AdminAddr
	http     *http.Server
	pages    *sqsserver.PageGuard
	process  *prometheus.Registry // the metrics of the process
	profiles *profiles            // nil: none are served
	counted  counted
	steps    stopStack
}

// repliesEnd is how long the stop of a worker waits for replies under way, such as the last event of
// a stream.
const repliesEnd = time.Second

// NewWorker checks cfg and listens. It consumes nothing until [Worker.Consume] has named the
// queues and [Worker.Run] is called.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	w := &Worker{cfg: cfg, process: prometheus.NewRegistry()}
	w.watching, w.measured = cfg.Watching, cfg.Watching.Exporter != nil
	w.process.MustRegister(collect(collectProcess), collect(w.collectCosts))
	var err error
	if cfg.Watching.PprofAddr != "" {
		if w.profiles, err = newProfiles(cfg.Watching.PprofAddr, cfg.Logger); err != nil {
			return nil, err
		}
	}
	if cfg.AdminAddr == "" {
		return w, nil
	}
	w.measured = true
	if w.listener, err = listenForAdmin(cfg.AdminAddr); err != nil {
		return nil, errors.Join(err, w.profiles.close())
	}
	pages, err := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{
		AllowedOrigins: cfg.AllowedOrigins,
		OnRefused: func(r *http.Request, err error, unreported int) {
			cfg.Logger.Warn("refused a request that may come from a web page or a stranger", "error", err, "remote", r.RemoteAddr, "more_refused", unreported)
		},
	})
	if err != nil {
		return nil, errors.Join(err, w.listener.Close(), w.profiles.close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", w.serveHealth)
	mux.HandleFunc("GET /livez", w.serveLive)
	mux.HandleFunc("GET /readyz", w.serveReady)
	mux.Handle("GET /scale", atMost(maxScrapes, w.serveScale))
	mux.HandleFunc("GET /metrics", w.serveMetrics)
	mux.HandleFunc("/", func(out http.ResponseWriter, _ *http.Request) {
		http.Error(out, "only GET /health, /livez, /readyz, /scale and /metrics are served here", http.StatusNotFound)
	})
	w.pages = pages
	w.http = newHTTPServer(w.before(pages.Handler(mux)), cfg.Logger)
	return w, nil
}

// AdminURL returns the URL of health and metrics, as programs on this machine can reach
// it, or unix:PATH; empty if they are not served.
func (w *Worker) AdminURL() string {
	if w.listener == nil {
		return ""
	}
	if strings.HasPrefix(w.cfg.AdminAddr, UnixPrefix) {
		return w.cfg.AdminAddr
	}
	return localURL("http", w.listener)
}

// Pages returns the rule by which requests of web pages are refused, for parts; nil without an
// AdminAddr.
func (w *Worker) Pages() *sqsserver.PageGuard { return w.pages }

// ProfilesURL returns where profiles are served; empty: nowhere.
func (w *Worker) ProfilesURL() string { return w.profiles.url() }

// Consume makes these the queues that are consumed, now or while Run runs. A consumer whose queue
// and Settings are among them keeps running. The others drain, and only then the new ones begin,
// so that messages have one consumer of this process at a time. If some cannot be made, which
// [CheckConsume] tells before, the others run, and the error says why. It is [reprise.ErrDrainTimeout]
// if all run, and one that was replaced could not settle all messages. Calls must follow each other.
func (w *Worker) Consume(queues []Consume) error { return w.replace(queues) }

// Run consumes until drain is closed, then drains within the consumers' stop budgets; until
// it returns, health is answered. The end of ctx stops everything at once: handlers are
// cancelled, and Run returns the cause. Run returns nil after a clean stop, and
// [reprise.ErrDrainTimeout] if the budget was not enough.
func (w *Worker) Run(ctx context.Context, drain <-chan struct{}) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if w.http != nil {
		w.startHTTP(fail)
		w.parts.start(&w.steps)
	}
	w.profiles.start(&w.steps, fail)
	w.startExporter(w.process, &w.steps)
	w.consumers.start(ctx, fail)
	w.steps.push("the consumers", w.consumers.stop)
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
	w.steps.push("the server of health and metrics", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, repliesEnd)
		defer cancel()
		err := w.http.Shutdown(ctx)
		if err != nil { // slow readers of health, metrics and events are cut off
			err = w.http.Close()
		}
		<-served
		return err
	})
}

func (w *Worker) serveHealth(out http.ResponseWriter, _ *http.Request) {
	var h health
	code := h.consumed(w.all())
	h.write(out, code)
}

func (w *Worker) serveMetrics(rw http.ResponseWriter, _ *http.Request) {
	writeMetrics(rw, w.cfg.Logger, w.process, w.gatherers()...)
}
