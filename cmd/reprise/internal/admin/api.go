// Package admin is the admin API of a process that consumes queues or serves them: JSON under
// [Path], as openapi.json describes it. The commands of operators call it, and so do other programs
// that watch or control the process.
package admin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Path begins the paths of all requests.
const Path = "/admin/v1/"

// Description describes the API in OpenAPI 3.1.
//
//go:embed openapi.json
var Description []byte

// Config configures an [API].
type Config struct {
	// Version is that of the program.
	Version string
	// Consumers returns those of the process now.
	Consumers func() []Running
	// Queues describes the queues that the process knows; complete reports that these are all of the
	// account and region.
	Queues func(ctx context.Context) (described []operate.Described, complete bool, err error)
	// JobQueue finds a queue that jobs may act on, by name or URL. Errors that are no *Error are
	// failures of the process. It is required.
	JobQueue func(ctx context.Context, queue string) (JobQueue, error)
	// Server has the queues of the process. Default: it has none of its own.
	Server *sqsserver.Server
	// CanAdvance reports that Server has no journal, so that its time can be moved on.
	CanAdvance bool
	// Traffic returns what clients did to the queues of Server, by ARN. Default: they are not counted.
	Traffic func() map[string]Traffic
	// RequestPrice is what a million requests to SQS cost, in dollars. Default: the list price.
	RequestPrice float64
	// Events passes on the events of the consumers. It is required; the code that stops the process
	// calls its Stop.
	Events *Events
	// Token must be in requests that come by TCP. Default: none; then only clients of this machine
	// may call.
	Token string
	// NeedsToken refuses requests by TCP if there is no Token.
	NeedsToken bool
	// ReadOnly refuses requests that change something.
	ReadOnly bool
	// Pages has the rules for web pages. It is required.
	Pages *sqsserver.PageGuard
	// Logger gets a line for each action and for refused clients. It is required.
	Logger *slog.Logger
}

// Running is a consumer of the process, and its queue.
type Running struct {
	URL, RetryLaneURL string
	// Policy is the text of its retry policy. Default: it is not told.
	Policy string
	// Retry is the policy, for the findings about its queue.
	Retry retry.Policy
	// Target is where its messages go, without secrets. Default: it is not told.
	Target string
	*reprise.Consumer
}

// API answers requests under [Path].
type API struct {
	cfg   Config
	since time.Time // when it was made: about the start of the process
	guard guard
	mux   *http.ServeMux
	jobs  jobs

	answers deadAnswers
	watcher watcher // of what the timeline tells and nobody reports
}

// route is an operation of the API.
type route struct {
	method, path string // below Path
	// action reports whether it changes something: then read-only mode refuses it, and it is
	// logged.
	action bool
	serve  func(http.ResponseWriter, *http.Request) error
}

// New returns the API.
func New(cfg Config) *API {
	a := &API{cfg: cfg, since: time.Now(), guard: guard{cfg: &cfg}, mux: http.NewServeMux(), jobs: jobs{room: maxExports}}
	allowed := make(map[string]string) // methods by path
	for _, r := range a.routes() {
		a.mux.Handle(r.method+" "+Path+r.path, a.handler(r))
		if allowed[r.path] != "" {
			allowed[r.path] += ", "
		}
		allowed[r.path] += r.method
	}
	for path, methods := range allowed {
		a.mux.HandleFunc(Path+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", methods)
			writeError(w, problem(http.StatusMethodNotAllowed, "method-not-allowed", "%s is not a method of %s: use %s", r.Method, r.URL.Path, methods))
		})
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, problem(http.StatusNotFound, "not-found", "there is nothing at %s: GET %sopenapi.json describes the API", r.URL.Path, Path))
	})
	return a
}

