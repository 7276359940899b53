package operate

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

// Standing is where a message stands, why it is not done, and until when.
type Standing struct {
	// State is one of a closed set: visible, held back, delayed, in flight, working, settling,
	// waiting for a retry, given up, dead.
	State string `json:"state"`
	Why   string `json:"why"`
	// Since and Until bound the state. Zero: that is not known.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Attempt is the run that goes on, or is next, of Of; 0: not known, or no limit.
	Attempt int    `json:"attempt,omitempty"`
	Of      int    `json:"of,omitempty"`
	Error   string `json:"error,omitempty"` // of the last attempt, or of the dependency
	// Consumer is the address of the process that says so. Empty: none does.
	Consumer string `json:"consumer,omitempty"`
	// Unknown is what cannot be known, and why.
	Unknown string `json:"unknown,omitempty"`
}

// The states.
const (
	StandingVisible  = "visible"
	StandingHeld     = "held back"
	StandingDelayed  = "delayed"
	StandingInFlight = "in flight"
	StandingWorking  = "working"
	StandingSettling = "settling"
	StandingRetry    = "waiting for a retry"
	StandingGivenUp  = "given up"
	StandingDead     = "dead"
)

// Held is what a consumer knows of a message: see reprise.Standing.
type Held struct {
	ID          string    `json:"id"`
	Origin      string    `json:"origin,omitempty"`
	Group       string    `json:"group,omitempty"`
	Stage       string    `json:"stage"`
	Attempt     int       `json:"attempt"`
	MaxAttempts int       `json:"max_attempts,omitempty"` // 0: no limit
	Receives    int       `json:"receives"`
	Since       time.Time `json:"since,omitzero"`
	Until       time.Time `json:"until,omitzero"`
	LeaseEnd    time.Time `json:"lease_end,omitzero"`
	Key         string    `json:"key,omitempty"`
	Head        string    `json:"head,omitempty"`
	Outcome     string    `json:"outcome,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Problem     string    `json:"problem,omitempty"`
	Policy      string    `json:"policy,omitempty"` // of the consumer; empty: it has no text
}

// Facts are what is known of a message and of the consumer of its queue.
type Facts struct {
	// Message is the message as its queue has it. Default: it is not visible there.
	Message *Message
	// State is what a reprise server says: visible, delayed or in flight. Default: SQS has let
	// itself be asked for visible messages only.
	State string
	// Due is when it becomes visible, by the server. Zero: it is, or that is not known.
	Due time.Time
	// DelayedLater reports that an operator has delayed it, by the server.
	DelayedLater bool
	// Head is the id of the message of its FIFO group before it that is hidden. Default: none.
	Head string
	// Held is what a consumer says of it, Consumer that of its queue. Default: no process that was
	// asked knows the message, or consumes the queue.
	Held     *Held
	Consumer *Busy
	// Address is that of the process of Consumer and Held.
	Address string
}

// Busy is why a consumer may be slow to receive.
type Busy struct {
	Paused               bool
	Running, Concurrency int
	Rate                 float64
	// Outage is the problem of its breaker, if that is open and for all messages; OutageSince and
	// NextProbe are its times.
	Outage                 string
	OutageSince, NextProbe time.Time
}

// Explain says where a message stands, by the first rule that applies.
func (f *Facts) Explain() Standing {
	s := f.explain()
	if f.Held != nil || f.Consumer != nil {
		s.Consumer = f.Address
	}
	return s
}

func (f *Facts) explain() Standing {
	m := f.Message
	switch {
	case f.Held != nil:
		return f.Held.explain()
	case f.State == StandingDelayed && m != nil && m.Copy != nil && m.Copy.Attempts > 0:
		s := Standing{
			State: StandingRetry, Attempt: m.Copy.Attempts + 1, Until: latest(f.Due, m.Copy.Due), Error: m.Copy.Error,
			Why: "sent back as a copy, and delayed by the queue until its retry is due",
		}
		if f.DelayedLater {
			s.Why = whyDelayedLater
		}
		return s
	case f.State == StandingDelayed && f.DelayedLater:
		return Standing{State: StandingDelayed, Until: f.Due, Why: whyDelayedLater}
	case f.State == StandingDelayed:
		return Standing{State: StandingDelayed, Until: f.Due, Why: "sent with a delay"}
	case f.State == StandingInFlight && f.Consumer != nil:
		return Standing{
			State: StandingInFlight, Until: f.Due,
			Why: "received by somebody else than the process that was asked: by another consumer, or by a command such as search that was killed before it gave it back; or an operator has delayed it since it was received",
		}
	case f.State == StandingInFlight:
		return Standing{
			State: StandingInFlight, Until: f.Due, Why: "received, and not yet visible again: its handler runs, or it is hidden until its retry",
			Unknown: "which of both: no process that was asked holds it or has hidden it; name the one that consumes the queue with --admin",
		}
	case m == nil:
		return Standing{
			State: StandingInFlight, Why: "not visible",
			Unknown: "whether it is in flight, delayed or deleted: SQS shows a message to its receiver only, and tells nobody who that is; name the processes that consume the queue with --admin",
		}
	case m.Death != nil:
		why := "given up"
		if m.Death.Attempts > 0 {
			why += " after " + plural.Of(m.Death.Attempts, "attempt")
		}
		return Standing{State: StandingDead, Since: m.Death.At, Error: m.Death.Error, Why: why + ", reason: " + m.Death.Reason + "; it stays until it is redriven or deleted, or expires"}
	case f.Head != "":
		return Standing{State: StandingHeld, Why: "behind " + f.Head + " of its FIFO group, which is hidden"}
	}
	return f.visible()
}

const whyDelayedLater = "delayed by an operator, not by its sender"

// visible explains a message that the next receive may bring.
func (f *Facts) visible() Standing {
	s := Standing{State: StandingVisible}
	if c := f.Message.Copy; c != nil && c.Attempts > 0 {
		s.Attempt, s.Error = c.Attempts+1, c.Error
	}
	c := f.Consumer
	switch {
	case c == nil:
		s.Why, s.Unknown = "waits for a consumer to receive it", "what its consumers wait for: no process that consumes the queue was found; name it with --admin"
	case c.Paused:
		s.State, s.Why = StandingHeld, "its consumer is paused: it is received when that is resumed"
	case c.Outage != "":
		s.State, s.Why, s.Error, s.Since, s.Until = StandingHeld, "the circuit breaker is open, so nothing is received until the next probe", c.Outage, c.OutageSince, c.NextProbe
	case c.Running >= c.Concurrency:
		s.Why = fmt.Sprintf("waits for a free place: %d of %d handlers run", c.Running, c.Concurrency)
	case c.Rate > 0:
		s.Why = fmt.Sprintf("waits for a receive: handlers start at %g/s", c.Rate)
	default:
		s.Why = fmt.Sprintf("waits for the next receive: %d of %d handlers run", c.Running, c.Concurrency)
	}
	return s
}

// explain says what a consumer's stage means to an operator.
func (h *Held) explain() Standing {
	s := Standing{Since: h.Since, Until: h.Until, Attempt: h.Attempt, Of: h.MaxAttempts, Error: h.Problem, State: StandingHeld}
	key := ""
	if h.Key != "" {
		key = " of key " + h.Key
	}
	switch h.Stage {
	case "running":
		s.State, s.Until, s.Why = StandingWorking, h.LeaseEnd, "its handler runs; the lease is renewed before it ends"
	case "settling":
		s.State, s.Why = StandingSettling, "SQS has not yet acknowledged its settlement: "+h.Outcome
	case "backoff", "due":
		s.State, s.Why = StandingRetry, h.rule()
		if h.Stage == "due" {
			s.Why += "; the consumer holds it until then"
		}
	case "group":
		if s.Why = "behind another message of its FIFO group"; h.Head != "" {
			s.Why = "behind " + h.Head + " of its FIFO group"
		}
	case "breaker":
		s.Why = "the circuit breaker" + key + " is not closed: held until a probe succeeds"
	case "paused-key":
		s.Why = "its key " + h.Key + " is paused: it runs when that is resumed"
	case "paused":
		s.Why = "its consumer is paused: it runs when that is resumed"
	case "stopping":
		s.Why = "the consumer stops, and gives it back"
	case "alone":
		s.Why = "it seems to crash its worker, so it runs when nothing else does"
	case "others-alone":
		s.Why = "another message, which seems to crash its worker, runs alone"
	case "place":
		s.Why = "waits for a free place: as many handlers run as may"
	case "rate":
		s.Why = "waits for its turn: the consumer has a rate"
	case "batch":
		s.Why = "waits for its batch to be full or due"
	case "given-up":
		s.State, s.Why = StandingGivenUp, h.Reason+": no dead-letter queue has accepted it, and its handler does not run again in this process"
	default:
		s.Why = h.Stage
	}
	return s
}

// rule is why a message comes again at the time at which it does.
func (h *Held) rule() string {
	var parts []string
	switch h.Reason {
	case "retry-after":
		parts = append(parts, "the handler has set the wait")
	case "unavailable":
		parts = append(parts, "a dependency was unavailable")
	case "release":
		parts = append(parts, "the handler has given it back")
	}
	if h.Policy != "" {
		parts = append(parts, "the policy is "+h.Policy)
	}
	if len(parts) == 0 {
		return "its retry is not yet due"
	}
	return strings.Join(parts, ", ")
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// place is the state in the queue; s may be nil.
func (s *Standing) place() string {
	if s == nil || s.State == StandingDead {
		return StandingVisible
	}
	return s.State
}

// Text is s on one line. Times are those of UTC.
func (s *Standing) Text() string {
	parts := []string{s.State}
	if s.Attempt > 0 && (s.State == StandingWorking || s.State == StandingRetry || s.State == StandingHeld || s.State == StandingVisible) {
		attempt := fmt.Sprintf("attempt %d", s.Attempt)
		if s.Of > 0 {
			attempt += fmt.Sprintf(" of %d", s.Of)
		}
		parts = append(parts, attempt)
	}
	if !s.Since.IsZero() {
		parts = append(parts, "since "+s.Since.UTC().Format(time.RFC3339))
	}
	if !s.Until.IsZero() {
		parts = append(parts, "until "+s.Until.UTC().Format(time.RFC3339))
	}
	text := strings.Join(parts, ", ") + ": " + s.Why
	if s.Error != "" {
		text += ": " + s.Error
	}
	if s.Unknown != "" {
		text += "; not known: " + s.Unknown
	}
	return text
}
