package machines_test

import (
	"errors"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/retry"
)

var (
	errOfHandler = errors.New("it failed")
	errOfPanic   = errors.New("it panicked")
	errOfRule    = errors.New("it failed, and a rule says when it is tried again")
)

// work is the model of a handler, of one message or of a batch.
func (m *machine) work(messages []*simulation.Message) simulation.Run {
	f, r := m.f, m.f.loop.Random
	m.handlers++
	var keys []string // what it is busy with
	var parts []*part
	for _, msg := range messages {
		p := partOf(msg.Payload)
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
		p.ran, p.parked = true, p.parked[:0]
	}
	if len(messages) > 1 {
		f.loop.Note(m.Name, "runs a batch", int64(len(messages)))
	}
	takes := time.Duration(1 + r.Int64N(int64(500*time.Millisecond)))
	if r.IntN(12) == 0 && !f.mended && f.rate == 0 {
		takes = time.Duration(1 + r.Int64N(int64(3*m.Settings.Lease)))
		f.loop.Note(m.Name, "runs for long", int64(parts[0].number))
	}
	m.kill(parts, takes)
	return simulation.Run{
		Takes: takes, Ignores: r.IntN(10) == 0,
		Over: func() {
			m.handlers--
			m.limit = max(m.wanted, m.handlers)
			for _, key := range keys {
				if m.busy[key]--; m.busy[key] == 0 {
					delete(m.busy, key)
				}
			}
		},
		Ends: func() []simulation.Result {
			results := make([]simulation.Result, len(messages))
			for i := range messages {
				results[i] = m.outcome(parts[i], messages[i])
			}
			return results
		},
	}
}

// keyOf returns the key of p's breaker.
func (m *machine) keyOf(p *part) string {
	if m.f.keyed {
		return p.key
	}
	return ""
}

// kill ends the process during a run that lasts takes, if the run has a deadly message.
func (m *machine) kill(parts []*part, takes time.Duration) {
	f := m.f
	for _, p := range parts {
		if p.kind != deadly || f.mended {
			continue
		}
		m.Process.After(takes/2, func() {
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
func (m *machine) outcome(p *part, msg *simulation.Message) simulation.Result {
	f := m.f
	what := f.loop.Random.IntN(14)
	switch {
	case f.mended && p.permanent:
		what = 6
	case f.mended:
		what = 13
	case f.down[""] || f.down[p.key]:
		return simulation.Result{Err: errOfHandler, Unavailable: true}
	case f.rate > 0 && !f.answers():
		f.loop.Note(m.Name, "is refused by the dependency", int64(p.number))
		return simulation.Result{Err: errOfHandler, Unavailable: true}
	case f.rate > 0:
		what = 13
	}
	p.steered = p.steered || what >= 3 && what <= 5
	switch what {
	case 0:
		return simulation.Result{Err: errOfPanic}
	case 1, 2:
		return simulation.Result{Err: errOfHandler}
	case 3:
		return simulation.Result{Err: errOfRule}
	case 4:
		return simulation.Result{Err: retry.RetryAfter(20*time.Second, errOfHandler)}
	case 5:
		return simulation.Result{Err: retry.Release(0, errOfHandler)}
	case 6:
		p.permanent = true
		return simulation.Result{Err: retry.Permanent(errOfHandler)}
	}
	m.worked[msg.ID], p.handled = m.Process.Steady(), true
	f.loop.Note(m.Name, "has done message", int64(p.number))
	return simulation.Result{}
}

// probe tests whether the dependency of a key is back.
func (m *machine) probe(key string) error {
	f := m.f
	delete(m.quiet, key)
	f.loop.Note(m.Name, "probes", 0)
	if f.down[""] || f.down[key] {
		return errOfHandler
	}
	return nil
}

// The following methods are what consumers call: observers and hooks.

func (m *machine) attempted(e simulation.Attempt) {
	id := e.ID
	delete(m.due, id)
	switch e.Outcome {
	case consumer.OutcomeHold:
		delete(m.worked, id) // it runs again, behind one of its group that has failed
	case consumer.OutcomeRetry:
		if now := m.Process.Steady(); e.Due.Sub(now) < 11*time.Hour { // longer waits may be cut a little short
			m.due[id] = e.Due
		}
	case consumer.OutcomeDeadLetter:
		m.givenUp[id] = m.Process.Steady()
	}
	if done := e.Outcome == consumer.OutcomeDelete; done != (e.Err == nil) && e.Outcome != consumer.OutcomeHold && e.Outcome != consumer.OutcomeLost {
		m.f.broken(world.PolicyDecides, "%v at %s on %s is followed by %v", e.Err, partOf(e.Payload).body, m.Name, e.Outcome)
	}
	m.f.loop.Note(m.Name, "attempt: "+e.Outcome.String(), int64(partOf(e.Payload).number))
}

// reported records what a consumer reports to its users.
func (m *machine) reported(r consumer.Report) {
	switch r := r.(type) {
	case consumer.Outage:
		m.f.outages = true
		m.f.loop.Note(m.Name, "breaker: "+r.State.String(), int64(r.Held))
	case consumer.Expiring:
		m.f.loop.Note(m.Name, "announces that a message expires", int64(partOf(simulation.PayloadOf(r.Subject)).number))
	}
}

func (m *machine) deleted(s consumer.Subject) {
	p := partOf(simulation.PayloadOf(s))
	if m.worked[simulation.ID(s)].IsZero() {
		m.f.broken(world.HooksFollow, "%s on %s was not worked off", p.body, m.Name)
	}
	m.f.loop.Note(m.Name, "is told after the delete", int64(p.number))
}

func (m *machine) settled(e consumer.Settled) {
	f := m.f
	p := partOf(simulation.PayloadOf(e.Subject))
	m.told++
	p.kept = p.kept || e.Outcome == consumer.OutcomeKeep
	if e.Outcome == consumer.OutcomeLost && f.calm && !f.expired(p) {
		f.broken(world.NoLeaseIsLostInCalm, "%s, by %s: %v", p.body, m.Name, e.Err)
	}
	f.loop.Note(m.Name, "settled: "+e.Outcome.String(), int64(p.number))
	if e.Outcome == consumer.OutcomeDeadLetter {
		f.loop.Note(m.Name, "gives up: "+e.Reason.String(), int64(p.number))
	}
	if e.Requeued {
		f.loop.Note(m.Name, "has put a copy in the place of a message", int64(p.number))
	}
}
