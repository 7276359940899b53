package lambdalocal

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

// event is an asynchronous invoke: accepted, and from then on Lambda's.
type event struct {
	id       string
	function string
	arn      string // as it was invoked
	payload  []byte
	trace    string
	context  string // the client's; "": none
	accepted time.Time

	invokes   int    // that reached the function
	throttles int    // since it last did
	last      Result // of the last of invokes
	refusal   *Error // that ended it; nil: a function's result did
}

// events is the queue of asynchronous invokes, in memory. Every event has a
// goroutine that waits for it.
type events struct {
	cfg      *Config
	invoke   func(ctx context.Context, function string, inv *invocation) (Result, error)
	function func(name string) (Function, bool)

	killed   context.Context // ends whatever runs
	stopping context.Context // ends the waits
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu        sync.Mutex
	abandoned map[string]int // events lost, by function
}

func newEvents(l *Lambda) *events {
	q := &events{
		cfg: &l.cfg, invoke: l.invoke, function: l.function,
		killed: l.killed, abandoned: make(map[string]int),
	}
	q.stopping, q.cancel = context.WithCancel(l.killed)
	return q
}

// accept takes over inv.
func (q *events) accept(function string, inv *invocation) error {
	e := &event{
		id: inv.id, function: function, arn: inv.arn, payload: inv.payload,
		trace: inv.trace, context: inv.clientContext, accepted: time.Now(),
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopping.Err() != nil {
		return errClosing
	}
	q.running.Go(func() { q.run(e) })
	return nil
}

// run invokes e until it has ended.
func (q *events) run(e *event) {
	for {
		wait, why, err := q.attempt(e)
		switch {
		case err != nil:
			q.abandon(e, err.Error())
			return
		case why != "":
			q.finish(e, why)
			return
		}
		q.log(e, SourcePlatform, fmt.Sprintf("the asynchronous event is invoked again in %v", wait))
		if !sleep(q.stopping, wait) {
			q.abandon(e, "the local Lambda was stopped while it waited to be invoked again")
			return
		}
	}
}

// attempt invokes e once and decides what comes after it. An error means that the
// event is lost.
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

// abandon says that e is lost, which it would not be on Lambda.
func (q *events) abandon(e *event, reason string) {
	q.log(e, SourceTrouble, fmt.Sprintf("the asynchronous event is lost: %s; its payload begins %.200s", reason, e.payload))
	q.mu.Lock()
	defer q.mu.Unlock()
	q.abandoned[e.function]++
}

// stop refuses further events and cuts the waits of those that there are.
func (q *events) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cancel()
}

// wait returns when every event has ended or, after stop, is lost.
func (q *events) wait() { q.running.Wait() }

// lost is nil if every event has ended.
func (q *events) lost() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.abandoned) == 0 {
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
