package machines_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
)

// broken records that an invariant does not hold, for the first few times.
func (f *fleet) broken(invariant, format string, args ...any) {
	if len(f.wrong) == 3 {
		return
	}
	f.wrong = append(f.wrong, fmt.Sprintf("after %v: %s: %s", f.loop.Since().Round(time.Millisecond), invariant, fmt.Sprintf(format, args...)))
}

// checkRun checks that m may run messages, which are parts, now.
func (m *machine) checkRun(parts []*part, messages []*simulation.Message, keys []string) {
	f := m.f
	all, limit := m.handlers, m.limit
	if m.pool != nil {
		all, limit = m.n.handlers(), m.pool.Concurrency()
	}
	if all > limit {
		f.broken(world.Concurrency, "%d on %s, %d are permitted", all, m.Name, limit)
	}
	if m.n.paused {
		f.broken(world.PausedIsPaused, "%s on %s", parts[0].body, m.Name)
	}
	for _, key := range keys {
		if m.busy[key] > 1 {
			f.broken(world.OneAtATime, "%s runs %d times on %s", key, m.busy[key], m.Name)
		}
	}
	for i, p := range parts {
		m.checkTurn(p, messages[i])
		m.checkNumber(p, messages[i])
		if turn := p.number % (1 + len(f.parts)/64); f.fifo && !p.redriven && turn == 0 { // not at each, of many: it takes long
			m.checkOrder(p, parts[:i])
		}
	}
}

// handlers returns how many handlers run on n.
func (n *node) handlers() (all int) {
	for _, m := range n.consumers {
		all += m.handlers
	}
	return all
}

// checkTurn checks that p may run now.
func (m *machine) checkTurn(p *part, msg *simulation.Message) {
	f := m.f
	if f.keyed && m.pausedKey[p.key] {
		f.broken(world.PausedIsPaused, "%s, of a key that is paused, on %s", p.body, m.Name)
	}
	if early := p.hiddenUntil.Sub(f.sqs.Now()); p.hiddenID == msg.ID && !f.leaky && !f.outages && early > machinesRange {
		f.broken(world.NeverEarlyAnywhere, "%s runs %v early on %s", p.body, early, m.Name)
	}
	if early := m.due[msg.ID].Sub(m.Process.Steady()); early > 0 && !f.outages {
		f.broken(world.NeverEarly, "%s runs %v early on %s", p.body, early, m.Name)
	}
	if at, ok := m.givenUp[msg.ID]; ok && m.Process.Steady().Sub(at) < memory.MaxAge/2 {
		f.broken(world.GivenUpForGood, "%s on %s", p.body, m.Name)
	}
	if at, ok := m.worked[msg.ID]; ok && m.Process.Steady().Sub(at) < memory.MaxAge/2 && !p.redriven && !f.leaky {
		f.broken(world.DoneOnce, "%s on %s", p.body, m.Name)
	}
}

// checkNumber checks the number of the attempt at p that begins.
func (m *machine) checkNumber(p *part, msg *simulation.Message) {
	f := m.f
	if limit := m.Settings.Retry.MaxAttempts; msg.Attempt < 1 || limit > 0 && msg.Attempt > limit {
		f.broken(world.Numbered1ToMax, "attempt %d at %s on %s, %d are permitted", msg.Attempt, p.body, m.Name, limit)
	}
	if f.signed && msg.OriginID == origin {
		f.broken(world.ForgedAreIgnored, "%s on %s", p.body, m.Name)
	}
	if msg.OriginID == origin {
		f.loop.Note(m.Name, "believes a forged history", int64(p.number))
	}
}

// checkOrder checks that no earlier message of p's group is left, except those that run in the same
// batch.
func (m *machine) checkOrder(p *part, with []*part) {
	for d := range m.Queue.All() {
		before := partOf(d.Payload)
		if before.group == p.group && before.number < p.number && !before.redriven && !slices.Contains(with, before) {
			m.f.broken(world.InOrder, "%s runs on %s before %s", p.body, m.Name, before.body)
		}
	}
}

