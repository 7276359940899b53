package fleet_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/retry"
)

// checkVerdict checks what n makes of the end of an attempt.
func (f *fleet) checkVerdict(n *node, p *part, e reprise.Attempt) {
	if e.Outcome == reprise.OutcomeLost || n.crashed {
		return // told by its invariant; of no interest
	}
	if e.Err == nil {
		if e.Outcome != reprise.OutcomeDelete {
			f.broken(world.PolicyDecides, p, "its success on node %d is followed by %v", n.number, e.Outcome)
		}
		return
	}
	ended := e.Started.Add(e.Duration)
	want := n.cfg.Retry.Decide(retry.Failure{N: e.Message.Attempt, Seed: e.Message.OriginID, Ended: ended, Err: e.Err})
	passedOn := errors.Is(e.Err, context.Canceled)
	ok := true
	switch {
	case e.Outcome == reprise.OutcomeDelete:
		ok = false
	case e.Reason == retry.ReasonUnavailable: // see Config.Outage
		ok = f.outages || n.cfg.HandlerTimeout > 0
	case e.Outcome == reprise.OutcomeRetry || e.Outcome == reprise.OutcomeHold && e.Reason != retry.ReasonRelease:
		ok = want.Action == retry.ActionRetry && e.Due.Equal(want.At) && e.Reason == want.Reason
	case e.Outcome == reprise.OutcomeRelease || e.Outcome == reprise.OutcomeHold:
		ok = passedOn || want.Action == retry.ActionRelease && e.Due.Sub(ended) >= time.Second
	case e.Reason == retry.ReasonAttempts:
		ok = want.Action == retry.ActionDeadLetter || n.cfg.Retry.MaxAttempts == 0 && e.Message.Attempt >= f.receives
	case e.Reason == retry.ReasonReceives:
		ok = n.newest[e.Message.ID].nth >= f.receives // a FIFO group may come to a thousand
	case e.Reason == retry.ReasonSkip:
		ok = n.cfg.FIFO == reprise.FIFOSkip && want.Action == retry.ActionRetry
	case e.Reason == retry.ReasonRetention:
	default:
		ok = want.Action == retry.ActionDeadLetter && e.Reason == want.Reason
	}
	if !ok {
		f.broken(world.PolicyDecides, p, "attempt %d on node %d failed with %v and is followed by %v (%v), due %s; the policy says %v (%v), due %s",
			e.Message.Attempt, n.number, e.Err, e.Outcome, e.Reason, clock(e.Due), want.Action, want.Reason, clock(want.At))
	}
}

// checkRequest checks a request of n about h that begins now.
func (f *fleet) checkRequest(n *node, h *hold) {
	now := time.Now()
	if newest := n.newest[h.id]; newest != h && now.After(newest.arrived) {
		f.broken(world.NewestHandle, h.p, "node %d uses the receipt of %s, and has had another since %s", n.number, clock(h.arrived), clock(newest.arrived))
	}
	const many, within = 16, 2 * time.Second
	h.asked = append(h.asked, now)
	if before := len(h.asked) - many; before >= 0 && now.Sub(h.asked[before]) < within {
		f.broken(world.Patience, h.p, "node %d sends %d requests about it within %v", n.number, many, now.Sub(h.asked[before]))
	}
}

// checkPause checks how often receives of n fail, of which one has ended with err.
func (f *fleet) checkPause(n *node, err error) {
	if err == nil {
		n.failing = nil
		return
	}
	const many, within = 20, 30 * time.Second
	n.failing = append(n.failing, time.Now())
	if before := len(n.failing) - many; before >= 0 && time.Since(n.failing[before]) < within {
		f.broken(world.Patience, nil, "%d receives of node %d fail within %v", many, n.number, time.Since(n.failing[before]))
	}
}

// checkCopies checks what n is about to send to the queue itself. A copy tells of no
// more attempts than there can have been. It comes after its original is hidden, but
// for what SQS cannot hide so long.
func (f *fleet) checkCopies(n *node, entries []types.SendMessageBatchRequestEntry) {
	messages := f.queue.Messages()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range entries {
		p := f.parts[tokenOf(*e.MessageBody)]
		var told struct {
			Attempt   int
			NotBefore int64
			Alone     int
		}
		if err := json.Unmarshal([]byte(aws.ToString(e.MessageAttributes[reprise.HistoryAttribute].StringValue)), &told); err != nil {
			f.broken(world.HiddenFirst, p, "its copy's history: %v", err)
		}
		if most := f.mostTold(n, p); told.Attempt > most {
			f.broken(world.OnlyRunsCount, p, "node %d sends a copy that tells of %d attempts, %d can have been", n.number, told.Attempt, most)
		}
		p.alone = p.alone || told.Alone > 0
		p.failed = max(p.failed, told.Attempt) // from now on: it may run before its original is gone
		if f.leaky || f.twins {
			continue
		}
		due := time.UnixMilli(told.NotBefore)
		if most := time.Now().Add(8 * time.Hour); due.After(most) {
			due = most
		}
		hidden, unread, least := time.Time{}, !n.knows(), due // the longest, if n holds several of the lineage
		for _, m := range messages {
			if h := n.newest[m.ID]; tokenOf(m.Body) == p.token && h != nil && m.Due.After(hidden) {
				hidden, unread, least = m.Due, unread || h.unread, h.least(due)
			}
		}
		if unread {
			continue // hidden for minutes at most
		}
		if hidden.Before(least.Add(-time.Millisecond)) {
			f.broken(world.HiddenFirst, p, "node %d sends a copy due %s, the original is due %s", n.number, clock(due), clock(hidden))
		}
	}
}

