package admin

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/latency"
)

// tally counts the attempts on a queue since the start of the process. It outlives consumers that
// are replaced when the settings change.
type tally struct {
	mu       sync.Mutex
	outcomes map[string]int64
	failed   int64
	handlers latency.Histogram
	// lastGivenUp is the id of the message whose attempt ended last with being given up, and lastErr its error.
	lastGivenUp string
	lastErr     error

	givenUp atomic.Int64 // when a message was given up last, in nanoseconds; 0: none was
}

func (t *tally) add(a *reprise.Attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcomes[a.Outcome.String()]++
	if a.Err != nil {
		t.failed++
	}
	if a.Outcome == reprise.OutcomeDeadLetter || a.Outcome == reprise.OutcomeKeep {
		t.lastGivenUp, t.lastErr = a.Message.ID, a.Err
	}
	t.handlers.Add(a.Duration)
}

// lastError is the error of a message that has just been given up; nil if it is not known.
func (t *tally) lastError(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lastGivenUp != id {
		return nil
	}
	return t.lastErr
}

// tally returns that of the queue at url.
func (e *Events) tally(url string) *tally {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tallies == nil {
		e.tallies = make(map[string]*tally)
	}
	if e.tallies[url] == nil {
		e.tallies[url] = &tally{outcomes: make(map[string]int64)}
	}
	return e.tallies[url]
}

// Attempts are the runs of a queue's handler since the start of the process.
type Attempts struct {
	Total int64 `json:"total"`
	// Failed counts those whose handler returned an error.
	Failed int64 `json:"failed"`
	// Outcomes counts what followed, by its name: see reprise.Outcome.
	Outcomes map[string]int64 `json:"outcomes"`
	Durations
}

// Durations are quantiles, in milliseconds, each at most an eighth too long.
type Durations struct {
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// DurationsOf returns the quantiles of a histogram.
func DurationsOf(h *latency.Histogram) Durations {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return Durations{ms(h.Quantile(0.5)), ms(h.Quantile(0.9)), ms(h.Quantile(0.99)), ms(h.Max())}
}

func (t *tally) attempts() Attempts {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := Attempts{Total: t.handlers.Count(), Failed: t.failed, Outcomes: make(map[string]int64, len(t.outcomes)), Durations: DurationsOf(&t.handlers)}
	for name, n := range t.outcomes {
		a.Outcomes[name] = n
	}
	return a
}
