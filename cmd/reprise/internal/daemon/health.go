package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/reprise-sqs/reprise"
)

// health is the answer of GET /health.
type health struct {
	// Status is the health of the consumer, or ok without one: see reprise.Health. The
	// answer has status 503 if the consumer fails to receive or is stopping; if the
	// journal has failed, just before the program ends; and if a server in memory has
	// met a defect of its own. If the disk is nearly full, ok becomes degraded.
	Status string `json:"status"`
	// Problem explains a status other than ok.
	Problem string `json:"problem,omitempty"`
	// Storage is where the server keeps messages: memory or disk. Empty without a server.
	Storage string `json:"storage,omitempty"`
	// Consumer counts the messages that the consumer holds and has settled.
	Consumer *consumerHealth `json:"consumer,omitempty"`
	// Breakers are the consumer's circuit breakers that are not closed.
	Breakers []breakerHealth `json:"breakers,omitempty"`
}

type consumerHealth struct {
	Running      int   `json:"running"`
	Waiting      int   `json:"waiting"`
	Settling     int   `json:"settling"`
	InBackoff    int   `json:"in_backoff"`
	Deleted      int64 `json:"deleted"`
	Retried      int64 `json:"retried"`
	DeadLettered int64 `json:"dead_lettered"`
}

// breakerHealth is a circuit breaker that is not closed.
type breakerHealth struct {
	State string `json:"state"`
	// Since is when the outage began, NextProbe when the next probe runs.
	Since     time.Time `json:"since,omitzero"`
	NextProbe time.Time `json:"next_probe,omitzero"`
	// Held counts the messages that wait for it.
	Held int `json:"held"`
	// Level is how many may run at once while it ramps up.
	Level int `json:"level,omitempty"`
	// Problem is the latest failure.
	Problem string `json:"problem,omitempty"`
}

// consumed fills in the health of c, which may be nil, and returns the status code of the
// answer.
func (h *health) consumed(c *consumer) (code int) {
	h.Status = reprise.HealthOK.String()
	if c == nil {
		return http.StatusOK
	}
	s := c.Status()
	h.Status, h.Problem = s.Health.String(), s.Problem
	h.Consumer = &consumerHealth{
		Running: s.Running, Waiting: s.Waiting, Settling: s.Settling, InBackoff: s.InBackoff,
		Deleted: s.Counts.Deleted, Retried: s.Counts.Retried, DeadLettered: s.Counts.DeadLettered,
	}
	for _, b := range s.Breakers {
		h.Breakers = append(h.Breakers, breakerHealth{State: b.State.String(), Since: b.Since.UTC(), NextProbe: b.NextProbe.UTC(), Held: b.Held, Level: b.Level, Problem: b.Problem})
	}
	switch s.Health {
	case reprise.HealthFailing, reprise.HealthStopping, reprise.HealthStopped:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

func (h *health) write(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	text, err := json.Marshal(h)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(code)
	fmt.Fprintf(w, "%s\n", text)
}

func (d *Daemon) serveHealth(w http.ResponseWriter, _ *http.Request) {
	h := health{Storage: "memory"}
	code := h.consumed(d.consumer)
	if d.durable() {
		h.Storage = "disk"
	}
	switch err := d.failure(); {
	case err != nil:
		h.Status, h.Problem, code = reprise.HealthFailing.String(), err.Error(), http.StatusServiceUnavailable
	case h.Problem == "" && d.durable() && d.journal.LowOnSpace():
		h.Status, h.Problem = reprise.HealthDegraded.String(), "the disk is nearly full: sends are refused"
	}
	h.write(w, code)
}