// checkSettled compares what n says has become of a message with the queue.
func (f *fleet) checkSettled(n *node, p *part, e reprise.Settled, messages []messageInfo) {
	f.checkConfirmed(n, p, e)
	if f.leaky {
		return
	}
	at := slices.IndexFunc(messages, func(m messageInfo) bool { return m.ID == e.Message.ID })
	h := n.newest[e.Message.ID]
	taken := h != nil && h.arrived.Before(time.Now()) // otherwise it came at this instant, and what is lost is the one before
	if at >= 0 && e.Outcome == reprise.OutcomeLost && taken && h.failures(n) < 2 && !h.doubted && (f.fifo || !f.mute) {
		f.broken(world.NoLeaseIsLost, p, "node %d has lost it after %d failures: %v", n.number, h.failures(n), e.Err)
	}
	switch e.Outcome {
	case reprise.OutcomeDelete, reprise.OutcomeDeadLetter:
		if at >= 0 && !h.late { // a late one may have no effect
			f.broken(world.GoneIsGone, p, "node %d says %v; it is %s, due %s", n.number, e.Outcome, messages[at].State, clock(messages[at].Due))
		}
	case reprise.OutcomeRetry, reprise.OutcomeRelease, reprise.OutcomePark:
		if at >= 0 && e.Requeued && !h.late { // a late one may have no effect
			f.broken(world.GoneIsGone, p, "node %d says that a copy has taken its place; it is %s, due %s", n.number, messages[at].State, clock(messages[at].Due))
		}
		if !e.Due.After(time.Now()) || f.outages || !n.knows() || h.unread {
			return // over, perhaps woken, or hidden for a quarter of an hour at most, as long as the retention is not known
		}
		if at >= 0 && (messages[at].Due.Before(h.least(e.Due)) || messages[at].Due.After(e.Due.Add(time.Second+n.most))) {
			f.broken(world.HiddenIsHidden, p, "node %d says until %s; it is %s, due %s", n.number, clock(e.Due), messages[at].State, clock(messages[at].Due))
		}
	}
}

// checkConfirmed checks that SQS has confirmed what n says has become of a message.
func (f *fleet) checkConfirmed(n *node, p *part, e reprise.Settled) {
	h, want := n.newest[e.Message.ID], "hide"
	switch {
	case e.Outcome == reprise.OutcomeLost || !time.Now().After(h.arrived):
		return
	case e.Requeued || e.Outcome == reprise.OutcomeDelete || e.Outcome == reprise.OutcomeDeadLetter:
		want = "delete"
	}
	hidden := want == "delete" || f.outages || !n.knows() || h.unread ||
		!h.until.Before(h.least(e.Due)) && (!e.Due.After(time.Now()) || !h.until.After(e.Due.Add(time.Second+n.most)))
	if h.done != want || !hidden {
		f.broken(world.SettledBySQS, p, "node %d says %v until %s; of the receipt of %s SQS has confirmed to %s it, hidden until %s", n.number, e.Outcome, clock(e.Due), clock(h.arrived), cmp.Or(h.done, "nothing, let alone to "+want), clock(h.until))
	}
}

// checkRoom checks how many messages n holds when it has received one.
func (f *fleet) checkRoom(n *node, p *part) {
	s := n.Status()
	f.mu.Lock()
	defer f.mu.Unlock()
	places := n.widest + max(0, cmp.Or(n.cfg.Prefetch, 10))
	if f.mute && slices.ContainsFunc(f.line, func(p *part) bool { return p.alone }) {
		places++ // one whose copy is refused, and which must run alone, waits again: its place may be taken
	}
	if held := s.Running + s.Waiting; !f.fifo && !f.outages && s.Breakers == nil && held > places {
		f.broken(world.NoMoreThanRoom, p, "node %d holds %d messages, and has %d places", n.number, held, places)
	}
}

// deleted is called by n after SQS has confirmed the delete of m.
func (f *fleet) deleted(n *node, m *reprise.Message) {
	p := f.note(tokenOf(m.Body), n, "is told after the delete")
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.crashed {
		return
	}
	if h := n.newest[m.ID]; n.worked[m.ID].IsZero() || !f.leaky && (n.hooked[m.ID] || h.done != "delete") {
		f.broken(world.HooksFollow, p, "node %d calls it; worked off: %v, called before: %v, SQS has confirmed to %s it", n.number, n.worked[m.ID], n.hooked[m.ID], h.done)
	}
	n.hooked[m.ID] = !n.newest[m.ID].late
}
