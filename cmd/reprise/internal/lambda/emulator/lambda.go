package emulator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// Lambda runs functions. It is made by [New], is an http.Handler that speaks the Invoke API, and
// must be closed.
type Lambda struct {
	cfg    Config
	routes http.Handler
	events *events

	killed  context.Context // ends every instance at once
	kill    context.CancelFunc
	invokes sync.WaitGroup // that were accepted and have not ended
	running sync.WaitGroup // instances
	started atomic.Int64   // instances so far

	mu      sync.Mutex // taken before a pool's, which is taken before that of the form it replaced
	pools   map[string]*pool
	closing bool
}

// New returns a Lambda with the functions of cfg. No process is started before its
// function is invoked.
func New(cfg Config) (*Lambda, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &Lambda{cfg: cfg, pools: make(map[string]*pool)}
	for _, f := range cfg.Functions {
		l.pools[f.Name] = newPool(l, f.withDefaults(), nil)
	}
	for _, f := range cfg.Functions {
		if err := l.checkTargets(f); err != nil {
			return nil, err
		}
	}
	l.killed, l.kill = context.WithCancel(context.Background())
	var err error
	if l.events, err = newEvents(l); err != nil {
		return nil, err
	}
	l.routes = l.newRoutes()
	return l, nil
}

// Resume runs the asynchronous events that Config.Journal has from an earlier process. It is
// called once, when functions can reach the servers that they need.
func (l *Lambda) Resume() { l.events.resume() }

// ServeHTTP answers the Invoke API. Requests are not authenticated.
func (l *Lambda) ServeHTTP(w http.ResponseWriter, r *http.Request) { l.routes.ServeHTTP(w, r) }

// Refuse answers a request whose caller may not make it.
func (l *Lambda) Refuse(w http.ResponseWriter, err error) {
	w.Header().Set("X-Amzn-Requestid", newRequestID())
	writeError(w, &Error{Status: http.StatusForbidden, Code: "AccessDeniedException", Message: err.Error()})
}

// Invoke invokes a function, by its name or ARN, and waits for the result. An empty payload is
// the event {}. An invoke that does not reach the function fails with an [*Error]. If ctx ends
// first, the invoke continues without the caller, as it does on Lambda.
func (l *Lambda) Invoke(ctx context.Context, name string, payload []byte) (Result, error) {
	name, arn, err := l.cfg.resolve(name, "")
	if err != nil {
		return Result{}, err
	}
	inv, err := newInvocation(arn, payload, maxSyncPayload)
	if err != nil {
		return Result{}, err
	}
	return l.invoke(ctx, name, inv)
}

// invoke runs inv on the function called name.
func (l *Lambda) invoke(ctx context.Context, name string, inv *invocation) (Result, error) {
	if err := l.begin(name, inv); err != nil {
		return Result{}, err
	}
	select {
	case <-inv.done:
		return inv.result, inv.err
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}

// begin passes inv to the function, which ends it.
func (l *Lambda) begin(name string, inv *invocation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return errClosing
	}
	p, known := l.pools[name]
	if !known {
		return notFound("Function not found: " + inv.arn)
	}
	return p.begin(inv)
}

var errClosing = &Error{Status: http.StatusInternalServerError, Code: "ServiceException", Message: "the local Lambda is stopping"}

// function returns the pool of the function called name.
func (l *Lambda) function(name string) (Function, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, known := l.pools[name]
	if !known {
		return Function{}, false
	}
	return p.function, true
}

// functions returns all functions in the order of their names.
func (l *Lambda) functions() []Function {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Function, 0, len(l.pools))
	for _, name := range slices.Sorted(maps.Keys(l.pools)) {
		all = append(all, l.pools[name].function)
	}
	return all
}

// Replace replaces a function by a new form, or adds it. Invokes from now on go to processes of
// the new form; those of the old one end when they have answered.
func (l *Lambda) Replace(f Function) error {
	if err := f.validate(l.cfg.Send != nil); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return errClosing
	}
	if err := l.checkTargets(f); err != nil {
		return err
	}
	old := l.pools[f.Name]
	l.pools[f.Name] = newPool(l, f.withDefaults(), old)
	if old != nil {
		old.retire()
	}
	return nil
}

// Remove deletes a function: from now on invokes of it are refused, its processes end when they
// have answered, and its asynchronous events are given up when they are due, which is logged.
func (l *Lambda) Remove(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, known := l.pools[name]
	if !known {
		return notFound("Function not found: " + l.cfg.functionARN(name))
	}
	delete(l.pools, name)
	old.retire()
	return nil
}

// checkTargets returns an error if a function to which f's events go is missing.
func (l *Lambda) checkTargets(f Function) error {
	for _, arn := range []string{f.Async.OnSuccess, f.Async.OnFailure} {
		if arn == "" {
			continue
		}
		d, err := parseDestination(arn)
		if err != nil {
			return err
		}
		if d.service != "lambda" {
			continue
		}
		name, _, err := l.cfg.resolve(arn, "")
		if err != nil {
			return fmt.Errorf("function %q: the destination: %w", f.Name, err)
		}
		if _, known := l.pools[name]; !known && name != f.Name {
			return fmt.Errorf("function %q: the destination %q names a function that does not exist: add it, or leave the destination out", f.Name, arn)
		}
	}
	return nil
}

// Close refuses new invokes, waits for running ones until they or ctx end, and kills every
// process. Asynchronous events that still wait stay in Config.Journal. Without a journal they are
// lost, unlike on Lambda: the error has their number, and the log lists them.
func (l *Lambda) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return errors.New("closing the local Lambda: it has been closed before")
	}
	l.closing = true
	l.mu.Unlock()

	l.events.stop()
	drained := make(chan struct{})
	go func() {
		l.invokes.Wait()
		l.events.wait()
		close(drained)
	}()
	var problems []error
	select {
	case <-drained:
	case <-ctx.Done():
		problems = append(problems, fmt.Errorf("invokes were cut off: %w", context.Cause(ctx)))
	}
	l.kill()
	<-drained
	l.running.Wait()
	problems = append(problems, l.events.lost())
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("closing the local Lambda: %w", err)
	}
	return nil
}
