package reprise

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

// broken notes that an invariant does not hold. The first few tell all.
func (f *machines) broken(invariant, format string, args ...any) {
	if len(f.wrong) == 3 {
		return
	}
	f.wrong = append(f.wrong, fmt.Sprintf("after %v: %s: %s", f.loop.Since().Round(time.Millisecond), invariant, fmt.Sprintf(format, args...)))
}

// checkRun checks that n may run p now.
func (f *machines) checkRun(n *machine, p *part, m *Message, keys []string) {
	if limit := n.Status().Concurrency; n.handlers > max(limit, 20) || f.calm && n.handlers > 20 {
		f.broken("no more handlers run at once than the concurrency permits", "%d on %s, %d are permitted", n.handlers, n.Name, limit)
	}
	if n.paused {
		f.broken("no handler starts on a paused consumer", "%s on %s", p.body, n.Name)
	}
	for _, key := range keys {
		if n.busy[key] > 1 {
			f.broken("a consumer runs a message, and a FIFO group, once at a time", "%s runs %d times on %s", key, n.busy[key], n.Name)
		}
	}
	if early := p.hiddenUntil.Sub(f.sqs.Now()); p.hiddenID == m.ID && !f.leaky && !f.outages && early > machinesRange {
		f.broken("nobody runs a message before the time until which SQS has confirmed to hide it", "%s runs %v early on %s", p.body, early, n.Name)
	}
	if n.worked[m.ID] && !p.redriven && !f.leaky {
		f.broken("a consumer does not run a message again that a handler of its own has worked off", "%s on %s", p.body, n.Name)
	}
	if limit := n.cfg.Retry.MaxAttempts; m.Attempt < 1 || limit > 0 && m.Attempt > limit {
		f.broken("attempts are numbered from 1 to no more than MaxAttempts", "attempt %d at %s on %s, %d are permitted", m.Attempt, p.body, n.Name, limit)
	}
	if f.fifo && !p.redriven {
		for _, d := range f.queue.Messages() {
			if before := f.byBody[d.Payload.(*letter).body]; before.group == p.group && before.number < p.number && !before.redriven {
				f.broken("no message of a FIFO group runs while an earlier one is in the queue", "%s runs on %s before %s", p.body, n.Name, before.body)
			}
		}
	}
}

func (n *machine) arrived(d *engine.Delivery) {
	n.newest[d.ID.String()] = &lease{handle: fmt.Sprintf("%d-%d", d.Receipt.Number, d.Receipt.Generation), until: d.VisibleAt}
}

func (n *machine) asks(action world.Action, batch []*delivery) {
	f := n.f
	now := f.sqs.Now()
	switch action {
	case heartbeat:
		f.loop.Note(n.Name, "renews", int64(len(batch)))
	case world.Send:
		if what := "sends a copy"; batch[0].verdict.outcome == OutcomeDeadLetter {
			what = "sends a dead letter"
			f.loop.Note(n.Name, what, int64(len(batch)))
		} else {
			f.loop.Note(n.Name, what, int64(len(batch)))
		}
	}
	for _, d := range batch {
		id := d.msg.ID
		p, l := f.byBody[d.msg.Body], n.newest[id]
		if action != world.Send && *d.handle != l.handle {
			f.broken("a request names the newest receipt that its consumer has", "%s to %s %s", n.Name, action, p.body)
		}
		if l.talking != "" {
			f.broken("there is one request about a message at a time", "%s asks to %s %s while it asks to %s it", n.Name, action, p.body, l.talking)
		}
		l.talking = action
		const many, within = 16, 2 * time.Second
		n.asked[id] = append(n.asked[id], now)
		if before := len(n.asked[id]) - many; before >= 0 {
			if took := now.Sub(n.asked[id][before]); took < within {
				f.broken("what has failed is tried again after a pause", "%s makes %d requests about %s within %v", n.Name, many, p.body, took)
			}
			n.asked[id] = n.asked[id][1:]
		}
		if action == world.Delete && !p.handled && !n.copied[p.body] {
			f.broken("a consumer deletes what it has done, and what SQS has confirmed a copy of", "%s deletes %s", n.Name, p.body)
		}
		if (action == heartbeat || action == world.ChangeVisibility) && f.calm && now.After(l.until) {
			f.broken("the visibility of a message is not changed after the end of its lease", "%s does so to %s, %v late", n.Name, p.body, now.Sub(l.until))
		}
	}
}

