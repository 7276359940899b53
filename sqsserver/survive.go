package sqsserver

import (
	"fmt"
	"net/http"
	"runtime/debug"
)

// end ends a call: after a panic, with a failure in place of a reply. It passes on
// what net/http is to know: that the connection is to be cut.
func (c *call) end(w http.ResponseWriter, problem any) {
	cut := problem == http.ErrAbortHandler //nolint:errorlint // a recovered value, which net/http compares so
	if problem != nil && !cut {
		c.server.config.Logger.Error("sqsserver: a request met a defect of the server; please report it",
			"action", c.action, "request", c.requestID, "panic", fmt.Sprint(problem), "stack", string(debug.Stack()))
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

// stopOnPanic is deferred by whoever takes the lock to change something. After a
// panic it stops the server and gives the lock up: an operation has ended half-way,
// and nothing that the queues say can be trusted any more. The panic goes on.
func (s *Server) stopOnPanic() {
	if problem := recover(); problem != nil {
		s.breakDown(problem)
		panic(problem)
	}
}

// release is stopOnPanic for a hold that ends in no other way.
func (s *Server) release() {
	if problem := recover(); problem != nil {
		s.breakDown(problem)
		panic(problem)
	}
	s.mu.Unlock()
}

func (s *Server) breakDown(problem any) {
	defer s.mu.Unlock()
	err := fmt.Errorf("a defect broke off an operation on the queues: %v", problem)
	if s.keeper != nil {
		s.keeper.fail(err)
		return
	}
	s.broken = err
	for _, q := range s.byARN {
		s.dismiss(q, s.refusal())
	}
}
