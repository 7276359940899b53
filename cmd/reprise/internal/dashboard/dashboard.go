// Package dashboard is the web pages of a process that consumes queues or serves them. Pages are rendered
// here; what they show and do goes through the admin API of the same process, which has the rules.
//
// A page is a file of Go, which has its [page], a template of the same name in templates, and a line in
// pages.
package dashboard

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// Path begins the paths of all requests but those for [Home].
const (
	Path = "/ui/"
	Home = "/"
)

// Config configures a [Dashboard].
type Config struct {
	// API has what the pages show and do. It is required.
	API *admin.API
	// Version is that of the program, and ReadOnly that of the API: pages then offer no actions.
	Version  string
	ReadOnly bool
	// Own reports that the process has queues of its own: then looking at them costs nothing.
	Own bool
	// Functions are the Lambda functions that the process runs. Default: it runs none.
	Functions Functions
	// Logger gets what an operator must know. It is required.
	Logger *slog.Logger
}

// Dashboard answers requests for [Home] and below [Path].
type Dashboard struct {
	cfg       Config
	pages     []page
	templates map[string]*template.Template
	mux       *http.ServeMux
	samples   *sampler
	sessions  sessions
	playing   chan struct{} // has room for one simulation

	streams    sync.WaitGroup
	mu         sync.Mutex
	viewers    admin.Streams
	renderings map[string]*rendering // of the streams, by what tells them apart
	stopped    bool
	stop       chan struct{}
}

// New returns the dashboard.
func New(cfg Config) *Dashboard {
	served := slices.DeleteFunc(slices.Clone(pages), func(p page) bool { return p.only != nil && !p.only(&cfg) })
	d := &Dashboard{cfg: cfg, pages: served, templates: parse(served), mux: http.NewServeMux(), playing: make(chan struct{}, 1), renderings: make(map[string]*rendering), stop: make(chan struct{}), viewers: admin.Streams{Most: maxViewers, MostOfOne: maxViewersOfOne}}
	d.samples = newSampler(cfg.API.Inside("dashboard"), cfg.Own)
	for _, p := range served {
		d.mux.Handle("GET "+p.path, d.page(p))
		for name, data := range p.parts {
			d.mux.Handle("GET "+p.below(name), d.part(p, name, data))
		}
		for name, data := range p.figures {
			d.mux.Handle("GET "+p.below(name), d.figure(data))
		}
		for name, act := range p.actions {
			d.mux.Handle("POST "+p.below(name), d.action(act))
		}
	}
	d.mux.HandleFunc("GET "+Path+"assets/{name...}", serveAsset)
	d.mux.HandleFunc("GET "+Path+"jobs/{job}/messages", d.exported)
	d.mux.HandleFunc("GET "+signInPath, d.showSignIn)
	d.mux.HandleFunc("POST "+signInPath, d.signIn)
	d.mux.HandleFunc("POST "+Path+"sign-out", d.signOut)
	d.mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) {
		d.fail(w, r, http.StatusNotFound, "There is no such page.")
	})
	return d
}

// Takes reports whether a request is for the dashboard. A GET with an Action is for SQS, by its query
// protocol.
func Takes(r *http.Request) bool {
	if r.URL.Path == Home {
		return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !r.URL.Query().Has("Action")
	}
	return r.URL.Path+"/" == Path || strings.HasPrefix(r.URL.Path, Path)
}

// contentPolicy permits what this very address serves, and no text in a page that is run or that styles it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	if isLink(r) {
		d.showLink(w, r)
		return
	}
	if !d.admit(w, r) {
		return
	}
	if r.URL.Path == strings.TrimSuffix(Path, "/") || r.URL.Path == Path {
		http.Redirect(w, r, Home, http.StatusSeeOther)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	d.mux.ServeHTTP(w, r)
}

// maxForm has room for an edited message: 1 MiB, in which each byte may be escaped as three.
const maxForm = 3<<20 + 64<<10

// errStopping is the error of streams that begin when the process stops.
var errStopping = errors.New("the process stops, or has too many viewers already: close pages of the dashboard, or try again later")

const (
	// maxViewers bounds the streams, and maxViewersOfOne those of one session, or of one address without sessions.
	maxViewers      = 256
	maxViewersOfOne = 64
)

// begin counts a stream of a client, which calls end when it ends.
func (d *Dashboard) begin(client string) (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped || !d.viewers.Begin(client) {
		return nil, errStopping
	}
	d.streams.Add(1)
	return func() {
		d.mu.Lock()
		d.viewers.End(client)
		d.mu.Unlock()
		d.streams.Done()
	}, nil
}

// Stop ends all streams, and waits for them until ctx ends.
func (d *Dashboard) Stop(ctx context.Context) error {
	d.mu.Lock()
	if !d.stopped {
		d.stopped = true
		close(d.stop)
	}
	d.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.streams.Wait()
		d.samples.stop()
	}()
	limit := time.NewTimer(stopBudget)
	defer limit.Stop()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-limit.C: // a viewer that does not read is cut off when the server closes
	}
	return nil
}

const stopBudget = 2 * time.Second
