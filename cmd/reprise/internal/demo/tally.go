package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/retry"
)

// tally records what the consumer's Observer is called with.
type tally struct {
	settled chan struct{} // closed when every message is deleted or dead-lettered

	mu   sync.Mutex
	done int // messages that are deleted or dead-lettered
	dead int // those of them that were dead-lettered
	consumerRecords
}

// consumerRecords is what the consumer did, as its Observer was told.
type consumerRecords struct {
	records  []record       // by event
	failures map[string]int // by kind
	early    []wait         // that ended early; a breaker may have shortened them

	down, up time.Time // when the service went down, and when it was back
	breaker  []reprise.OutageEvent
	ends     []end // of the runs since the service went down
}

// record is the consumer's record of one message.
type record struct {
	runs      int // of the handler
	attempts  int // runs that count
	number    int // of the last counted attempt, as passed to the handler
	successes int
	next      wait // for the next attempt
	outcome   reprise.Outcome
	ended     bool // deleted or dead-lettered: outcome says which
}

// wait is the time between two runs.
type wait struct {
	from, due time.Time
	ended     time.Time
	wakeable  bool // the end of an outage may shorten it
}

// end is the end of a run of the handler.
type end struct {
	started, ended time.Time
	unavailable    bool // it failed because the service was unavailable
	counted        bool // as an attempt
}

func newTally(n int) *tally {
	return &tally{
		settled:         make(chan struct{}),
		consumerRecords: consumerRecords{records: make([]record, n), failures: make(map[string]int)},
	}
}

// observer returns the Observer that fills the tally.
func (t *tally) observer() reprise.Observer {
	return reprise.Observer{
		Attempt: func(_ context.Context, a reprise.Attempt) { t.attempt(a) },
		Settled: func(_ context.Context, s reprise.Settled) { t.settle(s) },
	}
}

// record returns the record of m; nil for a message that is not the demo's. The caller holds
// t.mu.
func (t *tally) record(m *reprise.Message) *record {
	e, ok := eventOf(m)
	if !ok || e < 0 || int(e) >= len(t.records) {
		return nil
	}
	return &t.records[e]
}

func (t *tally) attempt(a reprise.Attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record(a.Message)
	if r == nil {
		return
	}
	e := end{
		started: a.Started, ended: a.Started.Add(a.Duration),
		unavailable: reprise.IsUnavailable(a.Err),
		counted:     a.Outcome != reprise.OutcomeHold && a.Outcome != reprise.OutcomeRelease,
	}
	r.runs++
	if e.counted {
		r.attempts++
		r.number = a.Message.Attempt
	}
	if !t.down.IsZero() {
		t.ends = append(t.ends, e)
	}
	if e.started.Before(r.next.due) {
		r.next.ended = e.started
		t.early = append(t.early, r.next)
	}
	r.next = wait{from: e.ended, due: a.Due, wakeable: e.unavailable && a.Reason != retry.ReasonRetryAfter}
	if a.Err == nil {
		r.successes++
		return
	}
	t.failures[kind(a)]++
}

// breaker records a change of the consumer's breaker.
func (t *tally) breaker(e reprise.OutageEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.consumerRecords.breaker = append(t.consumerRecords.breaker, e)
}

// service records a change of the service, with its time.
func (t *tally) service(s state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s == down {
		t.down = time.Now()
	} else {
		t.up = time.Now()
	}
}

func (t *tally) settle(s reprise.Settled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record(s.Message)
	if r == nil || r.ended || s.Outcome != reprise.OutcomeDelete && s.Outcome != reprise.OutcomeDeadLetter {
		return
	}
	r.ended, r.outcome = true, s.Outcome
	t.done++
	if s.Outcome == reprise.OutcomeDeadLetter {
		t.dead++
	}
	if t.done == len(t.records) {
		close(t.settled)
	}
}

// kind returns the kind of a failed attempt, in words.
func kind(a reprise.Attempt) string {
	if status, ok := errors.AsType[*forward.StatusError](a.Err); ok {
		name := fmt.Sprintf("%d %s", status.Status, http.StatusText(status.Status))
		if a.Reason == retry.ReasonRetryAfter {
			name += ", with Retry-After"
		}
		return name
	}
	if errors.Is(a.Err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return "connection lost"
}

// snapshot returns a copy of the records.
func (t *tally) snapshot() consumerRecords {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.consumerRecords
	b.records, b.failures = slices.Clone(b.records), maps.Clone(b.failures)
	b.early, b.breaker, b.ends = slices.Clone(b.early), slices.Clone(b.breaker), slices.Clone(b.ends)
	return b
}

// counts returns how many messages have been delivered and given up.
func (t *tally) counts() (delivered, dead int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done - t.dead, t.dead
}
