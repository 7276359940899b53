package sqsserver

import "fmt"

// Err returns why the server has stopped: an error of its journal, after which it
// refuses every request, for it could not keep what it acknowledged. What it has
// acknowledged before is on disk. A server without a journal stops only when a
// defect of its own has broken off an operation on the queues. It is nil while the
// server works, and after Close.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == nil {
		return s.broken
	}
	return s.writer.err
}

// Failed returns a channel that is closed when the journal fails; Err then says
// why, and nothing else does but the replies to requests: a program should watch it,
// say it, and end. On a server without a journal it is nil.
func (s *Server) Failed() <-chan struct{} {
	if s.writer == nil {
		return nil
	}
	return s.writer.failed
}

// refusal says why the server takes no request, if it does not. The lock is held.
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

// checkSpace refuses to take more while the journal's disk is almost full.
func (s *Server) checkSpace() error {
	if w := s.writer; w != nil && w.watcher != nil && w.watcher.LowOnSpace() {
		return errLowOnSpace()
	}
	return nil
}

// stopOnPanic is deferred by whoever takes the lock to change something. After a
// panic it stops the server and gives the lock up: an operation has ended half-way,
// and nothing that the queues say can be trusted any more. The panic goes on.
func (s *Server) stopOnPanic() {
	if problem := recover(); problem != nil {
		s.stopAfterPanic(problem)
		panic(problem)
	}
}

// unlockOrStop is stopOnPanic for a hold that ends in no other way.
func (s *Server) unlockOrStop() {
	if problem := recover(); problem != nil {
		s.stopAfterPanic(problem)
		panic(problem)
	}
	s.mu.Unlock()
}

func (s *Server) stopAfterPanic(problem any) {
	defer s.mu.Unlock()
	err := fmt.Errorf("a defect broke off an operation on the queues: %v", problem)
	if s.writer != nil {
		s.writer.fail(err)
		return
	}
	s.broken = err
	for _, q := range s.byARN {
		s.endQueuePolls(q, s.refusal())
	}
}
