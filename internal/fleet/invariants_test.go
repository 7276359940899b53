package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/sqsserver"
)

type messageInfo = sqsserver.MessageInfo

// checkRun checks that n may run p now. The bodies are those of the earlier
// messages of its group that are in the queue.
func (f *fleet) checkRun(n *node, p *part, m *reprise.Message, before []string) {
	if m.Body != p.body || m.GroupID != p.group || !sameAttributes(m.Attributes, p.attributes) {
		f.broken(world.KnowsTheMessage, p, "%+v", m)
	}
	if f.signed && m.OriginID == forgedOrigin {
		f.broken(world.ForgedAreIgnored, p, "%+v", m)
	}
	if !n.paused.IsZero() && time.Now().After(n.paused) {
		f.broken(world.PausedIsPaused, p, "it runs on node %d, paused at %s", n.number, clock(n.paused))
	}
	if n.handlers > n.limit {
		f.broken(world.Concurrency, p, "%d handlers on node %d, %d are permitted", n.handlers, n.number, n.limit)
	}
	for _, key := range f.exclusive(m) {
		if n.running[key] > 1 {
			f.broken(world.OneAtATime, p, "%s runs %d times on node %d", key, n.running[key], n.number)
		}
	}
	for other, r := range p.runs {
		if other != n && !other.crashed && !r.ended && r.ctx.Err() == nil && !f.leaky && (r.id == m.ID || !f.twins) {
			f.broken(world.OneAnywhere, p, "it runs on node %d and on node %d", other.number, n.number)
		}
	}
	if early := time.Until(n.setTimes[m.ID]); early > 0 {
		f.broken(world.NeverEarly, p, "it runs %v early on node %d", early, n.number)
	}
	if early := time.Until(p.promised); p.promisedID == m.ID && early > 0 && !f.leaky && !f.outages {
		f.broken(world.NeverEarlyAnywhere, p, "it runs %v early on node %d", early, n.number)
	}
	if at, said := n.givenUp[m.ID]; said && time.Since(at) < 12*time.Hour { // node n remembers it
		f.broken(world.GivenUpForGood, p, "it runs again on node %d, %v later", n.number, time.Since(at))
	}
	if at, ok := n.worked[m.ID]; ok && time.Since(at) < 12*time.Hour && !f.leaky { // node n remembers it
		f.broken(world.DoneOnce, p, "it runs again on node %d", n.number)
	}
	if len(before) > 0 {
		f.broken(world.InOrder, p, "it runs on node %d before %v", n.number, before)
	}
	f.checkNumber(n, p, m)
}

// checkNumber checks the number of an attempt that begins.
func (f *fleet) checkNumber(n *node, p *part, m *reprise.Message) {
	if limit := n.cfg.Retry.MaxAttempts; m.Attempt < 1 || limit > 0 && m.Attempt > limit {
		f.broken(world.Numbered1ToMax, p, "attempt %d on node %d, %d are permitted", m.Attempt, n.number, limit)
	}
	if known := n.counted[m.ID]; known != nil && time.Since(known.last) < 12*time.Hour && m.Attempt <= known.number {
		f.broken(world.NumbersGrow, p, "attempt %d on node %d, where %d have failed", m.Attempt, n.number, known.number)
	}
	if most := f.mostAttempts(n, p, m); m.Attempt > most {
		f.broken(world.OnlyRunsCount, p, "attempt %d on node %d at receive %d and run %d, of which %d do not count: %d can have been", m.Attempt, n.number, m.Receives, p.total, p.spared, most)
	}
}

// mostAttempts is the largest number that the attempt at m which begins can have.
func (f *fleet) mostAttempts(n *node, p *part, m *reprise.Message) int {
	most := max(p.total-p.spared, p.failed+1)
	switch {
	case f.fifo:
		return most
	case m.ID != p.id: // a copy, which tells of some attempts
		return max(most, p.failed+m.Receives)
	}
	return max(most, n.cfg.Retry.Attempts(m.ID, 0, m.Receives, time.Since(m.FirstReceived)))
}

// mostTold is the largest number of attempts that a copy which n sends can tell of.
func (f *fleet) mostTold(n *node, p *part) int {
	most := max(p.total-p.spared, p.failed)
	for _, h := range n.newest {
		switch {
		case h.p != p:
		case h.id != p.id:
			most = max(most, p.failed+h.nth)
		default:
			most = max(most, n.cfg.Retry.Attempts(h.id, 0, h.nth, time.Since(h.first)))
		}
	}
	return most
}

// checkContext checks the context of a run that ends now.
func (f *fleet) checkContext(n *node, p *part, m *reprise.Message, r *spell) {
	took, h := time.Since(r.began), n.newest[m.ID]
	timeout := n.cfg.HandlerTimeout
	if r.ctx.Err() == nil {
		if late := time.Since(h.until); late > n.most { // for as long its reply has travelled
			f.broken(world.ContextsEnd, p, "on node %d its lease ended %v ago, and its context goes on", n.number, late)
		}
		if timeout > 0 && took > timeout {
			f.broken(world.ContextsEnd, p, "on node %d it takes %v, its timeout is %v, and its context goes on", n.number, took, timeout)
		}
		return
	}
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, context.DeadlineExceeded) && timeout > 0 && took >= timeout:
	case errors.Is(cause, reprise.ErrStopping) && n.stopping:
	case errors.Is(cause, reprise.ErrLeaseLost) && !f.calm:
	default:
		f.broken(world.ContextsEnd, p, "on node %d after %v of %v it ended with %v", n.number, took, timeout, cause)
	}
}

// sameAttributes compares the attributes of a message with those it was sent with.
func sameAttributes(got map[string]types.MessageAttributeValue, want []sqsserver.MessageAttribute) bool {
	for _, w := range want {
		g, ok := got[w.Name]
		if !ok || aws.ToString(g.DataType) != w.DataType || aws.ToString(g.StringValue) != w.StringValue || !bytes.Equal(g.BinaryValue, w.BinaryValue) {
			return false
		}
	}
	return len(got) == len(want)
}