// checkKills checks how many processes p has killed. By a policy with rules as many attempts may have been made as their waits
// permit, which are two and a half minutes at least: see [retry.Policy.Attempts]. A mark that is set when the service
// has been down says of losses what a forged one may say at most, and the deaths before it come on top.
func (f *fleet) checkKills(p *part) {
	most := mostKills
	if f.ruled {
		most += int(f.loop.Since() / (150 * time.Second))
	}
	if f.failed {
		most += killsOfAMark
	}
	if !f.unexplained && !f.impatient && p.kills > most {
		f.broken(world.KillersEnd, "%s has killed %d", p.body, p.kills)
	}
}

const (
	// mostKills is how many processes a message kills at most before it is given up: some before it
	// is a suspect, two while it runs alone, and others whose deaths are counted as attempts.
	mostKills = 16
	// killsOfAMark is how many processes a message kills, marked with the greatest share of losses: docs/outages.md.
	killsOfAMark = 16
	// mostKillers is how many messages of a fleet may kill processes.
	mostKillers = 3
)

// Arrived implements simulation.Watcher.
func (m *machine) Arrived(d *engine.Delivery) {
	m.newest[d.ID.String()] = &lease{receipt: d.Receipt, from: m.f.sqs.Now(), until: d.VisibleAt}
}

// Asks implements simulation.Watcher.
func (m *machine) Asks(kind simulation.RequestKind, batch []simulation.Asked) {
	f := m.f
	now := f.sqs.Now()
	switch kind {
	case simulation.RenewRequest:
		f.loop.Note(m.Name, "renews", int64(len(batch)))
	case simulation.DeadLetterRequest:
		f.loop.Note(m.Name, "sends a dead letter", int64(len(batch)))
	case simulation.CopyRequest:
		f.loop.Note(m.Name, "sends a copy", int64(len(batch)))
	}
	for _, e := range batch {
		p, l := partOf(e.Payload), m.newest[e.ID]
		if !sends(kind) && e.Receipt != l.receipt {
			f.broken(world.NewestHandle, "%s to %s %s", m.Name, kind, p.body)
		}
		if l.talking {
			f.broken(world.OneConversation, "%s asks to %s %s while it asks to %s it", m.Name, kind, p.body, l.about)
		}
		l.talking, l.about, l.asked = true, kind, now
		m.checkPatience(e.ID, p, now)
		switch {
		case kind == simulation.DeleteRequest && !p.handled && !m.copied[p.body]:
			f.broken(world.DeletesWhatIsDone, "%s deletes %s", m.Name, p.body)
		case (kind == simulation.RenewRequest || kind == simulation.HideRequest) && f.calm && now.After(l.until):
			f.broken(world.LeavesOthersAlone, "%s does so to %s, %v late", m.Name, p.body, now.Sub(l.until))
		case kind != simulation.RenewRequest && now.Sub(l.from) > 11*time.Hour:
			f.loop.Note(m.Name, "gives back a message held for 11 hours", int64(p.number))
		}
		if strings.Contains(e.History, `"alone":1`) {
			f.loop.Note(m.Name, "suspects a message", int64(p.number))
			if f.calm && !f.unexplained && !p.steered && p.kind == plain {
				f.broken(world.NoSuspects, "%s suspects %s", m.Name, p.body)
			}
		}
	}
}

// sends reports whether requests of the kind send messages.
func sends(kind simulation.RequestKind) bool {
	return kind == simulation.CopyRequest || kind == simulation.DeadLetterRequest
}

