package daemon

import (
	"context"
	"net/http"
	"time"
)

// Part is something that a [Daemon] or a [Worker] serves and runs beside its own.
type Part struct {
	// Name names it in errors, such as "the functions".
	Name string
	// Takes reports whether a request is for the part: then Handler answers it. Handler has to guard
	// itself against web pages, and lifts the time limits of requests that may take longer: see
	// [WithoutTimeLimit].
	Takes   func(*http.Request) bool
	Handler http.Handler
	// Start is called when the address answers, before consumers receive. Default: nothing is started.
	Start func()
	// Stop is called when consumers have drained, while the address still answers. It ends the part's
	// streams, stops what runs within a budget of its own, and stops at once when ctx ends. Default:
	// there is nothing to stop.
	Stop func(ctx context.Context) error
}

// parts are those of a [Daemon] or of a [Worker].
type parts struct{ added []Part }

// Add adds a part. Run must not have been called.
func (ps *parts) Add(p Part) { ps.added = append(ps.added, p) }

// before passes requests that are for a part to it, and the others on to rest.
func (ps *parts) before(rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range ps.added {
			if ps.added[i].Takes(r) {
				ps.added[i].Handler.ServeHTTP(w, r)
				return
			}
		}
		rest.ServeHTTP(w, r)
	})
}

// start starts the parts, and pushes the steps that stop them.
func (ps *parts) start(steps *stopStack) {
	for _, p := range ps.added {
		if p.Start != nil {
			p.Start()
		}
		if p.Stop != nil {
			steps.push(p.Name, p.Stop)
		}
	}
}

// WithoutTimeLimit lets requests and replies take any time, in place of the time limits of the
// server.
func WithoutTimeLimit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		controller := http.NewResponseController(w)
		for _, set := range []func(time.Time) error{controller.SetReadDeadline, controller.SetWriteDeadline} {
			if err := set(time.Time{}); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
