package sqsserver

import "fmt"

// Err returns why the server has stopped. After an error of its journal it refuses every
// request, since it could not keep what it would acknowledge; everything that it has
// acknowledged is on disk. A server without a journal stops only when a panic has
// interrupted an operation on the queues. Err is nil while the server works, and after
// Close.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == nil {
		return s.broken
	}
	return s.writer.err
}

// Failed returns a channel that is closed when the journal fails. Err then returns the
// reason, which is not logged: a program should wait for the channel, report the error, and
// end. On a server without a journal the channel is nil.
func (s *Server) Failed() <-chan struct{} {
	if s.writer == nil {
		return nil
	}
	return s.writer.failed
}

// refusal returns the error with which a server that has stopped or was closed answers every
// request, or nil. The lock is held.
func (s *Server) refusal() error {
	switch {
	case s.closed:
		return errServiceUnavailable()
	case s.writer != nil && s.writer.err != nil:
		return errStorage(s.writer.err)
	case s.broken != nil:
		return errBroken(s.broken)
	}
	return nil
}

// checkSpace returns an error while the journal's disk is almost full.
func (s *Server) checkSpace() error {
	if w := s.writer; w != nil && w.watcher != nil && w.watcher.LowOnSpace() {
		return errLowOnSpace()
	}
	return nil
}

// stopOnPanic is deferred by every function that takes the lock to change something. After a
// panic it stops the server and unlocks: the operation was interrupted, so the queues cannot
// be trusted any more. The panic continues.
func (s *Server) stopOnPanic() {
	if problem := recover(); problem != nil {
		s.stopAfterPanic(problem)
		panic(problem)
	}
}

// unlockOrStop is stopOnPanic for functions that do not unlock themselves.
func (s *Server) unlockOrStop() {
	if problem := recover(); problem != nil {
		s.stopAfterPanic(problem)
		panic(problem)
	}
	s.mu.Unlock()
}

func (s *Server) stopAfterPanic(problem any) {
	defer s.mu.Unlock()
	err := fmt.Errorf("a panic interrupted an operation on the queues: %v", problem)
	if s.writer != nil {
		s.writer.fail(err)
		return
	}
	s.broken = err
	for _, q := range s.byARN {
		s.endQueuePolls(q, s.refusal())
	}
	s.announceEmpty()
}
