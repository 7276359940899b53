package sqsserver

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
)

// end ends a call: after a panic, with a failure in place of a reply. It passes on
// what net/http is to know: that the connection is to be cut.
func (c *call) end(w http.ResponseWriter, problem any) {
	cut := problem == http.ErrAbortHandler //nolint:errorlint // a recovered value, which net/http compares so
	if problem != nil && !cut {
		c.server.config.Logger.Error("sqsserver: a request met a defect of the server; please report it",
			"action", c.action, "request", c.requestID.String(), "panic", fmt.Sprint(problem), "stack", string(debug.Stack()))
		if inEngine() {
			c.server.breakDown(fmt.Errorf("a defect broke off an operation on the queues: %v", problem))
		}
		if cut = c.replied; !cut {
			_ = c.writeError(w, errInternalFailure("The server has a defect, which its log describes.")) // who is not there needs no error
		}
	}
	if c.seen != nil && cut {
		c.seen.Status = 0
	}
	c.report()
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// inEngine reports whether the panic under way came out of the engine.
func inEngine() bool {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "/internal/engine.") {
			return true
		}
		if !more {
			return false
		}
	}
}

// breakDown stops the server after a panic in the engine: an operation has ended
// half-way, and nothing that the queues say can be trusted any more. Since the
// engine is called under the lock only, the goroutine that panicked holds it.
func (s *Server) breakDown(err error) {
	defer s.mu.Unlock()
	if s.keeper != nil {
		s.keeper.fail(err)
		return
	}
	s.broken = err
	for _, q := range s.byARN {
		s.dismiss(q, s.refusal())
	}
}
