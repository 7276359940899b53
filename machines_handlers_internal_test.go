package reprise

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/internal/world"
)

var (
	errOfHandler = errors.New("it failed")
	errOfRule    = errors.New("it failed, and a rule says when it is tried again")
)

// work is the model of a handler, of one message or of a batch.
func (m *machine) work(messages []*Message) work {
	f, r := m.f, m.f.loop.Random
	m.handlers++
	var keys []string // what it is busy with
	var parts []*part
	for _, msg := range messages {
		p := f.byBody[msg.Body]
		f.loop.Note(m.Name, "runs message", int64(p.number))
		keys, parts = append(keys, msg.ID), append(parts, p)
		if group := "group " + msg.GroupID; f.fifo && (len(parts) == 1 || p.group != parts[len(parts)-2].group) {
			keys = append(keys, group)
		}
		delete(m.quiet, m.keyOf(p))
	}
	for _, key := range keys {
		m.busy[key]++
	}
	m.checkRun(parts, messages, keys)
	for _, p := range parts {
		p.ran = true
	}
	if len(messages) > 1 {
		f.loop.Note(m.Name, "runs a batch", int64(len(messages)))
	}
	takes := time.Duration(1 + r.Int64N(int64(500*time.Millisecond)))
	if r.IntN(12) == 0 && !f.mended && f.rate == 0 {
		takes = time.Duration(1 + r.Int64N(int64(3*m.cfg.Lease)))
		f.loop.Note(m.Name, "runs for long", int64(parts[0].number))
	}
	m.kill(parts, takes)
	return work{
		takes: takes, heeds: r.IntN(10) > 0,
		finished: func() {
			m.handlers--
			m.limit = max(m.wanted, m.handlers)
			for _, key := range keys {
				if m.busy[key]--; m.busy[key] == 0 {
					delete(m.busy, key)
				}
			}
		},
		errs: func() []error {
			errs := make([]error, len(messages))
			for i := range messages {
				errs[i] = m.outcome(parts[i], messages[i])
			}
			return errs
		},
	}
}

// keyOf is the key of p's breaker.
func (m *machine) keyOf(p *part) string {
	if m.f.keyed {
		return p.key
	}
	return ""
}

// kill has the process die during a run of takes, if that is of a deadly message.
func (m *machine) kill(parts []*part, takes time.Duration) {
	f := m.f
	for _, p := range parts {
		if p.kind != deadly || f.mended {
			continue
		}
		m.After(takes/2, func() {
			if p.handled || f.mended {
				return
			}
			f.loop.Note(m.Name, "is killed by a message", int64(p.number))
			p.kills++
			f.checkKills(p)
			f.crash(m.n, 10*time.Second)
		})
		return
	}
}

// outcome draws what a handler returns for p.
func (m *machine) outcome(p *part, msg *Message) error {
	f := m.f
	what := f.loop.Random.IntN(14)
	switch {
	case f.mended && p.permanent:
		what = 6
	case f.mended:
		what = 13
	case f.down[""] || f.down[p.key]:
		return Unavailable(errOfHandler)
	case f.rate > 0 && !f.answers():
		f.loop.Note(m.Name, "is refused by the dependency", int64(p.number))
		return Unavailable(errOfHandler)
	case f.rate > 0:
		what = 13
	}
	p.steered = p.steered || what >= 3 && what <= 5
	switch what {
	case 0:
		return &PanicError{Value: "burst"}
	case 1, 2:
		return errOfHandler
	case 3:
		return errOfRule
	case 4:
		return RetryAfter(20*time.Second, errOfHandler)
	case 5:
		return Release(0, errOfHandler)
	case 6:
		p.permanent = true
		return Permanent(errOfHandler)
	}
	m.worked[msg.ID], p.handled = true, true
	f.loop.Note(m.Name, "has done message", int64(p.number))
	return nil
}

// probe is Config.Outage.Probe.
func (f *machines) probe(ctx context.Context, key string) error {
	m := ctx.Value(simulatedKey{}).(*simulated).observer.(*machine)
	delete(m.quiet, key)
	f.loop.Note(m.Name, "probes", 0)
	if f.down[""] || f.down[key] {
		return errOfHandler
	}
	return nil
}

// The following methods are what consumers call: observers and hooks.

func (m *machine) attempted(e Attempt) {
	id := e.Message.ID
	delete(m.due, id)
	switch e.Outcome {
	case OutcomeHold:
		delete(m.worked, id) // it runs again, behind one of its group that has failed
	case OutcomeRetry:
		if now := m.now(); e.Due.Sub(now) < 11*time.Hour { // longer waits may be cut a little short
			m.due[id] = e.Due
		}
	case OutcomeDeadLetter:
		m.givenUp[id] = m.now()
	}
	if done := e.Outcome == OutcomeDelete; done != (e.Err == nil) && e.Outcome != OutcomeHold && e.Outcome != OutcomeLost {
		m.f.broken(world.PolicyDecides, "%v at %s on %s is followed by %v", e.Err, e.Message.Body, m.Name, e.Outcome)
	}
	m.f.loop.Note(m.Name, "attempt: "+e.Outcome.String(), int64(m.f.byBody[e.Message.Body].number))
}

func (m *machine) outageChanged(e OutageEvent) {
	m.f.outages = true
	m.f.loop.Note(m.Name, "breaker: "+e.State.String(), int64(e.Held))
}

func (m *machine) expires(e Expiring) {
	m.f.loop.Note(m.Name, "announces that a message expires", int64(m.f.byBody[e.Message.Body].number))
}

func (m *machine) deleted(msg *Message) {
	if !m.worked[msg.ID] {
		m.f.broken(world.HooksFollow, "%s on %s was not worked off", msg.Body, m.Name)
	}
	m.f.loop.Note(m.Name, "is told after the delete", int64(m.f.byBody[msg.Body].number))
}

func (m *machine) settled(e Settled) {
	f := m.f
	p := f.byBody[e.Message.Body]
	m.told++
	p.kept = p.kept || e.Outcome == OutcomeKeep
	if e.Outcome == OutcomeLost && f.calm && !f.expired(p) {
		f.broken(world.NoLeaseIsLostInCalm, "%s, by %s: %v", p.body, m.Name, e.Err)
	}
	f.loop.Note(m.Name, "settled: "+e.Outcome.String(), int64(p.number))
	if e.Outcome == OutcomeDeadLetter {
		f.loop.Note(m.Name, "gives up: "+e.Reason.String(), int64(p.number))
	}
	if e.Requeued {
		f.loop.Note(m.Name, "has put a copy in the place of a message", int64(p.number))
	}
}