func (n *machine) answered(batch []*delivery) {
	for _, d := range batch {
		n.newest[d.msg.ID].talking = ""
	}
}

func (n *machine) confirmed(action world.Action, d *delivery, e world.Entry) {
	f := n.f
	p, l := f.byBody[d.msg.Body], n.newest[d.msg.ID]
	switch action {
	case world.Send:
		n.copied[p.body] = true
		p.hiddenUntil = time.Time{}
	case heartbeat:
		l.until = f.sqs.Now().Add(e.Visibility)
	case world.ChangeVisibility:
		l.until = f.sqs.Now().Add(e.Visibility)
		if !f.fifo && d.verdict.outcome == OutcomeRetry && *d.handle == l.handle {
			p.hiddenUntil, p.hiddenID = l.until, d.msg.ID
		}
	}
}

// every looks at the fleet from time to time.
func (f *machines) every() {
	f.loop.After(lookEvery, "the observer", func() {
		f.look()
		f.every()
	})
}

const (
	lookEvery       = 30 * time.Second
	longestQuiet    = 3 * time.Minute // between two handlers, while messages wait behind a breaker
	longestRecovery = time.Hour       // of a breaker, when the faults have ended
)

// look checks that work gets on.
func (f *machines) look() {
	now := f.loop.Now()
	var visible map[uint64]int
	for _, n := range f.nodes {
		if !n.Alive() || n.paused || n.stopped {
			n.quietSince, n.leftAlone = time.Time{}, nil
			continue
		}
		s := n.Status()
		held := 0
		for _, b := range s.Breakers {
			held += b.Held
			if f.mended && now.Sub(f.back) > longestRecovery && n.cfg.HandlerTimeout == 0 {
				f.broken("an hour after an outage no breaker is open, half-open or ramping", "that of %s is %v", n.Name, b.State)
			}
		}
		switch {
		case held == 0 || n.handlers > 0:
			n.quietSince = time.Time{}
		case n.quietSince.IsZero():
			n.quietSince = now
		case now.Sub(n.quietSince) > longestQuiet:
			f.broken("while an outage keeps messages from their handlers, one is started every three minutes at least", "%s: %s", n.Name, f.states())
		}
		if !f.calm || s.Running+s.Waiting+s.Settling > 0 {
			n.leftAlone = nil
			continue
		}
		if visible == nil {
			visible = f.receivable()
		}
		for number, receives := range n.leftAlone {
			if now, ok := visible[number]; ok && now == receives {
				f.broken("in calm, no due message waits while a consumer has nothing to do", "message %d, for %v, %s", number, lookEvery, f.states())
			}
		}
		n.leftAlone = visible
	}
}

// receivable are the receives so far of the messages that a receive could bring now, by
// their numbers: of a FIFO queue the heads of groups.
func (f *machines) receivable() map[uint64]int {
	all := make(map[uint64]int)
	if visible, _, _ := f.queue.Counts(); visible == 0 {
		return all
	}
	messages := f.queue.Messages()
	slices.SortFunc(messages, func(a, b engine.Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) })
	seen := make(map[string]bool) // groups
	for _, d := range messages {
		if !seen[d.Group] && d.VisibleAt.IsZero() {
			all[d.Receipt.Number] = d.Receives
		}
		seen[d.Group] = f.fifo
	}
	return all
}

// checkEnd checks what has become of the messages.
func (f *machines) checkEnd() {
	left := make(map[string]bool)
	for _, d := range f.dead.Messages() {
		left[d.Payload.(*letter).body] = true
	}
	for _, d := range f.queue.Messages() {
		left[d.Payload.(*letter).body] = true
		f.broken("when the faults have ended, the queue is worked off", "%s is still there, visible at %v", d.Payload.(*letter).body, d.VisibleAt)
	}
	for _, p := range f.parts {
		if !p.handled && !left[p.body] {
			f.broken("each message is handled or dead-lettered", "%s is gone", p.body)
		}
	}
}
