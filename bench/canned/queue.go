// Package canned is an SQS queue with prepared replies, so that a benchmark measures the client:
// the consumer, the raw loop, the SDK. It favours every client alike. There are three ways in:
// below net/http ([Queue.SDK]), over TCP ([Queue.ServeHTTP]), and without the SDK ([Queue.Direct]).
package canned

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Queue is a queue of valid and distinct messages. Work fills it, and it never fails. Its receives
// wait while it is empty.
type Queue struct {
	mu      sync.Mutex
	backlog int           // not yet received
	next    int           // the number of the next message
	more    chan struct{} // closed when the backlog grows or the queue closes
	closed  bool

	unsettled atomic.Int64  // added, not yet deleted
	settled   chan struct{} // capacity 1: unsettled has fallen to zero
	receives  atomic.Int64  // calls
	deletes   atomic.Int64
	others    atomic.Int64
}

// New returns an empty queue.
func New() *Queue {
	return &Queue{more: make(chan struct{}), settled: make(chan struct{}, 1)}
}

// Name and URL are the queue's name and URL.
const (
	Name = "canned"
	URL  = "https://sqs.us-east-1.amazonaws.com/123456789012/" + Name
)

// longPoll is how long a receive waits while the queue is empty: the longest wait of SQS, whatever
// the request says.
const longPoll = 20 * time.Second

// Work puts n messages into the queue and waits until they are deleted. If all batches are to be
// full, n must be a multiple of ten. One Work at a time.
func (q *Queue) Work(n int) {
	q.unsettled.Add(int64(n))
	q.mu.Lock()
	q.backlog += n
	close(q.more)
	q.more = make(chan struct{})
	q.mu.Unlock()
	<-q.settled
}

// Close makes every receive, waiting or later, return without messages.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.more)
	}
}

// Calls is how many requests were made so far.
func (q *Queue) Calls() int64 { return q.receives.Load() + q.deletes.Load() + q.others.Load() }

// take receives up to most messages: those numbered from first.
func (q *Queue) take(ctx context.Context, most int) (first, n int) {
	q.receives.Add(1)
	var end <-chan time.Time
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return 0, 0
		}
		if q.backlog > 0 {
			first, n = q.next, min(most, q.backlog)
			q.next += n
			q.backlog -= n
			q.mu.Unlock()
			return first, n
		}
		more := q.more
		q.mu.Unlock()
		if end == nil {
			end = time.After(longPoll)
		}
		select {
		case <-more:
		case <-end:
			return 0, 0
		case <-ctx.Done():
			return 0, 0
		}
	}
}

// deleted settles n messages.
func (q *Queue) deleted(n int) {
	q.deletes.Add(1)
	if q.unsettled.Add(-int64(n)) == 0 {
		q.settled <- struct{}{}
	}
}
