package sqsserver

// EndPolls answers the long polls that wait now, with no message, and leaves later
// ones alone. A program that stops a consumer of its own server calls it, since a
// consumer lets its long poll return by itself, up to 20 s later.
func (s *Server) EndPolls() {
	s.mu.Lock()
	defer s.stopOnPanic()
	for _, q := range s.byARN {
		s.endQueuePolls(q, nil)
	}
	s.serveAndUnlock()
}