func (a *API) routes() []route {
	return []route{
		{"GET", "{$}", false, answer(a.process)},
		{"GET", "openapi.json", false, a.description},
		{"GET", "queues", false, answer(a.queues)},
		{"GET", "queues/{queue}", false, answer(a.queue)},
		{"POST", "queues/{queue}/messages", true, answer(a.sendMessage)},
		{"POST", "queues/{queue}/purge", true, answer(a.purge)},
		{"GET", "queues/{queue}/messages", false, answer(a.messages)},
		{"GET", "queues/{queue}/messages/{message}", false, answer(a.message)},
		{"POST", "queues/{queue}/messages/{message}/release", true, answer(messageAction(a, MessageRelease, a.releaseMessage))},
		{"POST", "queues/{queue}/messages/{message}/delete", true, answer(messageAction(a, MessageDelete, deleteMessage))},
		{"POST", "queues/{queue}/messages/{message}/dead-letter", true, answer(messageAction(a, MessageDeadLetter, deadLetterMessage))},
		{"POST", "queues/{queue}/messages/{message}/delay", true, answer(messageAction(a, MessageDelay, delayMessage))},
		{"GET", "queues/{queue}/due", false, answer(a.due)},
		{"GET", "queues/{queue}/dead", false, answer(a.dead)},
		{"GET", "stories/{message}", false, answer(a.story)},
		{"GET", "consumers", false, answer(a.consumers)},
		{"GET", "consumers/{queue}", false, answer(a.consumer)},
		{"GET", "consumers/{queue}/messages/{message}", false, answer(a.held)},
		{"GET", "events", false, a.watch},
		{"GET", "timeline", false, answer(a.timeline)},
		{"GET", "stats", false, answer(a.stats)},
		{"GET", "server", false, answer(a.ownServer)},
		{"PUT", "server/faults/{queue}", true, answer(a.setFaults)},
		{"POST", "server/clock", true, answer(a.advance)},
		{"GET", "jobs", false, answer(a.listJobs)},
		{"GET", "jobs/{job}", false, answer(a.job)},
		{"GET", "jobs/{job}/events", false, a.jobEvents},
		{"GET", "jobs/{job}/messages", false, answer(a.exported)},
		{"POST", "jobs", true, answer(a.createJob)},
		{"DELETE", "jobs/{job}", true, answer(a.cancelJob)},
		{"POST", "consumers/{queue}/pause", true, act(a, "pause", pause)},
		{"POST", "consumers/{queue}/resume", true, act(a, "resume", resume)},
		{"POST", "consumers/{queue}/concurrency", true, act(a, "concurrency", setConcurrency)},
		{"POST", "consumers/{queue}/rate", true, act(a, "rate", setRate)},
		{"POST", "consumers/{queue}/wake", true, act(a, "wake", a.wake)},
		{"POST", "consumers/{queue}/probe", true, act(a, "probe", probe)},
	}
}

// Takes reports whether a request is for the API.
func Takes(r *http.Request) bool {
	return r.URL.Path+"/" == Path || strings.HasPrefix(r.URL.Path, Path)
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'") // for replies that are opened in a browser
	if err := a.guard.check(r); err != nil {
		h.Set("Connection", "close") // who is refused tries again on a connection of its own
		writeError(w, err)
		return
	}
	if r.URL.Path+"/" == Path {
		http.Redirect(w, r, Path, http.StatusPermanentRedirect)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// maxBody has room for a message of 1 MiB of which JSON escapes each byte as two.
const maxBody = 2<<20 + 64<<10

func (a *API) handler(route route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := error(nil)
		if route.action {
			err = a.guard.checkAction(r)
		}
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			err = route.serve(w, r)
		}
		if err != nil {
			writeError(w, err)
		}
	})
}

// answer makes an operation of a func that returns the answer, which is sent as JSON.
func answer[T any](reply func(*http.Request) (T, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, err := reply(r)
		if err == nil {
			writeJSON(w, http.StatusOK, v)
		}
		return err
	}
}

// Process describes the process.
type Process struct {
	Version string `json:"version"`
	// ReadOnly reports whether actions are refused.
	ReadOnly bool `json:"read_only"`
	// Consumers is how many there are.
	Consumers int `json:"consumers"`
	// Description is the path of the description of the API.
	Description string `json:"description"`
}

func (a *API) process(*http.Request) (Process, error) {
	return Process{a.cfg.Version, a.cfg.ReadOnly, len(a.cfg.Consumers()), Path + "openapi.json"}, nil
}

func (a *API) description(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(Description) // the client may have gone
	return nil
}

// queuesTimeout limits the wait for SQS.
const queuesTimeout = 20 * time.Second

// Queues are the queues that the process knows.
type Queues struct {
	Queues []operate.Queue `json:"queues"`
}

func (a *API) queues(r *http.Request) (Queues, error) {
	ctx, cancel := context.WithTimeout(r.Context(), queuesTimeout)
	defer cancel()
	described, complete, err := a.cfg.Queues(ctx)
	if err != nil {
		return Queues{}, problem(http.StatusBadGateway, "sqs-failed", "the queues cannot be described: %v", err)
	}
	return Queues{a.examine(described, complete)}, nil
}

// examine returns the queues with their findings: of those that are consumed here, by the consumer's
// policy.
func (a *API) examine(described []operate.Described, complete bool) []operate.Queue {
	for _, c := range a.cfg.Consumers() {
		for i := range described {
			if described[i].URL == c.URL {
				described[i].Policy = &c.Retry
			}
		}
	}
	return operate.Queues(described, complete)
}

// Error is the reply to a request that failed.
type Error struct {
	// Text names the problem and the remedy. Code is one of a closed set.
	Text string `json:"error"`
	Code string `json:"code"`

	status int
	logged bool // by whoever has found it
}

func (e *Error) Error() string { return e.Text }

// Broken reports whether the process has failed at a request that it understands and permits.
func (e *Error) Broken() bool { return e.status == http.StatusInternalServerError }

// Unauthorized reports whether the request needs the token.
func (e *Error) Unauthorized() bool { return e.status == http.StatusUnauthorized }

// Status is the HTTP status of the reply.
func (e *Error) Status() int { return e.status }

func problem(status int, code, format string, args ...any) *Error {
	return &Error{Text: fmt.Sprintf(format, args...), Code: code, status: status}
}

func writeError(w http.ResponseWriter, err error) {
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		failed = problem(http.StatusInternalServerError, "failed", "%v", err)
	}
	writeJSON(w, failed.status, failed)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client may have gone
}
