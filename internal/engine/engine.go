// Package engine is the state machine of SQS queues, standard and FIFO: it applies sends,
// receives, deletes, changes of visibility and the passing of time to them. The rules are
// those of the Amazon SQS Developer Guide; where AWS leaves one open, the method documents
// the choice.
//
// It is plain data and functions of now: no goroutine, timer, clock, lock or I/O. The caller
// holds a lock around each call, passes the time, and learns from [Engine.Next] and
// [Engine.Woken] when waiting receivers should try again. So a server, a test and a
// simulated week run the same code.
//
// Time is kept in nanoseconds of Unix time (years 1678 to 2262) and never goes
// back: a now before the latest one seen counts as the latest.
//
// The work of a call is bounded, whatever the backlog: in addition to one message's own O(log n),
// an [Engine.Receive] settles at most a constant number of due messages. [Engine.Counts], which
// must be exact, settles everything due, so its cost is proportional to the messages that it
// settles; so does [Engine.Configure]. [Engine.Find], [Engine.Messages] and, where it changes the
// delay of a FIFO queue, [Engine.Configure] look at every message; [Engine.Hidden] at a part of them.
package engine

import (
	"math"
	"slices"
	"time"
)

// Engine holds queues. It is not safe for concurrent use.
type Engine struct {
	queues   map[string]*Queue
	woken    []*Queue
	sequence uint64 // of the newest message in any queue
	now      int64
	contents uint64 // see Content

	recorder   Recorder // nil: none
	state      State    // reused for calls of the recorder, as the next
	acceptance Acceptance
}

// never is the instant of an event that has not happened.
const never = math.MinInt64

// New returns an engine without queues.
func New() *Engine {
	return &Engine{queues: make(map[string]*Queue), now: never}
}

// Create adds a queue under a key that is new.
func (e *Engine) Create(now time.Time, key string, s Settings) *Queue {
	e.tick(now)
	q := &Queue{engine: e, key: key, settings: s}
	q.contentChanged()
	e.queues[key] = q
	return q
}

// Lookup returns the queue with the key, or nil.
func (e *Engine) Lookup(key string) *Queue { return e.queues[key] }

// Configure changes the settings of a queue, for the messages in it as well:
// retention at once, and on a FIFO queue the delay of messages that were never received. The kind
// of queue and the scope of deduplication do not change.
func (e *Engine) Configure(now time.Time, q *Queue, s Settings) {
	t := e.tick(now)
	q.settleDue(t) // by the settings that applied until now
	delay := q.settings.Delay
	s.FIFO, s.DedupPerGroup = q.settings.FIFO, q.settings.DedupPerGroup
	q.settings = s
	if s.FIFO && s.Delay != delay {
		q.changeDelay(t)
	}
	if q.receivable() {
		e.wake(q) // a raised quota may make messages receivable
	}
}

// Drop removes the queue with its messages. The handle must not be used afterwards.
func (e *Engine) Drop(now time.Time, q *Queue) {
	e.tick(now)
	delete(e.queues, q.key)
	q.empty()
	if q.woken {
		e.woken = slices.DeleteFunc(e.woken, func(w *Queue) bool { return w == q })
	}
}

// Purge removes every message, delayed and in flight ones included, and a FIFO queue's
// memory of duplicates.
func (e *Engine) Purge(now time.Time, q *Queue) {
	e.tick(now)
	q.empty()
	q.window = window{}
}

// Woken appends to dst the queues in which a message may have become
// receivable since the last call, oldest first, and forgets them. It never misses one, but a listed
// queue may have no receivable message.
func (e *Engine) Woken(dst []*Queue) []*Queue {
	for _, q := range e.woken {
		q.woken = false
	}
	dst = append(dst, e.woken...)
	clear(e.woken)
	e.woken = e.woken[:0]
	return dst
}

func (e *Engine) wake(q *Queue) {
	if !q.woken {
		q.woken = true
		e.woken = append(e.woken, q)
	}
}

// tick takes the caller's time.
func (e *Engine) tick(now time.Time) int64 {
	e.now = max(e.now, now.UnixNano())
	return e.now
}

// instant is the inverse of tick.
func instant(t int64) time.Time {
	if t == never {
		return time.Time{}
	}
	return time.Unix(0, t).UTC()
}
