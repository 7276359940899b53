package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// The failures of the service. The seed sets how the service treats the n-th request for a
// message, so that a run can be repeated. Only the outage depends on the run: it ends after some
// canaries have failed.
const (
	outageLength  = 4 * time.Second // at least, and until so many canaries have failed
	canaries      = 2
	longestOutage = 20 * time.Second
	// settling is how long requests that were under way at the beginning of the outage may take
	// to arrive. Later ones are canaries.
	settling = 500 * time.Millisecond

	minLatency = 40 * time.Millisecond
	maxLatency = 160 * time.Millisecond
	slowest    = 900 * time.Millisecond

	// hang is far beyond the consumer's patience, attemptTimeout: the service could count an
	// answer at about that time, and the consumer miss it.
	hang = 3 * attemptTimeout

	slowShare    = 0.05 // of the requests
	limitedShare = 0.15 // of the first requests for a message, as the next two
	failingShare = 0.06
	hangingShare = 0.01

	// failingRequests is how many requests for a good message, not counting those in the outage,
	// can fail. So no good message runs out of attempts.
	failingRequests = 2
)

// service receives webhooks and has failures: a small HTTP service that parses bodies, refuses
// some of them, and keeps records of its own.
type service struct {
	seed            uint64
	bodies          []string
	downAfter       int         // the outage begins after so many accepted messages
	onState         func(state) // of the outage; called once each
	listener        net.Listener
	server          *http.Server
	background      sync.WaitGroup
	stopOutage      *time.Timer
	mu              sync.Mutex
	records         []serviceRecord // by event
	accepted        int             // messages
	down, hadOutage bool            // the outage is on; it has been
	downSince       time.Time
	late            int           // requests since then, without those within settling
	cut             chan struct{} // closed when it goes down
}

// state is whether the service is up.
type state bool

const (
	down state = false
	up   state = true
)

// serviceRecord is the service's record of one message.
type serviceRecord struct {
	requests   int
	served     int // requests, those during the outage aside
	accepted   int
	mangled    int       // requests whose body was not what had been sent
	early      int       // requests before the end of a Retry-After
	retryAfter time.Time // the end of the last Retry-After
}

// startService listens on a free port of the loopback address.
func startService(ctx context.Context, seed uint64, bodies []string, onState func(state)) (*service, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the demo's service: %w", err)
	}
	s := &service{
		seed:      seed,
		bodies:    bodies,
		downAfter: max(1, len(bodies)/4),
		onState:   onState,
		listener:  listener,
		records:   make([]serviceRecord, len(bodies)),
		cut:       make(chan struct{}),
	}
	// Only the demo's consumer may call: web pages may not.
	guard, err := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{Host: listener.Addr().String()})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the demo's service: %w", err), listener.Close())
	}
	s.server = &http.Server{Handler: guard.Handler(s), ReadHeaderTimeout: 10 * time.Second}
	s.background.Go(func() {
		// Serve ends when Close is called. If it fails earlier, nothing is delivered, which the
		// demo reports at its end.
		_ = s.server.Serve(listener)
	})
	return s, nil
}

// URL is where the service takes webhooks.
func (s *service) URL() string { return "http://" + s.listener.Addr().String() + "/hooks" }

// Close ends the service and its requests.
func (s *service) Close() {
	_ = s.server.Close() // no caller is left to return it to
	s.background.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopOutage != nil {
		s.stopOutage.Stop()
	}
}

// snapshot returns the service's records.
func (s *service) snapshot() []serviceRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]serviceRecord(nil), s.records...)
}

// isDown reports whether the outage is on.
func (s *service) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	refusal := examine(body)
	e, ok := parseEvent(r.Header.Get("X-Aws-Sqsd-Attr-" + eventAttribute))
	if !ok || e < 0 || int(e) >= len(s.records) {
		answer(w, refusal) // a user tries the service by hand
		return
	}
	n, isDown := s.arrive(e, string(body))
	random := rand.New(rand.NewPCG(s.seed, uint64(e)<<32|uint64(n)))
	if !isDown {
		isDown = !s.work(r.Context(), random, n) && s.cutOff(e)
	}
	switch {
	case isDown:
		answerDown(w, random)
	case r.Context().Err() != nil:
		// The client has gone.
	case n <= failingRequests && random.Float64() < limitedShare:
		s.limit(w, e, random)
	case n <= failingRequests && random.Float64() < failingShare:
		http.Error(w, "the database is restarting", http.StatusInternalServerError)
	default:
		if refusal == nil {
			s.accept(e)
		}
		answer(w, refusal)
	}
}

