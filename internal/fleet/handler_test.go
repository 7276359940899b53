package fleet_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// part is one message of a fleet's, and what has become of it and of its copies.
// Guarded by fleet.mu.
type part struct {
	token, group string
	body         string
	attributes   []sqsserver.MessageAttribute
	id           string    // under which it was first sent, or sent again by hand
	since        time.Time // then
	handled      bool
	permanent    bool             // a handler has called it a permanent failure
	storyless    bool             // a node has logged its story, or was stopped before it had settled its last permitted receive: its dead letter goes without
	alone        bool             // a copy was sent that must run alone
	deadly       bool             // a node has taken it for one that kills, as it may where receives are lost
	total        int              // runs begun, on any node
	spared       int              // of them, those that count as no attempt
	failed       int              // the largest number of an attempt that counts as failed
	runs         map[*node]*spell // the latest on each node
	promised     time.Time        // SQS has confirmed to hide promisedID until then
	promisedID   string
	hidden       time.Time // until when a node has said that it is hidden
	hiddenID     string    // as which message
	hiddenFrom   time.Time // when the node had received it that has said so
}

// cursed reports whether the copies of p are refused.
func (p *part) cursed() bool { return len(p.body) == len(p.token)+cursedLetters }

// spell is a run of a handler.
type spell struct {
	id    string // of the message or copy
	ctx   context.Context
	began time.Time
	ended bool
}

// settledAs takes in what a node says has become of the message.
func (p *part) settledAs(n *node, e reprise.Settled) {
	if h := n.newest[e.Message.ID]; h != nil && h.id == p.hiddenID {
		if h.arrived.Before(p.hiddenFrom) {
			return // another node has received it since, and has said so before
		}
		p.hiddenFrom = h.arrived
	} else if h != nil {
		p.hiddenID, p.hiddenFrom = h.id, h.arrived
	}
	p.hidden = e.Due
	if now := time.Now(); p.hidden.Before(now) {
		p.hidden = now
	}
	p.promisedID = ""
	if e.Outcome == reprise.OutcomeRetry && time.Until(e.Due) < 11*time.Hour && n.knows() {
		p.promised, p.promisedID = e.Due, e.Message.ID
	}
}

var errUnavailable = errors.New("the warehouse is closed")

// handle is the handler of node n. What it does is drawn from the seed, the
// message and how often n has run it.
func (f *fleet) handle(ctx context.Context, n *node, m *reprise.Message) error {
	p, r, nth := f.enter(ctx, n, m)
	defer f.leave(n, p, m, r)

	random := rand.New(rand.NewPCG(f.draw(p.token, n.number, nth), 0))
	most := 500 * time.Millisecond
	if random.IntN(12) == 0 {
		most = 3 * n.cfg.Lease
		if f.timeoutsHoldUp(n) {
			most = min(most, n.cfg.HandlerTimeout-time.Second)
		}
	}
	took := time.Duration(1 + random.Int64N(int64(most)))
	if stubborn := random.IntN(10) == 0; stubborn {
		time.Sleep(took)
	} else {
		timer := time.NewTimer(took)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			time.Sleep(time.Duration(1 + random.Int64N(int64(20*time.Millisecond)))) // many end at one instant
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end(ctx, n, p, m, random)
}

// timeoutsHoldUp reports whether handlers of n that time out would keep their groups waiting, for up to 16 hours each, when
// the queue is to be emptied.
func (f *fleet) timeoutsHoldUp(n *node) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fifo && f.mended && n.cfg.HandlerTimeout > 0
}

// end draws how a run ends.
func (f *fleet) end(ctx context.Context, n *node, p *part, m *reprise.Message, random *rand.Rand) error {
	heard := ctx.Err() == nil // otherwise nobody listens
	what := random.IntN(14)
	switch {
	case f.mended && p.permanent:
		what = 6
	case f.mended:
		what = 13
	case f.outage:
		return reprise.Unavailable(errUnavailable)
	}
	switch what {
	case 0:
		panic("burst")
	case 1:
		runtime.Goexit()
	case 2, 3:
		return errUnavailable
	case 4:
		if heard {
			n.setTimes[m.ID] = time.Now().Add(20 * time.Second)
		}
		return reprise.RetryAfter(20*time.Second, errUnavailable)
	case 5:
		return reprise.Release(0, errUnavailable)
	case 6:
		p.permanent = true
		if heard {
			n.givenUp[m.ID] = time.Now()
		}
		return reprise.Permanent(errUnavailable)
	}
	n.done[p.token], n.worked[m.ID] = true, time.Now()
	p.handled = p.handled || !n.crashed // nobody may know of a run that has outlived its process
	return nil
}

// enter begins a run of m on n and checks that it may run.
func (f *fleet) enter(ctx context.Context, n *node, m *reprise.Message) (p *part, r *spell, nth int) {
	if f.note(tokenOf(m.Body), n, "attempt %d begins", m.Attempt) == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.broken(world.KnowsTheMessage, nil, "%+v", m)
		runtime.Goexit()
	}
	var before []string // bodies of the group's earlier messages
	if f.fifo {
		before = f.bodiesBefore(m.ID, m.GroupID)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p = f.parts[tokenOf(m.Body)]
	p.total++
	n.handlers++
	n.begun = time.Now()
	delete(n.kept, m.ID)
	n.ran[p.token]++
	for _, key := range f.exclusive(m) {
		n.running[key]++
	}
	if !n.crashed {
		f.checkRun(n, p, m, before)
	}
	r = &spell{id: m.ID, ctx: ctx, began: time.Now()}
	p.runs[n] = r
	return p, r, n.ran[p.token]
}

// bodiesBefore returns the bodies of the messages of a group that are in the queue
// and were sent before the message with the given id.
func (f *fleet) bodiesBefore(id, group string) (bodies []string) {
	messages := f.queue.Messages()
	at := slices.IndexFunc(messages, func(m messageInfo) bool { return m.ID == id })
	if at < 0 {
		return nil // it has gone meanwhile: its lease is lost
	}
	for _, m := range messages {
		if m.Group == group && m.Sequence < messages[at].Sequence {
			bodies = append(bodies, strings.TrimRight(m.Body, "x"))
		}
	}
	return bodies
}

// leave ends a run of m on n.
func (f *fleet) leave(n *node, p *part, m *reprise.Message, r *spell) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.handlers--
	n.limit = max(n.wanted, min(n.limit, n.handlers))
	n.ended[m.ID] = time.Now()
	r.ended = true
	if !n.crashed {
		f.checkContext(n, p, m, r)
	}
	for _, key := range f.exclusive(m) {
		n.running[key]--
	}
}

// exclusive returns what a consumer may run only once at a time.
func (f *fleet) exclusive(m *reprise.Message) []string {
	if f.fifo {
		return []string{m.ID, m.GroupID}
	}
	return []string{m.ID}
}
