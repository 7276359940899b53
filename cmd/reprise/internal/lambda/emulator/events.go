package emulator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is an asynchronous invoke that Lambda has accepted.
type event struct {
	id       string
	function string
	arn      string // as it was invoked
	payload  []byte
	trace    string
	context  string // the client's; "": none
	accepted time.Time

	invokes   int    // runs of the function
	throttles int    // since the last run
	last      Result // of the last run
	refusal   *Error // that ended the event; nil: a result ended it

	ended        condition // why it is not invoked any more; "": it is
	deadLettered bool      // the dead-letter queue has it

	due    time.Time // of the next run; zero: at once
	number uint64    // in the journal
}

// events is the queue of asynchronous invokes. Every event is in memory, and has a goroutine that
// waits for it; the store keeps those that must survive the process.
type events struct {
	cfg      *Config
	store    eventStore
	invoke   func(ctx context.Context, function string, inv *invocation) (Result, error)
	function func(name string) (Function, bool)

	killed   context.Context // ends runs
	stopping context.Context // ends the waits
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu        sync.Mutex
	abandoned map[string]int // events lost or, if they are durable, left for the next process, by function
	earlier   []*event       // of an earlier process, until resume
	live      map[*event]EventStatus
}

func newEvents(l *Lambda) (*events, error) {
	q := &events{
		cfg: &l.cfg, invoke: l.invoke, function: l.function,
		killed: l.killed, abandoned: make(map[string]int), store: eventStore{journal: l.cfg.Journal},
	}
	var err error
	if q.earlier, err = q.store.load(); err != nil {
		return nil, err
	}
	q.stopping, q.cancel = context.WithCancel(l.killed)
	return q, nil
}

// resume runs the unfinished events of an earlier process.
func (q *events) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopping.Err() != nil {
		return
	}
	counts := make(map[string]int)
	for _, e := range q.earlier {
		counts[e.function]++
		q.running.Go(func() {
			q.track(e, e.due)
			defer q.untrack(e)
			if sleep(q.stopping, time.Until(e.due)) {
				q.run(e)
			} else {
				q.abandon(e, "the local Lambda was stopped while it waited to be invoked again")
			}
		})
	}
	q.earlier = nil
	for _, function := range slices.Sorted(maps.Keys(counts)) {
		q.cfg.Log(Line{Time: time.Now(), Function: function, Source: SourcePlatform,
			Text: fmt.Sprintf("asynchronous events that were accepted before this start, and run now: %d", counts[function])})
	}
}

// accept accepts inv. When it returns nil, the store has kept the event.
func (q *events) accept(function string, inv *invocation) error {
	e := &event{
		id: inv.id, function: function, arn: inv.arn, payload: inv.payload,
		trace: inv.trace, context: inv.clientContext, accepted: time.Now(),
	}
	if err := q.begin(); err != nil {
		return err
	}
	if err := q.store.accept(e); err != nil {
		q.running.Done()
		return err
	}
	go func() {
		defer q.running.Done()
		defer q.untrack(e)
		q.run(e)
	}()
	return nil
}

// begin counts an event as running.
func (q *events) begin() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopping.Err() != nil {
		return errClosing
	}
	q.running.Add(1)
	return nil
}

// run invokes e until it has ended, and delivers the record of its end.
func (q *events) run(e *event) {
	for e.ended == "" {
		q.track(e, time.Time{})
		wait, why, err := q.attempt(e)
		switch {
		case err != nil:
			q.abandon(e, err.Error())
			return
		case q.store.durable() && q.killed.Err() != nil:
			q.abandon(e, "its invoke was cut off") // the function has not failed
			return
		case why != "":
			e.ended = why
			continue
		}
		e.due = time.Now().Add(wait)
		q.track(e, e.due)
		q.kept(e, q.store.put(e))
		q.log(e, SourcePlatform, fmt.Sprintf("the asynchronous event is invoked again in %v", wait))
		if !sleep(q.stopping, wait) {
			q.abandon(e, "the local Lambda was stopped while it waited to be invoked again")
			return
		}
	}
	if q.finish(e) {
		q.kept(e, q.store.remove(e))
	}
}

// attempt invokes e once and decides what happens next. An error means that the event is lost.
func (q *events) attempt(e *event) (wait time.Duration, why condition, lost error) {
	inv := &invocation{id: e.id, arn: e.arn, payload: e.payload, trace: e.trace, clientContext: e.context, done: make(chan struct{})}
	result, err := q.invoke(q.killed, e.function, inv)
	f, known := q.function(e.function)
	if !known {
		return 0, "", errors.New("its function has been removed")
	}
	plan, age := newSchedule(f.Async, q.cfg.TimeScale), time.Since(e.accepted)
	refusal, refused := errors.AsType[*Error](err)
	switch {
	case refused && !errors.Is(err, errClosing) && refusal.Status >= http.StatusTooManyRequests:
		e.throttles++
		e.refusal = refusal
		if f.Concurrency < 0 {
			return 0, zeroConcurrency, nil // Lambda does not retry it
		}
		wait, why = plan.afterThrottle(e.throttles, age)
		return wait, why, nil
	case err != nil:
		return 0, "", err
	}
	e.invokes++
	e.throttles, e.refusal, e.last = 0, nil, result
	if result.FunctionError == "" {
		return 0, succeeded, nil
	}
	wait, why = plan.afterFailure(e.invokes, age)
	return wait, why, nil
}

// sleep reports whether wait went by before ctx ended.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// kept logs that the state of e could not be kept.
func (q *events) kept(e *event, err error) {
	if err != nil {
		q.log(e, SourceTrouble, fmt.Sprintf("the asynchronous event may be invoked once more after the next start: %v", err))
	}
}

// abandon logs that e is lost, which does not happen on Lambda, or left for the next process.
func (q *events) abandon(e *event, reason string) {
	if q.store.durable() {
		q.log(e, SourcePlatform, "the asynchronous event is kept for the next start: "+reason)
	} else {
		q.log(e, SourceTrouble, fmt.Sprintf("the asynchronous event is lost: %s; its payload begins %.200s", reason, e.payload))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.abandoned[e.function]++
}

// stop refuses further events and ends the waits of the present ones.
func (q *events) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cancel()
}

// wait returns when every event has ended or, after stop, is lost.
func (q *events) wait() { q.running.Wait() }

// lost returns an error about the events that are lost, nil if every event has ended or is kept.
func (q *events) lost() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.abandoned) == 0 || q.store.durable() {
		return nil
	}
	var counts []string
	for _, function := range slices.Sorted(maps.Keys(q.abandoned)) {
		counts = append(counts, fmt.Sprintf("%d of %s", q.abandoned[function], function))
	}
	return errors.New("asynchronous events that had not ended are lost: " + strings.Join(counts, ", "))
}

func (q *events) log(e *event, source Source, text string) {
	q.cfg.Log(Line{Time: time.Now(), Function: e.function, RequestID: e.id, Source: source, Text: text})
}
