package admin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// Consumers are those of the process.
type Consumers struct {
	Consumers []Consumer `json:"consumers"`
}

// Consumer is a consumer as an operator sees it: see reprise.Status.
type Consumer struct {
	Queue   string `json:"queue"` // its name
	URL     string `json:"url"`
	Health  string `json:"health"`
	Problem string `json:"problem,omitempty"`
	Paused  bool   `json:"paused"`
	// Policy is the text of its retry policy; empty: not told.
	Policy string `json:"policy,omitempty"`
	// Target is where its messages go: a URL without user and query, a command without arguments, a function or a
	// queue; empty: not told.
	Target string `json:"target,omitempty"`
	// Concurrency is how many handlers may run at once, Rate how many may start a second; 0: any
	// number.
	Concurrency int     `json:"concurrency"`
	Rate        float64 `json:"rate"`
	// Running, Waiting and Settling count the messages that it holds, InBackoff those that it
	// has hidden until their retry.
	Running   int `json:"running"`
	Waiting   int `json:"waiting"`
	Settling  int `json:"settling"`
	InBackoff int `json:"in_backoff"`
	// BackoffProblem is the last error of those in backoff.
	BackoffProblem string `json:"backoff_problem,omitempty"`
	// Breakers are those that are not closed, and keys that are paused.
	Breakers    []Breaker `json:"breakers,omitempty"`
	GivingUp    string    `json:"giving_up,omitempty"`
	LastReceive time.Time `json:"last_receive,omitzero"`
	LastSettle  time.Time `json:"last_settle,omitzero"`
	Counts      Counts    `json:"counts"`
	// Calls is how many requests it has made to SQS.
	Calls int64 `json:"calls"`
	// RetryLane is the consumer of its retry lane.
	RetryLane *Consumer `json:"retry_lane,omitempty"`
}

// Counts counts messages by their outcome: see reprise.Counts.
type Counts struct {
	Received     int64 `json:"received"`
	Attempts     int64 `json:"attempts"`
	Deleted      int64 `json:"deleted"`
	Retried      int64 `json:"retried"`
	Released     int64 `json:"released"`
	DeadLettered int64 `json:"dead_lettered"`
	Kept         int64 `json:"kept"`
	Lost         int64 `json:"lost"`
	Woken        int64 `json:"woken"`
}

// Breaker is a circuit breaker, or a key that is paused: see reprise.BreakerStatus.
type Breaker struct {
	Key       string    `json:"key"` // empty: the whole consumer's
	State     string    `json:"state"`
	Paused    bool      `json:"paused"`
	Since     time.Time `json:"since,omitzero"`
	NextProbe time.Time `json:"next_probe,omitzero"`
	Held      int       `json:"held"`
	Level     int       `json:"level,omitempty"`
	Problem   string    `json:"problem,omitempty"`
}

func (a *API) consumers(*http.Request) (Consumers, error) {
	all := Consumers{Consumers: []Consumer{}}
	for _, c := range a.cfg.Consumers() {
		all.Consumers = append(all.Consumers, consumerOf(c))
	}
	return all, nil
}

func (a *API) consumer(r *http.Request) (Consumer, error) {
	c, err := a.find(r.PathValue("queue"))
	if err != nil {
		return Consumer{}, err
	}
	return consumerOf(c), nil
}

// find returns the consumer of a queue that is given by name or URL.
func (a *API) find(queue string) (found Running, err error) {
	var urls, names []string
	for _, c := range a.cfg.Consumers() {
		names = append(names, operate.NameOf(c.URL))
		if c.URL == queue || operate.NameOf(c.URL) == queue {
			found, urls = c, append(urls, c.URL)
		}
	}
	switch len(urls) {
	case 0:
		return found, problem(http.StatusNotFound, "not-consumed", "this process does not consume queue %q, but %s", queue, someOf(names))
	case 1:
		return found, nil
	}
	return found, problem(http.StatusConflict, "ambiguous", "this process consumes %d queues called %q: name one by its URL, escaped, of %q", len(urls), queue, urls)
}

// findFor is find for the messages of a queue: those of a retry lane are its consumer's, too.
func (a *API) findFor(queue string) (Running, error) {
	found, err := a.find(queue)
	if err == nil {
		return found, nil
	}
	for _, c := range a.cfg.Consumers() {
		if lane := c.RetryLaneURL; lane != "" && (lane == queue || operate.NameOf(lane) == queue) {
			return c, nil
		}
	}
	return found, err
}

// someOf lists names, as many as a sentence can have.
func someOf(names []string) string {
	const most = 5
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func consumerOf(running Running) Consumer {
	s := running.Status()
	c := Consumer{
		Queue: operate.NameOf(running.URL), URL: running.URL, Health: s.Health.String(), Problem: s.Problem, Paused: s.Paused, Policy: running.Policy, Target: running.Target,
		Concurrency: s.Concurrency, Rate: s.Rate, Running: s.Running, Waiting: s.Waiting, Settling: s.Settling, InBackoff: s.InBackoff, BackoffProblem: s.BackoffProblem,
		LastReceive: s.LastReceive.UTC(), LastSettle: s.LastSettle.UTC(), Calls: s.Calls.Total(),
		Counts: Counts{
			Received: s.Counts.Received, Attempts: s.Counts.Attempts, Deleted: s.Counts.Deleted, Retried: s.Counts.Retried, Released: s.Counts.Released,
			DeadLettered: s.Counts.DeadLettered, Kept: s.Counts.Kept, Lost: s.Counts.Lost, Woken: s.Counts.Woken,
		},
	}
	if s.GivingUp != nil {
		c.GivingUp = s.GivingUp.String()
	}
	for _, b := range s.Breakers {
		c.Breakers = append(c.Breakers, breakerOf(b))
	}
	if lane := running.RetryLane(); lane != nil {
		of := consumerOf(Running{URL: running.RetryLaneURL, Consumer: lane})
		c.RetryLane = &of
	}
	return c
}

func breakerOf(b reprise.BreakerStatus) Breaker {
	return Breaker{
		Key: b.Key, State: b.State.String(), Paused: b.Paused, Since: b.Since.UTC(), NextProbe: b.NextProbe.UTC(),
		Held: b.Held, Level: b.Level, Problem: b.Problem,
	}
}
