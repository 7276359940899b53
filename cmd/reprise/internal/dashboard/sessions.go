package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// sessionLife is a shift.
	sessionLife = 12 * time.Hour
	// maxSessions bounds the memory. Above it the oldest session ends: only who has the token begins one.
	maxSessions = 256
	// cookiePrefix begins the name of a session's cookie, and the port ends it: browsers send cookies to all ports of a
	// host, so that the dashboards of two processes would replace each other's. It is not __Host-, which would need HTTPS.
	cookiePrefix = "reprise-session-"
)

// session is what the process knows of a browser that has shown the token.
type session struct {
	id   string // tells it from others in this process; not secret
	port string // at which it was begun, and where alone it counts
	end  time.Time
	over chan struct{} // closed when the session is ended before its time
}

// sessions are those of the process. They are kept here and not in the cookie, so that one can be ended: a cookie is a
// random name, which means nothing to another process, nor to this one after a restart. The zero value is ready for use.
type sessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*session // by the digest of the cookie: how long a look-up takes tells nothing about it
}

// begin begins a session at a port, and returns the value of its cookie.
func (s *sessions) begin(port string, now time.Time) string {
	var name [32]byte
	_, _ = rand.Read(name[:]) // it never fails
	value := base64.RawURLEncoding.EncodeToString(name[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[[sha256.Size]byte]*session)
	}
	if len(s.all) >= maxSessions {
		var oldest [sha256.Size]byte
		for digest, other := range s.all {
			if first := s.all[oldest]; first == nil || other.end.Before(first.end) {
				oldest = digest
			}
		}
		s.drop(oldest)
	}
	digest := sha256.Sum256([]byte(value))
	s.all[digest] = &session{id: string(digest[:]), port: port, end: now.Add(sessionLife), over: make(chan struct{})}
	return value
}

// find returns the session of a cookie at a port; nil if there is none, or if it has ended.
func (s *sessions) find(value, port string, now time.Time) *session {
	digest := sha256.Sum256([]byte(value))
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[digest]
	if found == nil || found.port != port {
		return nil
	}
	if !now.Before(found.end) {
		s.drop(digest)
		return nil
	}
	return found
}

// finish ends the session of a cookie at a port, if there is one.
func (s *sessions) finish(value, port string) {
	digest := sha256.Sum256([]byte(value))
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.all[digest]; found != nil && found.port == port {
		s.drop(digest)
	}
}

func (s *sessions) drop(digest [sha256.Size]byte) {
	close(s.all[digest].over)
	delete(s.all, digest)
}

// sessionOf returns the session of a request; nil if it has none.
func (d *Dashboard) sessionOf(r *http.Request) *session {
	port := portOf(r)
	for _, cookie := range r.CookiesNamed(cookiePrefix + port) { // another port of this host may have set one for a longer path
		if found := d.sessions.find(cookie.Value, port, time.Now()); found != nil {
			return found
		}
	}
	return nil
}

// signedIn reports whether a request has a session that has not ended.
func (d *Dashboard) signedIn(r *http.Request) bool { return d.sessionOf(r) != nil }

// portOf is the port that the browser calls, which a proxy or a container may have mapped to another one.
func portOf(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		return port
	}
	if r.TLS != nil {
		return "443"
	}
	return "80"
}
