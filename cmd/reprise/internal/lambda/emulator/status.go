package emulator

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"
)

// FunctionStatus is what a function does now, and what has become of its invokes since the process began.
type FunctionStatus struct {
	Name, ARN, Runtime string
	// Running are the invokes that instances have, Waiting those that wait for a place, and Instances the
	// processes that take invokes.
	Running, Waiting, Instances int
	// Invokes have ended, Failed of these with an error; Throttled were refused.
	Invokes, Failed, Throttled int64
	// Events is how many asynchronous events have not ended. Next are those of them that are due first, at most
	// MaxEvents.
	Events int
	Next   []EventStatus
}

// MaxEvents is how many events a status lists of each function.
const MaxEvents = 100

// EventStatus is an asynchronous event that has not ended.
type EventStatus struct {
	ID       string
	Accepted time.Time
	// Invokes is how often the function has run for it, Error what the last run or refusal said.
	Invokes int
	Error   string
	// Due is when the function is invoked again; zero: it is being invoked, or waits for a place.
	Due time.Time
}

// Status returns the status of each function, by name.
func (l *Lambda) Status() []FunctionStatus {
	functions := l.functions()
	all := make([]FunctionStatus, 0, len(functions))
	for _, f := range functions {
		l.mu.Lock()
		p := l.pools[f.Name]
		l.mu.Unlock()
		if p == nil { // removed meanwhile
			continue
		}
		s := FunctionStatus{Name: f.Name, ARN: l.cfg.functionARN(f.Name), Runtime: f.Runtime}
		s.Invokes, s.Failed, s.Throttled = p.counts.invokes.Load(), p.counts.failed.Load(), p.counts.throttled.Load()
		p.mu.Lock()
		s.Running, s.Waiting, s.Instances = p.busy(), len(p.waiting), len(p.warm)
		p.mu.Unlock()
		s.Events, s.Next = l.events.status(f.Name)
		all = append(all, s)
	}
	return all
}

// invokeCounts counts the invokes of a function, over all its forms.
type invokeCounts struct{ invokes, failed, throttled atomic.Int64 }

// ended counts an invoke that an instance had.
func (c *invokeCounts) ended(inv *invocation) {
	c.invokes.Add(1)
	if inv.err != nil || inv.result.FunctionError != "" {
		c.failed.Add(1)
	}
}

// track notes what e does now: it waits until due, or is being invoked if that is zero.
func (q *events) track(e *event, due time.Time) {
	s := EventStatus{ID: e.id, Accepted: e.accepted, Invokes: e.invokes, Error: errorOf(e), Due: due}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.live == nil {
		q.live = make(map[*event]EventStatus)
	}
	q.live[e] = s
}

// untrack forgets e, which has ended, or is left for the next process.
func (q *events) untrack(e *event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.live, e)
}

// status returns how many events of a function have not ended, and those that are due first.
func (q *events) status(function string) (n int, next []EventStatus) {
	q.mu.Lock()
	for e, s := range q.live {
		if e.function == function {
			next = append(next, s)
		}
	}
	q.mu.Unlock()
	slices.SortFunc(next, func(a, b EventStatus) int {
		return cmp.Or(a.Due.Compare(b.Due), a.Accepted.Compare(b.Accepted), cmp.Compare(a.ID, b.ID))
	})
	return len(next), next[:min(len(next), MaxEvents):min(len(next), MaxEvents)]
}

// maxError is how many bytes of an error a status has.
const maxError = 500

// errorOf is what the last run of an event said, or why it was refused; empty: nothing yet.
func errorOf(e *event) string {
	text := ""
	switch {
	case e.refusal != nil:
		text = e.refusal.Error()
	case e.last.FunctionError != "":
		var said struct {
			Type    string `json:"errorType"`
			Message string `json:"errorMessage"`
		}
		if text = string(e.last.Payload); json.Unmarshal(e.last.Payload, &said) == nil && said.Message != "" {
			text = said.Message
			if said.Type != "" {
				text = said.Type + ": " + text
			}
		}
	}
	return text[:min(len(text), maxError)]
}
