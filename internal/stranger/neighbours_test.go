package stranger_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// attributes are those of a neighbour's queue.
func (n neighbour) attributes() map[string]string {
	if n.FIFO {
		return map[string]string{"FifoQueue": "true"}
	}
	return nil
}

// config makes the Config of a neighbour in a process of version v.
func (n neighbour) config(v settings) reprise.Config {
	return reprise.Config{
		Concurrency: n.Concurrency, Prefetch: n.Prefetch, Lease: v.Lease, StopBudget: v.StopBudget, Logger: slog.New(slog.DiscardHandler),
		Retry:  retry.Policy{Backoff: retry.Constant(max(n.Wait, time.Millisecond)), Jitter: retry.None, MaxAttempts: 100},
		Outage: reprise.Outage{Off: true},
	}
}

// poolConfig makes the PoolConfig of a version.
func (v settings) poolConfig() reprise.PoolConfig { return reprise.PoolConfig{Concurrency: v.Places} }

// places returns how many handlers the pool of a version runs at once.
func (v settings) places() int {
	if v.Places == 0 {
		return 10
	}
	return v.Places
}

// handlers returns how many handlers of the queue, and of its lane, a version runs at once.
func (v settings) handlers() int {
	switch {
	case !v.Pooled:
		return cmp.Or(v.Concurrency, 10)
	case v.Lane: // "the consumer takes at most n of the pool's places, without its retry lane"
		return 2 * cmp.Or(v.Concurrency, v.places())
	}
	return cmp.Or(v.Concurrency, v.places())
}

// join makes the process's pool with the neighbours in it, and returns the queue for the process's own consumer. The world's lock
// is held.
func (p *program) join() *reprisetest.Queue {
	w, v := p.w, p.life.settings
	pool, err := reprise.NewPool(v.poolConfig())
	if err != nil {
		w.refused = err
		return w.q
	}
	p.pool = pool
	for i, n := range w.s.Neighbours {
		cfg := n.config(v)
		cfg.Observer.Received = func(_ context.Context, e reprise.Received) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.arrived(p.number, i, e)
		}
		handler := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error { return p.run(ctx, i, m) })
		p.neighbours = append(p.neighbours, w.others[i].In(pool, n.Share).ConsumeWith(wire{w.q.Direct(), w, -2}, handler, cfg))
	}
	return w.q.In(pool, v.Share)
}

// arrived notes an event of Observer.Received. The world's lock is held.
func (w *world) arrived(process, queue int, e reprise.Received) {
	if len(w.s.Neighbours) > 0 {
		w.arrivals = append(w.arrivals, arrival{process, queue, e.Message.ID, w.now(), e.Message.Attempt, e.Message.Receives, e.Duplicate})
	}
}

var errErrand = errors.New("the errand fails")

