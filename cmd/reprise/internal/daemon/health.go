package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"time"

	"github.com/reprise-sqs/reprise"
)

// health is the answer of GET /health.
type health struct {
	// Status is the worst health of the consumers, or ok without one: see reprise.Health. The
	// answer has status 503 if a consumer fails to receive or is stopping; if the journal has
	// failed, just before the program ends; and if a server in memory has stopped because of
	// a bug. If the disk is nearly full, ok becomes degraded.
	Status string `json:"status"`
	// Problem explains a status other than ok.
	Problem string `json:"problem,omitempty"`
	// Storage is where the server keeps messages: memory or disk. Empty without a server.
	Storage string `json:"storage,omitempty"`
	// Consumer counts the messages that the consumers hold and have settled.
	Consumer *consumerHealth `json:"consumer,omitempty"`
	// Breakers are the consumers' circuit breakers that are not closed.
	Breakers []breakerHealth `json:"breakers,omitempty"`
	// Queues are those that are consumed, if there are several.
	Queues []queueHealth `json:"queues,omitempty"`
}

// queueHealth is the health of one queue of several.
type queueHealth struct {
	Queue    string          `json:"queue"` // its URL
	Status   string          `json:"status"`
	Problem  string          `json:"problem,omitempty"`
	Consumer *consumerHealth `json:"consumer"`
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

// breakerHealth is a circuit breaker that is not closed, or whose key is paused. The key itself, which
// may name a customer, is shown to operators alone.
type breakerHealth struct {
	// Queue is the URL of its queue, if several are consumed.
	Queue string `json:"queue,omitempty"`
	State string `json:"state"`
	// Since is when the outage began, NextProbe when the next probe runs.
	Since     time.Time `json:"since,omitzero"`
	NextProbe time.Time `json:"next_probe,omitzero"`
	// Held counts the messages that wait for it.
	Held int `json:"held"`
	// Level is how many may run at once while it ramps up.
	Level int `json:"level,omitempty"`
	// Paused says that an operator has paused its key.
	Paused bool `json:"paused,omitempty"`
	// Problem is the latest failure.
	Problem string `json:"problem,omitempty"`
}

// consumed fills in the health of the consumers, and returns the status code of the answer.
func (h *health) consumed(all []*consumer) (code int) {
	h.Status = reprise.HealthOK.String()
	worst := reprise.HealthOK
	for _, c := range all {
		s := c.Status()
		counts := &consumerHealth{
			Running: s.Running, Waiting: s.Waiting, Settling: s.Settling, InBackoff: s.InBackoff,
			Deleted: s.Counts.Deleted, Retried: s.Counts.Retried, DeadLettered: s.Counts.DeadLettered,
		}
		problem := s.Problem
		if len(all) > 1 {
			h.Queues = append(h.Queues, queueHealth{c.of.QueueURL, s.Health.String(), s.Problem, counts})
			if problem != "" {
				problem = path.Base(c.of.QueueURL) + ": " + problem
			}
		}
		if h.Consumer == nil {
			h.Consumer = new(consumerHealth)
		}
		h.Consumer.add(counts)
		if severity[s.Health] > severity[worst] {
			worst, h.Status, h.Problem = s.Health, s.Health.String(), problem
		}
		for _, b := range s.Breakers {
			health := breakerHealth{State: b.State.String(), Since: b.Since.UTC(), NextProbe: b.NextProbe.UTC(), Held: b.Held, Level: b.Level, Paused: b.Paused, Problem: b.Problem}
			if len(all) > 1 {
				health.Queue = c.of.QueueURL
			}
			h.Breakers = append(h.Breakers, health)
		}
	}
	switch worst {
	case reprise.HealthFailing, reprise.HealthStopping, reprise.HealthStopped:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// severity orders the healths of several queues: that of the program is the worst.
var severity = map[reprise.Health]int{
	reprise.HealthNew: 1, reprise.HealthDegraded: 2, reprise.HealthStopped: 3, reprise.HealthStopping: 4, reprise.HealthFailing: 5,
}

// add adds the counts of another queue.
func (c *consumerHealth) add(o *consumerHealth) {
	c.Running += o.Running
	c.Waiting += o.Waiting
	c.Settling += o.Settling
	c.InBackoff += o.InBackoff
	c.Deleted += o.Deleted
	c.Retried += o.Retried
	c.DeadLettered += o.DeadLettered
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
	code := h.consumed(d.all())
	if d.durable() {
		h.Storage = "disk"
	}
	switch err := d.failure(); {
	case err != nil:
		h.Status, h.Problem, code = reprise.HealthFailing.String(), err.Error(), http.StatusServiceUnavailable
	case h.Status == reprise.HealthOK.String() && d.durable() && d.journal.LowOnSpace():
		h.Status, h.Problem = reprise.HealthDegraded.String(), "the disk is nearly full: sends are refused"
	}
	h.write(w, code)
}
