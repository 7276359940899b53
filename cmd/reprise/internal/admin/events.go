package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/eventstream"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Events passes the events of consumers on to the clients that watch the API, as they happen, and
// counts their attempts. What is rare it remembers, for the timeline. Without such a client it costs a consumer next
// to nothing. The zero Events is ready for use.
type Events struct {
	timeline timeline
	watched  atomic.Int32 // len(viewers), to be looked at without the lock

	mu      sync.Mutex
	viewers map[*viewer]struct{}
	streams Streams // of viewers
	stopped bool
	tallies map[string]*tally // by the queue's URL
}

// viewer is a stream. Events that do not fit into its queue are dropped and counted.
type viewer struct {
	client        string   // see ClientOf
	queues, types []string // the only ones that it wants; empty: all
	job           string   // the only one that it wants events about; empty: events about anything
	events        chan event
	lost          atomic.Int64
	stop          chan struct{} // closed by Stop
}

// event is one that is ready to be written.
type event struct {
	name string
	data []byte
}

const (
	// maxViewers and maxUnread bound the memory of streams; one client may have at most maxViewersOfOne of them.
	maxViewers      = 64
	maxViewersOfOne = 32
	maxUnread       = 256
)

// The names of events.
const (
	EventAttempt = "attempt"
	EventSettled = "settled"
	EventBreaker = "breaker"
	EventJob     = "job"
	EventLost    = "lost"
)

var eventNames = []string{EventAttempt, EventSettled, EventBreaker, EventJob}

// AttemptEvent is a run of a handler, at its end: see reprise.Attempt.
type AttemptEvent struct {
	Queue      string    `json:"queue"`
	URL        string    `json:"url"`
	At         time.Time `json:"at"`
	Message    string    `json:"message"` // its id
	Origin     string    `json:"origin,omitempty"`
	Group      string    `json:"group,omitempty"`
	Sent       time.Time `json:"sent,omitzero"` // of a copy, when its original was
	Attempt    int       `json:"attempt"`
	DurationMS float64   `json:"duration_ms"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason,omitempty"`
	Due        time.Time `json:"due,omitzero"`
	Error      string    `json:"error,omitempty"`
}