// run is the handler of a neighbour.
func (p *program) run(ctx context.Context, neighbour int, m *reprise.Message) error {
	w := p.w
	w.busy.Add(1)
	defer w.busy.Done()
	defer w.call(p.number, neighbour)()
	r := &errandRun{process: p.number, neighbour: neighbour, id: m.ID, receives: m.Receives, began: w.now()}
	if _, err := fmt.Sscanf(m.Body, "errand %d", &r.errand); err != nil {
		panic(err)
	}
	w.mu.Lock()
	w.errands = append(w.errands, r)
	e := w.s.Neighbours[neighbour].Errands[r.errand]
	w.mu.Unlock()
	if e.Takes > 0 {
		timer := time.NewTimer(e.Takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if m.Attempt <= e.Fails {
		return errErrand
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.succeeded = !p.life.crashed
	return nil
}

// stopNeighbours asks the neighbours to stop, and closes the channel when all have.
func (p *program) stopNeighbours() <-chan struct{} {
	all := make(chan struct{})
	left := make(chan struct{}, len(p.neighbours))
	for i, c := range p.neighbours {
		p.w.busy.Go(func() {
			defer func() { left <- struct{}{} }()
			began := p.w.now()
			report := c.Stop()
			took := p.w.now() - began
			p.w.mu.Lock()
			defer p.w.mu.Unlock()
			p.life.neighbours = append(p.life.neighbours, neighbourEnd{i, took, c.Err(), report})
		})
	}
	go func() {
		defer close(all)
		for range p.neighbours {
			<-left
		}
	}()
	return all
}

// sendErrand sends a message of a neighbour.
func (w *world) sendErrand(neighbour, errand int) {
	m := sqsserver.SendMessageEntry{MessageBody: fmt.Sprint("errand ", errand)}
	if w.s.Neighbours[neighbour].FIFO {
		m.MessageGroupId, m.MessageDeduplicationId = fmt.Sprint("group", errand%3), fmt.Sprint("errand", errand)
	}
	w.others[neighbour].SendMessage(m)
}

// errandsWait reports whether a neighbour has messages, and a process lives that can handle them. The world's lock is held.
func (w *world) errandsWait() bool {
	alive := false
	for _, l := range w.processes {
		alive = alive || l.program != nil && l.program.pool != nil && !l.crashed && l.stopped == 0
	}
	if !alive {
		return false
	}
	for i, q := range w.others {
		if len(q.Messages()) > 0 || w.now() < lastErrand(w.s.Neighbours[i]) {
			return true
		}
	}
	return false
}

// leaveErrands notes which errands are left in their queues.
func (w *world) leaveErrands() {
	w.errandsLeft = make(map[errandOf]bool)
	for i, q := range w.others {
		for _, m := range q.Messages() {
			var n int
			if _, err := fmt.Sscanf(m.Body, "errand %d", &n); err != nil {
				panic(err)
			}
			w.errandsLeft[errandOf{i, n}] = true
		}
	}
}

func lastErrand(n neighbour) (last time.Duration) {
	for _, e := range n.Errands {
		last = max(last, e.At)
	}
	return last
}

// drawPool draws pools and the neighbours in them.
func (s *scenario) drawPool(window time.Duration) {
	d := s.own("pool")
	if !d.chance(0.2) {
		return
	}
	share := func() (of reprise.Share) {
		if d.chance(0.4) {
			of.Priority = d.IntN(4) - 1
		}
		if d.chance(0.5) {
			of.Weight = pick(d, d.count(1, 5), d.count(1, 1000))
		}
		return of
	}
	for i := range s.Versions {
		if v := &s.Versions[i]; d.chance(0.8) {
			v.Pooled, v.Share = true, share()
			if d.chance(0.8) {
				v.Places = d.count(1, 20)
			}
		}
	}
	busy := d.chance(0.6) // more comes than can be handled at once
	for range 1 + d.IntN(3) {
		n := neighbour{FIFO: d.chance(0.15), Share: share(), Wait: d.duration(time.Millisecond, time.Minute)}
		if d.chance(0.3) {
			n.Concurrency = d.count(1, 20)
		}
		if d.chance(0.3) {
			n.Prefetch = pick(d, -1, d.count(1, 100))
		}
		slowest := d.duration(time.Millisecond, 30*time.Second)
		count := d.count(1, 40)
		if busy {
			count = d.count(15, 120)
		}
		for range count {
			e := errand{Takes: d.duration(time.Millisecond, slowest+1)}
			if !busy || d.chance(0.2) {
				e.At = time.Duration(d.Int64N(int64(window)))
			}
			if d.chance(0.1) {
				e.Fails = 1 + d.IntN(3)
			}
			n.Errands = append(n.Errands, e)
		}
		s.Neighbours = append(s.Neighbours, n)
	}
	if d.chance(0.2) {
		s.Acts = append(s.Acts, act{At: d.duration(time.Millisecond, window), Process: d.IntN(len(s.Processes)), Do: doSetPlaces, N: d.count(1, 30)})
	}
}
