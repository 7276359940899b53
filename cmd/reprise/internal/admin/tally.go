package admin

import (
	"maps"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/latency"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
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

	givenUp time.Time            // when a message was given up last; zero: none was
	kinds   map[string]time.Time // the same by reason and pattern of the error
}

// maxKinds bounds the kinds that are remembered, and so the entries that they make in quietFor: errors can be as many as
// messages.
const maxKinds = 20

// gaveUp notes that a message was given up, with its reason and error. It returns when one was before, and whether none
// of this kind was for quietFor.
func (t *tally) gaveUp(why string, now time.Time) (before time.Time, unusual bool) {
	kind := operate.Pattern(why)
	t.mu.Lock()
	defer t.mu.Unlock()
	before, t.givenUp = t.givenUp, now
	last, known := t.kinds[kind]
	unusual = !known || now.Sub(last) >= quietFor
	if !known && len(t.kinds) >= maxKinds {
		maps.DeleteFunc(t.kinds, func(_ string, last time.Time) bool { return now.Sub(last) >= quietFor })
		if len(t.kinds) >= maxKinds {
			return before, false
		}
	}
	if t.kinds == nil {
		t.kinds = make(map[string]time.Time)
	}
	t.kinds[kind] = now
	return before, unusual
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