// answer accepts a message, or refuses it.
func answer(w http.ResponseWriter, r *refusal) {
	if r != nil {
		http.Error(w, r.text, r.status)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// arrive records a request for e. n is its number among the requests that reach the service
// itself.
func (s *service) arrive(e event, body string) (n int, isDown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.records[e]
	p.requests++
	if body != s.bodies[e] {
		p.mangled++
	}
	if time.Now().Before(p.retryAfter) {
		p.early++
	}
	if !s.down {
		p.served++
		return p.served, false
	}
	if out := time.Since(s.downSince); out > settling {
		s.late++
		if s.late == canaries && out < outageLength {
			s.stopOutage.Reset(outageLength - out)
		} else if s.late == canaries {
			s.stopOutage.Reset(0) // this request still fails
		}
	}
	return p.served, true
}

// cutOff reports whether the outage began while a request for e was under way. The service then
// forgets the request.
func (s *service) cutOff(e event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		s.records[e].served--
	}
	return s.down
}

// accept records e as done, and begins the outage after downAfter messages.
func (s *service) accept(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.records[e]
	p.accepted++
	if p.accepted == 1 {
		s.accepted++
	}
	if s.accepted >= s.downAfter && !s.hadOutage {
		s.hadOutage, s.down = true, true
		s.downSince = time.Now()
		close(s.cut)
		s.stopOutage = time.AfterFunc(longestOutage, s.recover)
		s.onState(down)
	}
}

func (s *service) recover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.down {
		return
	}
	s.down = false
	s.onState(up)
}

// answerDown answers as the proxy in front of a service that is down, or cuts the connection.
func answerDown(w http.ResponseWriter, random *rand.Rand) {
	if random.IntN(2) == 0 {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
}

// work takes the time that a request takes. It returns false if the service went down,
// or the client did not wait for the end.
func (s *service) work(ctx context.Context, random *rand.Rand, n int) bool {
	took := minLatency + time.Duration(random.Int64N(int64(maxLatency-minLatency)))
	switch share := random.Float64(); {
	case n == 1 && share < hangingShare:
		took = hang
	case share < slowShare:
		took += time.Duration(random.Int64N(int64(slowest - took)))
	}
	s.mu.Lock()
	cut := s.cut
	if s.hadOutage {
		cut = nil // there is only one outage
	}
	s.mu.Unlock()
	select {
	case <-time.After(took):
		return true
	case <-cut:
		return false
	case <-ctx.Done():
		return false
	}
}

// limit turns a request away until a second or two have passed, and remembers until when. Half of
// the answers give the time as a date, in whole seconds.
func (s *service) limit(w http.ResponseWriter, e event, random *rand.Rand) {
	wait := time.Duration(1+random.IntN(2)) * time.Second
	until := time.Now().Add(wait)
	value := strconv.Itoa(int(wait / time.Second))
	if random.IntN(2) == 0 {
		if rounded := until.Truncate(time.Second); rounded.Before(until) {
			until = rounded.Add(time.Second)
		}
		value = until.UTC().Format(http.TimeFormat)
	}
	s.mu.Lock()
	s.records[e].retryAfter = until
	s.mu.Unlock()
	w.Header().Set("Retry-After", value)
	http.Error(w, "too many requests", http.StatusTooManyRequests)
}

// refusal is an answer that is the same at every attempt.
type refusal struct {
	status int
	text   string
}

// maxDepth is the depth of nesting from which on the service's recursion fails.
const maxDepth = 32

// examine returns why the service cannot accept a body, if so.
func examine(body []byte) *refusal {
	var hook struct {
		APIVersion string `json:"api_version"`
		Type       string `json:"type"`
		Data       struct {
			Amount *int `json:"amount"`
		} `json:"data"`
	}
	err := json.Unmarshal(body, &hook)
	mistyped, _ := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case err != nil && mistyped == nil:
		return &refusal{http.StatusBadRequest, "the body is not JSON: " + err.Error()}
	case depth(body) > maxDepth:
		return &refusal{http.StatusInternalServerError, "stack overflow while rendering the thread"}
	case hook.APIVersion != "" && hook.APIVersion < "2024":
		return &refusal{http.StatusUnprocessableEntity, "API version " + hook.APIVersion + " was retired"}
	case hook.Data.Amount != nil && *hook.Data.Amount <= 0:
		return &refusal{http.StatusUnprocessableEntity, "the amount of a payment must be positive"}
	}
	return nil
}

// depth is how deep the objects and arrays of a JSON text are nested.
func depth(body []byte) int {
	deepest, open, quoted := 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			open++
			deepest = max(deepest, open)
		case c == '}', c == ']':
			open--
		}
	}
	return deepest
}
