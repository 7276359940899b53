package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof" //nolint:gosec // G108: its handlers are served on loopback alone

	"github.com/reprise-sqs/reprise/sqsserver"
)

// profiles serves Go's profiles to programs of this machine. They show what a process has in
// memory, so that no flag lets others reach them.
type profiles struct {
	listener net.Listener
	http     *http.Server
}

// newProfiles listens on addr, the value of --pprof-addr.
func newProfiles(addr string, logger *slog.Logger) (*profiles, error) {
	listener, err := listen("--pprof-addr", addr, false, false)
	if reachable, ok := errors.AsType[*ReachableError](err); ok {
		return nil, fmt.Errorf("--pprof-addr %q can be reached from other machines, and profiles show what is in memory: pass 127.0.0.1:%d, and reach it by ssh -L or kubectl port-forward", addr, reachable.Addr.Port)
	}
	if err != nil {
		return nil, err
	}
	pages, err := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{OnRefused: func(r *http.Request, err error, unreported int) {
		logger.Warn("refused a request for a profile that may come from a web page", "error", err, "remote", r.RemoteAddr, "more_refused", unreported)
	}})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return &profiles{listener, newHTTPServer(pages.Handler(mux), logger)}, nil
}

// url returns where the profiles are; of nil, nowhere.
func (p *profiles) url() string {
	if p == nil {
		return ""
	}
	return localURL("http", p.listener) + "/debug/pprof/"
}

// start serves, and pushes the step that ends that.
func (p *profiles) start(steps *stopStack, fail context.CancelCauseFunc) {
	if p == nil {
		return
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := p.http.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serving on %v: %w", p.listener.Addr(), err))
		}
	}()
	steps.push("the profiles", func(context.Context) error {
		err := p.http.Close()
		<-served
		return err
	})
}

// close releases the address of profiles that were not started.
func (p *profiles) close() error {
	if p == nil {
		return nil
	}
	return p.listener.Close()
}
