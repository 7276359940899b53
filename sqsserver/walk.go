package sqsserver

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// Walk shows all messages of a queue, named by its name, URL or ARN, without receiving them, as
// [Server.Messages] does page by page, but to several workers at once and without a trace in memory: a
// part of the messages at a time, which the worker must not keep, in no order. Of page only
// WithoutBodies is used. look is called by one goroutine for each worker, from 0 on. The lock is held
// for a part at a time, and the processor is given up after each, so that requests need not wait for the
// end. Walk ends early, with its error, when ctx does.
func (s *Server) Walk(ctx context.Context, queue string, page Page, workers int, look func(worker int, part []MessageInfo)) error {
	q := s.find(&s.direct, queue)
	if q == nil {
		return fmt.Errorf("sqsserver: messages of queue %q: %w", queue, errQueueDoesNotExist())
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var after uint64 // under the lock
	var isOver bool
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			var deliveries []engine.Delivery
			var part []MessageInfo
			for ctx.Err() == nil {
				err := s.underLock(q, func(now time.Time) {
					deliveries = deliveries[:0]
					if isOver {
						return
					}
					deliveries = s.engine.AppendMessages(deliveries, now, q.engine, after, messagesPerLook)
					if isOver = len(deliveries) < messagesPerLook; !isOver {
						after = deliveries[len(deliveries)-1].Receipt.Number
					}
				})
				if err == nil && len(deliveries) == 0 {
					return
				}
				if err == nil {
					part, err = s.appendInfos(part[:0], q, deliveries, page.WithoutBodies)
				}
				if err != nil {
					end(err)
					return
				}
				look(worker, part)
				runtime.Gosched()
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Content returns a number that stays the same as long as no message comes to a queue, named by its name,
// URL or ARN, and none leaves it: what was found out about all of its messages then still holds, but for
// their states and receive counts. No other queue of the server has that number.
func (s *Server) Content(queue string) (content uint64, err error) {
	q := s.find(&s.direct, queue)
	if q == nil {
		return 0, fmt.Errorf("sqsserver: content of queue %q: %w", queue, errQueueDoesNotExist())
	}
	err = s.underLock(q, func(now time.Time) { content = s.engine.Content(now, q.engine) })
	return content, err
}

// DueSpan is what of a queue becomes visible in a span of time.
type DueSpan struct {
	Messages    int
	First, Last time.Time // of the times at which they become visible
	// Sample are the numbers of some of them, for [Page.Numbers]: of all if there are few, otherwise
	// spread evenly over the queue.
	Sample []uint64
}

// slotsPerLook is how many messages Due looks at under the lock at a time: less than a tenth of a
// millisecond's work.
const slotsPerLook = 4096

// Due counts the messages of a queue, named by its name, URL or ARN, that are delayed or in flight: those
// that become visible within the first of ends from now, then within the second and not the first, and so on; the
// last of spans has the rest. sample is how many numbers a span has at most. Of a large queue it is not a
// snapshot: a message may be missing, or have a time of before, if it changes meanwhile.
func (s *Server) Due(queue string, ends []time.Duration, sample int) (now time.Time, spans []DueSpan, err error) {
	q := s.find(&s.direct, queue)
	if q == nil {
		return now, nil, fmt.Errorf("sqsserver: what is due of queue %q: %w", queue, errQueueDoesNotExist())
	}
	counts := make([]dueCount, len(ends)+1)
	for after, first := uint64(0), true; first || after != 0; first = false {
		err := s.underLock(q, func(then time.Time) {
			if first {
				now = then
			}
			after = s.engine.Hidden(then, q.engine, after, slotsPerLook, func(number uint64, due time.Time) {
				i := 0
				for wait := due.Sub(now); i < len(ends) && wait >= ends[i]; {
					i++
				}
				counts[i].add(number, due, sample)
			})
		})
		if err != nil {
			return now, nil, err
		}
	}
	for i := range counts {
		spans = append(spans, counts[i].DueSpan)
	}
	return now, spans, nil
}

// dueCount is a DueSpan that is being counted.
type dueCount struct {
	DueSpan
	passed, every int // of the messages that follow, one of every is taken; passed were not since the last
}

// add counts a message. When the sample is full, every other number is given up, and from then on half as
// many are taken.
func (d *dueCount) add(number uint64, due time.Time, sample int) {
	d.Messages++
	if d.First.IsZero() || due.Before(d.First) {
		d.First = due
	}
	if due.After(d.Last) {
		d.Last = due
	}
	if d.passed++; d.passed < d.every {
		return
	}
	d.passed = 0
	if d.every == 0 {
		d.every = 1
	}
	if len(d.Sample) >= sample {
		half := d.Sample[:0]
		for i := 0; i < len(d.Sample); i += 2 {
			half = append(half, d.Sample[i])
		}
		d.Sample, d.every = half, 2*d.every
	}
	if len(d.Sample) < sample {
		d.Sample = append(d.Sample, number)
	}
}