// SettledEvent is the end of a message's stay with a consumer: see reprise.Settled.
type SettledEvent struct {
	Queue    string    `json:"queue"`
	URL      string    `json:"url"`
	At       time.Time `json:"at"`
	Message  string    `json:"message"`
	Origin   string    `json:"origin,omitempty"`
	Outcome  string    `json:"outcome"`
	Reason   string    `json:"reason,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	Requeued bool      `json:"requeued,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// BreakerEvent is a circuit breaker that opens, half-opens, ramps up or closes: see
// reprise.OutageEvent.
type BreakerEvent struct {
	Queue     string    `json:"queue"`
	URL       string    `json:"url"`
	At        time.Time `json:"at"`
	Key       string    `json:"key"`
	State     string    `json:"state"`
	Previous  string    `json:"previous"`
	Since     time.Time `json:"since,omitzero"`
	NextProbe time.Time `json:"next_probe,omitzero"`
	Held      int       `json:"held"`
	Error     string    `json:"error,omitempty"`
}

// LostEvent reports that a viewer was too slow.
type LostEvent struct {
	// Events is how many events were dropped since the stream began or since the LostEvent before.
	Events int64 `json:"events"`
}

// Observer returns an observer that passes on the events of a consumer of the queue at url, and remembers the rare ones.
func (e *Events) Observer(url string) reprise.Observer {
	queue, tally := operate.NameOf(url), e.tally(url)
	return reprise.Observer{
		Attempt: func(_ context.Context, a reprise.Attempt) {
			tally.add(&a)
			e.publish(EventAttempt, url, "", func() any {
				return AttemptEvent{
					Queue: queue, URL: url, At: a.Started.Add(a.Duration).UTC(), Message: a.Message.ID, Origin: originOf(a.Message), Group: a.Message.GroupID,
					Sent: a.Message.Sent.UTC(), Attempt: a.Message.Attempt, DurationMS: float64(a.Duration.Microseconds()) / 1000, Outcome: a.Outcome.String(), Reason: nameOf(a.Reason),
					Due: a.Due.UTC(), Error: textOf(a.Err),
				}
			})
		},
		Settled: func(_ context.Context, s reprise.Settled) {
			e.timeline.settled(url, tally, &s)
			e.publish(EventSettled, url, "", func() any {
				return SettledEvent{
					Queue: queue, URL: url, At: time.Now().UTC(), Message: s.Message.ID, Origin: originOf(s.Message), Outcome: s.Outcome.String(),
					Reason: nameOf(s.Reason), Due: s.Due.UTC(), Requeued: s.Requeued, Error: textOf(s.Err),
				}
			})
		},
		Finding:  func(_ context.Context, f plan.Finding) { e.timeline.found(url, &f) },
		GivingUp: func(_ context.Context, g reprise.GivingUp) { e.timeline.givingUp(url, &g) },
		Outage: func(_ context.Context, o reprise.OutageEvent) {
			e.timeline.outage(url, &o)
			e.publish(EventBreaker, url, "", func() any {
				return BreakerEvent{
					Queue: queue, URL: url, At: o.At.UTC(), Key: o.Key, State: o.State.String(), Previous: o.Previous.String(),
					Since: o.Since.UTC(), NextProbe: o.NextProbe.UTC(), Held: o.Held, Error: textOf(o.Err),
				}
			})
		},
	}
}

// publish makes an event of a queue, and of a job if it is about one, if a viewer wants it, and gives
// it to the viewers that have room for it. It does not block: it runs on the consumers' own paths.
func (e *Events) publish(name, url, job string, content func() any) {
	if e.watched.Load() == 0 {
		return
	}
	e.mu.Lock()
	var wanted []*viewer
	for v := range e.viewers {
		if v.wants(name, url, job) {
			wanted = append(wanted, v)
		}
	}
	e.mu.Unlock()
	if len(wanted) == 0 {
		return
	}
	data, err := json.Marshal(content()) // once for all
	if err != nil {
		return // it cannot be: the events are plain data
	}
	for _, v := range wanted {
		select {
		case v.events <- event{name, data}:
		default:
			v.lost.Add(1)
		}
	}
}

func (v *viewer) wants(name, url, job string) bool {
	return (v.job == "" || v.job == job) && (len(v.types) == 0 || slices.Contains(v.types, name)) &&
		(len(v.queues) == 0 || slices.Contains(v.queues, url) || slices.Contains(v.queues, operate.NameOf(url)))
}

// Stop ends all streams; none begins afterwards. A process that stops must not wait for them.
func (e *Events) Stop(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for v := range e.viewers {
		close(v.stop)
	}
	e.viewers = nil
	return nil
}

// add adds a viewer; it is false if there are too many, or none may be added any more.
func (e *Events) add(v *viewer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.viewers == nil && !e.stopped {
		e.viewers, e.streams = make(map[*viewer]struct{}), Streams{Most: maxViewers, MostOfOne: maxViewersOfOne}
	}
	if e.stopped || !e.streams.Begin(v.client) {
		return false
	}
	e.viewers[v] = struct{}{}
	e.watched.Store(int32(len(e.viewers))) //nolint:gosec // G115: at most maxViewers
	return true
}

func (e *Events) remove(v *viewer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, counted := e.viewers[v]; counted { // else Stop has ended all
		delete(e.viewers, v)
		e.streams.End(v.client)
	}
	e.watched.Store(int32(len(e.viewers))) //nolint:gosec // G115: at most maxViewers
}

const (
	// pingEvery keeps proxies and clients from closing a quiet stream as dead.
	pingEvery = 15 * time.Second
	// writeWithin is how long a viewer may keep the process from writing, before it is cut off.
	writeWithin = 10 * time.Second
)

// watch streams events until the viewer goes or the process stops.
func (a *API) watch(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	v := &viewer{client: ClientOf(r), queues: query["queue"], types: query["type"], events: make(chan event, maxUnread), stop: make(chan struct{})}
	for _, name := range v.types {
		if !slices.Contains(eventNames, name) {
			return problem(http.StatusBadRequest, "bad-request", "type is %q: pass one of %q, or leave it out for all", name, eventNames)
		}
	}
	send, err := a.begin(w, v)
	if err != nil {
		return err
	}
	defer a.cfg.Events.remove(v)
	a.stream(r.Context(), v, send)
	return nil // the head has been written
}

// begin adds a viewer, and begins its stream, to which send writes.
func (a *API) begin(w http.ResponseWriter, v *viewer) (send func(string) error, err error) {
	if send, err = Stream(w); err != nil {
		return nil, err
	}
	if !a.cfg.Events.add(v) {
		return nil, problem(http.StatusServiceUnavailable, "too-many", "there are %d streams already, or %d of this client, or the process stops: try again later", maxViewers, maxViewersOfOne)
	}
	w.Header().Set("Content-Type", eventstream.ContentType)
	return send, nil
}

// Stream lifts the time limits of a reply that does not end by itself. Each send has one of its own, so that
// a client that does not read is cut off.
func Stream(w http.ResponseWriter) (send func(string) error, err error) {
	controller := http.NewResponseController(w)
	if err := controller.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return func(text string) error {
		if err := controller.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
			return err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
		if err := controller.Flush(); err != nil {
			return err
		}
		return controller.SetWriteDeadline(time.Time{}) // HTTP/2 would end a quiet stream at the deadline
	}, nil
}

// stream writes v's events, and how many it has lost, until the client goes or v is stopped.
func (a *API) stream(ctx context.Context, v *viewer, send func(string) error) {
	const reconnectIn = 2 * time.Second
	err := send(eventstream.Retry(reconnectIn))
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for err == nil {
		select {
		case e := <-v.events:
			err = send(v.lostText() + e.text())
		case <-ping.C:
			err = send(v.lostText() + eventstream.Ping)
		case <-v.stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (e event) text() string { return eventstream.Event(e.name, string(e.data)) }

// lostText is a LostEvent for v, or empty if v has lost nothing since the last one.
func (v *viewer) lostText() string {
	lost := v.lost.Swap(0)
	if lost == 0 {
		return ""
	}
	return eventstream.Event(EventLost, fmt.Sprintf(`{"events":%d}`, lost))
}

// originOf is a message's first id, empty if it is the message's own.
func originOf(m *reprise.Message) string {
	if m.OriginID == m.ID {
		return ""
	}
	return m.OriginID
}

// nameOf is the name of a reason, empty if there is none.
func nameOf(reason retry.Reason) string {
	if reason == 0 {
		return ""
	}
	return reason.String()
}

// maxError bounds how many bytes of an error an event has.
const maxError = 2000

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return terminal.Shorten(err.Error(), maxError)
}