// checkPatience checks how often m makes requests about a message.
func (m *machine) checkPatience(id string, p *part, now time.Time) {
	const many, within = 16, 2 * time.Second
	asked := append(m.asked[id], now)
	if before := len(asked) - many; before >= 0 {
		if took := now.Sub(asked[before]); took < within {
			m.f.broken(world.Patience, "%s makes %d requests about %s within %v", m.Name, many, p.body, took)
		}
		asked = asked[1:]
	}
	m.asked[id] = asked
}

// checkCopies checks how often p, which was just copied, is copied while it waits, from one run to the next: a chain of
// copies costs as much as running it repeatedly. It skips messages with more than one copy, which
// happens when the reply to a send was lost: each copy has its own chain.
func (m *machine) checkCopies(p *part) {
	const many, within = 12, 10 * time.Minute
	now := p.enqueued
	p.parked = append(p.parked, now)
	if before := len(p.parked) - many; before >= 0 {
		if took := now.Sub(p.parked[before]); took < within && !m.f.leaky && m.f.inQueues(p) <= 2 { // the copy and its original
			m.f.broken(world.FewCopies, "%s is the latest to copy %s, %d times within %v", m.Name, p.body, many, took)
		}
		p.parked = p.parked[1:]
	}
}

// Answered implements simulation.Watcher.
func (m *machine) Answered(kind simulation.RequestKind, batch []simulation.Asked, got []world.Entry, err error) {
	for _, e := range batch {
		m.newest[e.ID].talking = false
	}
	for i := range got {
		switch {
		case err != nil || got[i].Err != nil:
		case kind == simulation.WakeRequest:
			m.f.loop.Note(m.Name, "wakes a message", 0)
		default:
			m.confirmed(kind, batch[i], got[i])
		}
	}
}

// confirmed records that SQS has carried out an entry.
func (m *machine) confirmed(kind simulation.RequestKind, e simulation.Asked, c world.Entry) {
	f := m.f
	p, l := partOf(e.Payload), m.newest[e.ID]
	newest := c.Receipt == l.receipt // or it was received again meanwhile, and that lease stands
	switch {
	case sends(kind):
		m.copied[p.body] = true
		p.hiddenUntil = time.Time{}
		p.enqueued = f.sqs.Now() // or a little before
		if e.Outcome == consumer.OutcomePark {
			m.checkCopies(p)
		}
	case kind == simulation.DeleteRequest || !newest:
	default:
		l.until = f.sqs.Now().Add(c.Visibility)
		if kind == simulation.HideRequest && !f.fifo && e.Outcome == consumer.OutcomeRetry {
			// From when it was asked: a process that has slept hears the reply long after SQS has begun to hide it.
			p.hiddenUntil, p.hiddenID = l.asked.Add(c.Visibility), e.ID
		}
	}
}

// checkReport checks how a consumer has stopped.
func (m *machine) checkReport(r simulation.Left, took time.Duration) {
	f := m.f
	f.loop.Note(m.Name, "has stopped", r.Counts.Received)
	if f.calm && took > m.Settings.StopBudget+time.Second {
		f.broken(world.WithinBudget, "%s took %v of %v", m.Name, took, m.Settings.StopBudget)
	}
	c := r.Counts
	if c.Requeued > 0 && f.quota > 0 {
		f.loop.Note(m.Name, "sends copies at a small quota", c.Requeued)
	}
	if !r.Drained() {
		f.unexplained = true // receives whose outcome nobody knows
		f.loop.Note(m.Name, "leaves work behind", int64(len(r.Abandoned)+len(r.Unsettled)))
		return
	}
	if all := c.Duplicates + c.Deleted + c.Retried + c.Released + c.Parked + c.DeadLettered + c.Kept + c.Lost; c.Received != all || m.told != all-c.Duplicates {
		f.broken(world.EveryOneCounted, "%s has told of %d: %+v", m.Name, m.told, c)
	}
	if s := m.Status(); s.Running+s.Waiting+s.Settling+s.Pollers != 0 {
		f.broken(world.NothingHeld, "%s: %+v", m.Name, s)
	}
}
