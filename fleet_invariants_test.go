package reprise_test

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// The invariants of a fleet. Those about what SQS has confirmed do not hold while
// it breaks its word on purpose (fleet.leaky); those that say "in calm" hold where
// nothing goes wrong but handlers.
const (
	neverEarly         = "a consumer does not run a message before the time that a handler of its own has set"
	neverEarlyAnywhere = "nobody runs a message before the time until which SQS has confirmed to hide it"
	givenUpForGood     = "a consumer does not run a message again that a handler of its own has called a permanent failure"
	doneOnce           = "a consumer does not run a message again that a handler of its own has worked off"
	oneAtATime         = "a consumer runs a message, and a FIFO group, once at a time"
	oneAnywhere        = "no two consumers run a message at once while both have a lease on it"
	concurrency        = "no more handlers run at once than the concurrency permits"
	pausedIsPaused     = "no handler starts on a paused consumer"
	knowsTheMessage    = "what is run, copied and dead-lettered is what was sent"
	inOrder            = "no message of a FIFO group runs while an earlier one is in the queue"
	contextsEnd        = "a handler's context ends with its lease and after its timeout, and says why it ends"

	numbered1ToMax = "attempts are numbered from 1 to no more than MaxAttempts"
	numbersGrow    = "an attempt's number is larger than those that have failed in the same process and were not followed by a delete"
	onlyRunsCount  = "an attempt's number is at most the number of runs that count, or of those that fit into the time"
	policyDecides  = "what follows an attempt is what the policy says of its error"

	noMoreThanRoom    = "a consumer holds no more messages than it has places for"
	oneConversation   = "there is one request about a message at a time"
	newestHandle      = "a request names the newest receipt that its consumer has"
	leavesOthersAlone = "the visibility of a message is not changed after the end of its lease"
	deletesWhatIsDone = "a consumer deletes what it has done, and what SQS has confirmed a copy of"
	hiddenFirst       = "a copy is sent when its original is hidden until the copy is due"
	patience          = "what has failed is tried again after a pause"

	settledBySQS   = "what a consumer says is settled, SQS has confirmed for the newest receipt"
	goneIsGone     = "what a consumer says is deleted is no longer in the queue"
	hiddenIsHidden = "what a consumer says is hidden is hidden as long as it says, and a second more at most"
	hooksFollow    = "AfterDelete is called once for what was worked off, when SQS has confirmed its delete"
	noLeaseIsLost  = "no lease is lost before two requests to renew it have failed"

	everyOneCounted  = "each delivery is counted, and told, as a duplicate or with what became of it"
	nothingHeld      = "nothing is held and nobody receives after a drain"
	nothingLeased    = "in calm, no lease is left after a drain"
	nothingUnsettled = "in calm, what was finished in time is settled in time"
	fewCalls         = "in calm, calls are bounded by what there is to do"
	withinBudget     = "Run returns within the stop budget"
	saysHowItEnded   = "Run returns nil after a clean drain, otherwise ErrDrainTimeout"

	probesGoOn = "while an outage keeps messages from their handlers, one is started every two minutes at least"
	outagesEnd = "ten minutes after an outage no breaker is open, half-open or ramping"

	newOnesGoOn = "a new message is run within an hour when the faults have ended, whatever else is in the queue"

	nothingIsLost  = "each message is handled, or dead-lettered with its story"
	storiesAreTrue = "a dead letter's story is true"
	nothingIsLeft  = "when the faults have ended, the queue is worked off"
)

type messageInfo = sqsserver.MessageInfo

// checkRun checks that n may run p now. The bodies are those of the earlier
// messages of its group that are in the queue.
func (f *fleet) checkRun(n *node, p *part, m *reprise.Message, before []string) {
	if m.Body != p.body || m.GroupID != p.group || !sameAttributes(m.Attributes, p.attributes) {
		f.broken(knowsTheMessage, p, "%+v", m)
	}
	if !n.paused.IsZero() && time.Now().After(n.paused) {
		f.broken(pausedIsPaused, p, "it runs on node %d, paused at %s", n.number, clock(n.paused))
	}
	if n.handlers > n.limit {
		f.broken(concurrency, p, "%d handlers on node %d, %d are permitted", n.handlers, n.number, n.limit)
	}
	for _, key := range f.exclusive(m) {
		if n.running[key] > 1 {
			f.broken(oneAtATime, p, "%s runs %d times on node %d", key, n.running[key], n.number)
		}
	}
	for other, r := range p.runs {
		if other != n && !other.crashed && !r.ended && r.ctx.Err() == nil && !f.leaky && (r.id == m.ID || !f.twins) {
			f.broken(oneAnywhere, p, "it runs on node %d and on node %d", other.number, n.number)
		}
	}
	if early := time.Until(n.setTimes[m.ID]); early > 0 {
		f.broken(neverEarly, p, "it runs %v early on node %d", early, n.number)
	}
	if early := time.Until(p.promised); p.promisedID == m.ID && early > 0 && !f.leaky && !f.outages {
		f.broken(neverEarlyAnywhere, p, "it runs %v early on node %d", early, n.number)
	}
	if n.givenUp[m.ID] {
		f.broken(givenUpForGood, p, "it runs again on node %d", n.number)
	}
	if n.worked[m.ID] && !f.leaky {
		f.broken(doneOnce, p, "it runs again on node %d", n.number)
	}
	if len(before) > 0 {
		f.broken(inOrder, p, "it runs on node %d before %v", n.number, before)
	}
	f.checkNumber(n, p, m)
}

// checkNumber checks the number of an attempt that begins.
func (f *fleet) checkNumber(n *node, p *part, m *reprise.Message) {
	if limit := n.cfg.Retry.MaxAttempts; m.Attempt < 1 || limit > 0 && m.Attempt > limit {
		f.broken(numbered1ToMax, p, "attempt %d on node %d, %d are permitted", m.Attempt, n.number, limit)
	}
	if known := n.counted[m.ID]; known != nil && time.Since(known.last) < 12*time.Hour && m.Attempt <= known.number {
		f.broken(numbersGrow, p, "attempt %d on node %d, where %d have failed", m.Attempt, n.number, known.number)
	}
	if most := f.mostAttempts(n, p, m); m.Attempt > most {
		f.broken(onlyRunsCount, p, "attempt %d on node %d at receive %d and run %d, of which %d do not count: %d can have been", m.Attempt, n.number, m.Receives, p.total, p.spared, most)
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
			f.broken(contextsEnd, p, "on node %d its lease ended %v ago, and its context goes on", n.number, late)
		}
		if timeout > 0 && took > timeout {
			f.broken(contextsEnd, p, "on node %d it takes %v, its timeout is %v, and its context goes on", n.number, took, timeout)
		}
		return
	}
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, context.DeadlineExceeded) && timeout > 0 && took >= timeout:
	case errors.Is(cause, reprise.ErrStopping) && n.stopping:
	case errors.Is(cause, reprise.ErrLeaseLost) && !f.calm:
	default:
		f.broken(contextsEnd, p, "on node %d after %v of %v it ended with %v", n.number, took, timeout, cause)
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
