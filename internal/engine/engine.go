// Package engine is the state machine of SQS queues, standard and FIFO.
package engine

import (
	"errors"
	"time"
)

type Engine struct{ queues map[string]*Queue }

func New() *Engine { return &Engine{queues: make(map[string]*Queue)} }

type Queue struct {
	key      string
	settings Settings
}

func (q *Queue) Key() string        { return q.key }
func (q *Queue) Settings() Settings { return q.settings }

type Settings struct {
	FIFO          bool
	Delay         time.Duration
	Visibility    time.Duration
	Retention     time.Duration
	DeadLetter    string
	MaxReceives   int
	DedupPerGroup bool
	InFlightLimit int
}

var (
	ErrOverLimit     = errors.New("engine: too many messages in flight")
	ErrExpired       = errors.New("engine: the receipt has expired")
	ErrGone          = errors.New("engine: the message does not exist")
	ErrBeyond12Hours = errors.New("engine: total visibility beyond 12 hours")
)

func (e *Engine) Create(now time.Time, key string, s Settings) *Queue {
	q := &Queue{key: key, settings: s}
	e.queues[key] = q
	return q
}
func (e *Engine) Lookup(key string) *Queue                      { return e.queues[key] }
func (e *Engine) Configure(now time.Time, q *Queue, s Settings) { q.settings = s }
func (e *Engine) Drop(now time.Time, q *Queue)                  { delete(e.queues, q.key) }
func (e *Engine) Purge(now time.Time, q *Queue)                 {}
func (e *Engine) Send(now time.Time, q *Queue, m Message) Sent  { return Sent{ID: m.ID} }
func (e *Engine) Receive(now time.Time, q *Queue, max int, visibility time.Duration, dst []Delivery) ([]Delivery, error) {
	return dst, nil
}
func (e *Engine) Delete(now time.Time, q *Queue, r Receipt) error { return nil }
func (e *Engine) ChangeVisibility(now time.Time, q *Queue, r Receipt, d time.Duration) error {
	return nil
}
func (e *Engine) Next(q *Queue) (time.Time, bool)                        { return time.Time{}, false }
func (e *Engine) Advance(now time.Time, q *Queue, limit int) (more bool) { return false }
func (e *Engine) Woken(dst []*Queue) []*Queue                            { return dst }
func (e *Engine) Counts(now time.Time, q *Queue) (visible, inFlight, delayed int) {
	return 0, 0, 0
}
func (e *Engine) Messages(now time.Time, q *Queue, after uint64, limit int) []Delivery { return nil }
func (e *Engine) Find(q *Queue, id ID) (Receipt, bool)                                 { return Receipt{}, false }
func (e *Engine) Expose(now time.Time, q *Queue, r Receipt)                            {}

// Remove deletes a message whatever its state, for an operator.
func (e *Engine) Remove(now time.Time, q *Queue, r Receipt) {}

// DeadLetter moves a message to the dead-letter queue now, for an operator.
func (e *Engine) DeadLetter(now time.Time, q *Queue, r Receipt) bool { return false }
