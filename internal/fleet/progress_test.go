package fleet_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/sqsserver"
)

const (
	longestQuiet    = 2 * time.Minute  // between two handlers, while messages are held
	longestRecovery = 10 * time.Minute // of a breaker, after an outage of hours
	longestToStart  = time.Hour        // for a new message, when the faults have ended
)

// checkProgress checks that the consumers get on with the work: in an outage by
// looking for its end, and after it by leaving it behind.
func (f *fleet) checkProgress() {
	for _, n := range f.nodes {
		breakers := n.Status().Breakers
		f.mu.Lock()
		for _, b := range breakers {
			if b.State == reprise.BreakerClosed || !n.paused.IsZero() || n.stopping || n.crashed {
				continue
			}
			quiet := time.Since(latest(n.started, n.resumed, n.begun, b.Since, n.keptSince(b.Held)))
			if b.Held > 0 && n.handlers == 0 && quiet > longestQuiet {
				f.broken(world.ProbesGoOn, nil, "node %d holds %d messages behind a breaker that is %v, one of them for %v, in which it has started no handler", n.number, b.Held, b.State, quiet)
			}
			// Handlers that time out look like an outage of their own.
			if back := time.Since(latest(n.started, n.resumed, f.backSince, f.nothingToTry(n, b))); !f.outage && n.cfg.HandlerTimeout == 0 && back > longestRecovery {
				f.broken(world.OutagesEnd, nil, "the breaker of node %d is %v, %v after the dependency was back; %d messages held, %s", n.number, b.State, back, b.Held, b.Problem)
			}
		}
		f.mu.Unlock()
	}
}

// keptSince returns since when one of the held messages has been kept at least.
// Status counts the messages behind a breaker but does not name them, so this takes
// them for the youngest that n keeps. The caller holds fleet.mu.
func (n *node) keptSince(held int) time.Time {
	since := slices.SortedFunc(maps.Values(n.kept), func(a, b time.Time) int { return b.Compare(a) })
	if held < 1 || held > len(since) { // the latest has not been told yet
		return time.Now()
	}
	return since[held-1]
}

// nothingToTry returns until when n could not find out that the dependency is back: a
// breaker needs a message for that, until one has succeeded. A node that holds none
// has to ask for one. The caller holds fleet.mu.
func (f *fleet) nothingToTry(n *node, b reprise.BreakerStatus) time.Time {
	known := b.State == reprise.BreakerRamping || n.succeeded.After(f.backSince)
	if known || b.Held == 0 && time.Since(n.asked) > longestQuiet {
		return n.succeeded
	}
	return n.keptSince(b.Held)
}

// latest is the latest of some times.
func latest(times ...time.Time) (t time.Time) {
	for _, u := range times {
		if u.After(t) {
			t = u
		}
	}
	return t
}

// checkNewcomers sends messages when the faults have ended, and checks that they are
// run, whatever else is there: what waits for hours, what nothing takes a copy
// of, what is taken for deadly.
func (f *fleet) checkNewcomers() {
	var fresh []*part
	f.mu.Lock()
	for i := range 5 {
		p := &part{runs: make(map[*node]*spell), token: fmt.Sprint("new-", i)}
		p.body = p.token
		m := sqsserver.SendMessageEntry{MessageBody: p.body}
		if f.fifo {
			p.group, m.MessageDeduplicationId = p.token, p.token
			m.MessageGroupId = p.group
		}
		p.id = f.queue.SendMessage(m)
		f.parts[p.token] = p
		f.line, fresh = append(f.line, p), append(fresh, p)
	}
	f.mu.Unlock()
	time.Sleep(longestToStart)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range fresh {
		if p.total == 0 {
			f.broken(world.NewOnesGoOn, p, "it was sent %v ago", longestToStart)
		}
	}
}
