package machines_test

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

const (
	lookEvery       = 30 * time.Second
	longestQuiet    = 3 * time.Minute // between two handlers, while messages wait behind a breaker
	longestRecovery = time.Hour       // of a breaker, when the faults have ended
)

// every checks the fleet at intervals.
func (f *fleet) every() {
	f.loop.After(lookEvery, "the observer", func() {
		f.look()
		f.every()
	})
}

// look checks that the fleet makes progress.
func (f *fleet) look() {
	visible := make(map[*world.Queue]map[uint64]int)
	for _, n := range f.nodes {
		for _, m := range n.consumers {
			if !n.Alive() || n.Asleep() || n.paused || n.stopped {
				clear(m.quiet)
				m.leftAlone = nil
				continue
			}
			shared := f.pooled || f.laned // the places may be taken, and by right by the more urgent
			idles := f.calm && !shared && f.quota == 0
			if !idles && !f.outages {
				continue // nothing to check
			}
			if f.outages {
				for _, b := range m.Breakers() {
					m.checkBreaker(b)
				}
			}
			if !idles || m.Holds() > 0 {
				m.leftAlone = nil
				continue
			}
			if visible[m.Queue] == nil {
				visible[m.Queue] = f.receivable(m.Queue)
			}
			for number, receives := range m.leftAlone {
				if now, ok := visible[m.Queue][number]; ok && now == receives {
					f.broken(world.NobodyWaits, "message %d of %s, for %v, %s", number, m.Queue.Name(), lookEvery, f.states())
				}
			}
			m.leftAlone = visible[m.Queue]
		}
	}
}

// checkBreaker checks that the outage of b is probed, and ends.
func (m *machine) checkBreaker(b consumer.Breaker) {
	f, now := m.f, m.f.loop.Now()
	if f.mended && now.Sub(f.back) > longestRecovery && m.Settings.HandlerTimeout == 0 && b.State != breaker.Closed && b.Held > 0 { // with none held, others may take all that could be tried
		f.broken(world.OutagesEnd, "that of %s is %v: %s", m.Name, b.State, f.states())
	}
	since, waits := m.quiet[b.Key]
	switch {
	case b.Held == 0 || b.Paused || m.n.handlers() > 0:
		delete(m.quiet, b.Key)
	case !waits:
		m.quiet[b.Key] = now
	case now.Sub(since) > longestQuiet:
		f.broken(world.ProbesGoOn, "%s: %s", m.Name, f.states())
	}
}

// receivable returns the messages that a receive from q could bring now, on a FIFO queue only the
// heads of groups: their receives so far by their numbers.
func (f *fleet) receivable(q *world.Queue) map[uint64]int {
	all := make(map[uint64]int)
	if visible, _, _ := q.Counts(); visible == 0 {
		return all
	}
	heads := make(map[string]engine.Delivery) // by group
	for d := range q.All() {
		if !f.fifo && d.VisibleAt.IsZero() {
			all[d.Receipt.Number] = d.Receives
		}
		if head, ok := heads[d.Group]; f.fifo && (!ok || d.Sequence < head.Sequence) {
			heads[d.Group] = d
		}
	}
	for _, d := range heads {
		if d.VisibleAt.IsZero() {
			all[d.Receipt.Number] = d.Receives
		}
	}
	return all
}

// checkNewcomers checks that messages that were sent after the end of the faults have run, whatever
// other messages are in the queues.
func (f *fleet) checkNewcomers(fresh []*part) {
	for _, p := range fresh {
		set := p.queue.Settings()
		if visible, inFlight, delayed := p.queue.Counts(); set.InFlightLimit > 0 && visible+inFlight+delayed > set.InFlightLimit {
			continue // SQS hands out hardly any while others wait for hours, hidden or as copies that come in turn
		}
		if !p.ran && !p.refused {
			f.broken(world.NewOnesGoOn, "%s, by %s", p.body, f.states())
			return
		}
	}
}
