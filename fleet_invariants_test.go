package reprise_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

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
	oneAtATime         = "a consumer runs a message, and a FIFO group, once at a time"
	oneAnywhere        = "no two consumers run a message at once while both have a lease on it"
	concurrency        = "no more handlers run at once than the concurrency permits"
	numbered1ToMax     = "attempts are numbered from 1, to no more than MaxAttempts and, before there is a copy, the receives or the runs"
	numbersGrow        = "an attempt's number is larger than those that have failed in the same process and were not followed by a delete"
	onlyRunsCount      = "on FIFO queues an attempt's number is at most the number of runs"
	knowsTheMessage    = "what is run is what was sent"
	inOrder            = "no message of a FIFO group runs while an earlier one is in the queue"
	oneConversation    = "there is one request about a message at a time"
	leavesOthersAlone  = "the visibility of a message is not changed after the end of its lease"
	deletesWhatIsDone  = "a consumer deletes what it has done, and what SQS has confirmed a copy of"
	goneIsGone         = "what a consumer says is deleted is no longer in the queue"
	hiddenIsHidden     = "what a consumer says is hidden is hidden as long as it says"
	everyOneCounted    = "each delivery is counted as a duplicate or with what became of it"
	nothingHeld        = "nothing is held and nobody receives after a drain"
	nothingLeased      = "in calm, no lease is left after a drain"
	nothingUnsettled   = "in calm, what was finished in time is settled in time"
	noLeaseIsLost      = "in calm, no lease is lost"
	fewCalls           = "in calm, calls are bounded by what there is to do"
	withinBudget       = "Run returns within the stop budget"
	saysHowItEnded     = "Run returns nil after a clean drain, otherwise ErrDrainTimeout"
	nothingIsLost      = "each message is handled, or dead-lettered with its story"
	storiesAreTrue     = "a dead letter's story is true"
	nothingIsLeft      = "when the faults have ended, the queue is worked off"
)

type messageInfo = sqsserver.MessageInfo

// checkRun checks that n may run p now. The bodies are those of the earlier
// messages of its group that are in the queue.
func (f *fleet) checkRun(n *node, p *part, m *reprise.Message, before []string) {
	if !strings.HasPrefix(m.Body, p.token) || f.fifo && m.GroupID != p.group {
		f.broken(knowsTheMessage, p, "%+v", m)
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
	if len(before) > 0 {
		f.broken(inOrder, p, "it runs on node %d before %v", n.number, before)
	}
	f.checkNumber(n, p, m)
}

// checkNumber checks the number of an attempt that begins.
func (f *fleet) checkNumber(n *node, p *part, m *reprise.Message) {
	if limit := n.cfg.Retry.MaxAttempts; m.Attempt < 1 || m.ID == p.id && m.Attempt > max(m.Receives, p.total) || limit > 0 && m.Attempt > limit {
		f.broken(numbered1ToMax, p, "attempt %d at receive %d on node %d, %d are permitted", m.Attempt, m.Receives, n.number, limit)
	}
	if known := n.counted[m.ID]; known != nil && time.Since(known.last) < 12*time.Hour && m.Attempt <= known.number {
		f.broken(numbersGrow, p, "attempt %d on node %d, where %d have failed", m.Attempt, n.number, known.number)
	}
	if f.fifo && m.Attempt > p.total {
		f.broken(onlyRunsCount, p, "attempt %d on node %d at run %d", m.Attempt, n.number, p.total)
	}
}

// checkSettled compares what n says has become of a message with the queue.
func (f *fleet) checkSettled(n *node, p *part, e reprise.Settled, messages []messageInfo) {
	if f.calm && e.Outcome == reprise.OutcomeLost {
		f.broken(noLeaseIsLost, p, "node %d has lost it: %v", n.number, e.Err)
	}
	if f.leaky {
		return
	}
	at := slices.IndexFunc(messages, func(m messageInfo) bool { return m.ID == e.Message.ID })
	switch e.Outcome {
	case reprise.OutcomeDelete, reprise.OutcomeDeadLetter:
		if at >= 0 {
			f.broken(goneIsGone, p, "node %d says %v; it is %s, due %s", n.number, e.Outcome, messages[at].State, clock(messages[at].Due))
		}
	case reprise.OutcomeRetry, reprise.OutcomeRelease:
		if wait := time.Until(e.Due); wait <= 0 || wait > 11*time.Hour || f.outages {
			return // over, longer than SQS hides a message at a time, or perhaps woken
		}
		if at >= 0 && !e.Requeued && messages[at].Due.Before(e.Due) {
			f.broken(hiddenIsHidden, p, "node %d says until %s; it is %s, due %s", n.number, clock(e.Due), messages[at].State, clock(messages[at].Due))
		}
	}
}

// checkUnsettled checks the messages that n has left behind.
func (f *fleet) checkUnsettled(n *node, report reprise.Report) {
	if !f.calm {
		return
	}
	for _, id := range report.Unsettled {
		if since := time.Since(n.ended[id]); since > 3*time.Second {
			f.broken(nothingUnsettled, nil, "%s was finished on node %d %v before the end", id, n.number, since)
		}
	}
}

// checkCalls checks how many requests n has made.
func (f *fleet) checkCalls(n *node, report reprise.Report) {
	if !f.calm {
		return
	}
	calls, c := report.Calls, report.Counts
	up := time.Since(n.started)
	for _, kind := range []struct {
		name        string
		made, bound int64
	}{
		{"receives", calls.Receives, 2 + 2*c.Received + int64(up/(19*time.Second))},
		{"deletes", calls.Deletes, c.Deleted + c.DeadLettered + c.Requeued},
		{"sends", calls.Sends, c.DeadLettered + 2*c.Kept + c.Requeued + 2*int64(len(report.Unsettled))},
		{"visibility changes", calls.Visibilities, accountedFor(c) + int64(len(report.Unsettled))},
		{"heartbeats", calls.Heartbeats, 4 * (1 + c.Received) * (1 + int64(up/n.cfg.Lease))},
		{"attribute requests", calls.Attributes, 4},
	} {
		if kind.made > kind.bound {
			f.broken(fewCalls, nil, "node %d has made %d %s, %d would do; %+v", n.number, kind.made, kind.name, kind.bound, c)
		}
	}
}

// accountedFor is how many deliveries c says something about.
func accountedFor(c reprise.Counts) int64 {
	return c.Duplicates + c.Deleted + c.Retried + c.Released + c.Parked + c.DeadLettered + c.Kept + c.Lost
}

// checkNothingLeased checks, when all nodes have stopped, that messages are hidden
// only because they are to come again later.
func (f *fleet) checkNothingLeased() {
	messages := f.queue.Messages()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.calm || f.stranded {
		return
	}
	for _, m := range messages {
		p := f.parts[tokenOf(m.Body)]
		if m.Due.After(time.Now()) && m.Due.After(p.hidden.Add(3*time.Second)) {
			f.broken(nothingLeased, p, "it is hidden until %s", clock(m.Due))
		}
	}
}

// checkEnd checks what has become of the messages.
func (f *fleet) checkEnd() {
	left := make(map[string]bool)
	for _, m := range f.queue.Messages() {
		left[tokenOf(m.Body)] = true
		if f.mustGo(m) {
			f.accuse(nothingIsLeft, f.parts[tokenOf(m.Body)], "it is %s, due %s", m.State, clock(m.Due))
		}
	}
	told := make(map[string]bool)
	for _, m := range f.dead.Messages() {
		told[tokenOf(m.Body)] = true
		f.checkStory(m)
	}
	for _, p := range f.line {
		if !p.handled && !told[p.token] && !left[p.token] {
			f.accuse(nothingIsLost, p, "it is gone")
		}
	}
}

// checkStory checks a dead letter.
func (f *fleet) checkStory(m messageInfo) {
	p := f.parts[tokenOf(m.Body)]
	story, told := storyIn(m)
	switch {
	case !told && m.Source != "" && (!f.calm || len(m.Body) > unsendable):
		// SQS has moved it: its last permitted receiver crashed, lost it, or could not.
	case !told:
		f.accuse(storiesAreTrue, p, "it has none")
	case story.Origin != p.id && !f.jumped || story.Source != f.queue.ARN() && story.Source != f.queue.URL():
		f.accuse(storiesAreTrue, p, "it was %s in %s: %+v", p.id, f.queue.ARN(), story)
	case story.Reason == "permanent" && !p.permanent, story.Reason == "attempts" && !f.mayEnd && story.Receives < f.receives:
		f.accuse(storiesAreTrue, p, "the reason is wrong: %+v", story)
	case f.fifo && story.Attempts > p.total:
		f.accuse(storiesAreTrue, p, "there were %d runs: %+v", p.total, story)
	}
}

// storyIn returns the story of a dead letter, if it has one.
func storyIn(m messageInfo) (s reprise.Story, told bool) {
	for _, a := range m.Attributes {
		if a.Name == reprise.StoryAttribute {
			return s, json.Unmarshal([]byte(a.StringValue), &s) == nil
		}
	}
	return s, false
}

// event is something that happened.
type event struct {
	at    time.Time
	token string // empty: to no message
	node  int    // 0: none
	text  string
}

func (e event) String() string {
	return fmt.Sprintf("%s node %d %s %s", clock(e.at), e.node, e.token, e.text)
}

// note adds an event to the history, and returns the message that it is about.
func (f *fleet) note(token string, n *node, format string, args ...any) *part {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log(token, n, format, args...)
	return f.parts[token]
}

// log is note for a caller that holds f.mu. A dead process has no history.
func (f *fleet) log(token string, n *node, format string, args ...any) {
	if !n.crashed {
		f.events = append(f.events, event{time.Now(), token, n.number, fmt.Sprintf(format, args...)})
	}
}

// record returns what the fleet leaves behind. What happened at one instant is put
// into one order: it has none.
func (f *fleet) record() record {
	r := record{lived: time.Since(f.began), messages: len(f.line)}
	for _, p := range f.line {
		r.runs += p.total
	}
	slices.SortStableFunc(f.events, func(a, b event) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.node, b.node), cmp.Compare(a.token, b.token), cmp.Compare(a.text, b.text))
	})
	h := fnv.New64a()
	for _, e := range f.events {
		line := fmt.Sprint(e.at.UnixNano(), " ", e)
		fmt.Fprintln(h, line)
		r.events = append(r.events, line)
	}
	r.trace = h.Sum64()
	return r
}

// accuse is broken for a caller that does not hold f.mu.
func (f *fleet) accuse(invariant string, p *part, format string, args ...any) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken(invariant, p, format, args...)
}

// broken fails the test with an invariant that does not hold, the first time, and
// the history of the message concerned, if it is one.
func (f *fleet) broken(invariant string, p *part, format string, args ...any) {
	f.t.Helper()
	if f.guilty[invariant] {
		return
	}
	f.guilty[invariant] = true
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks: %s\n\tat %s: %s\n\tfifo %v, receives %d, calm %v, leaky %v, faults %+v, redeliveries %d %%", f.seed, invariant, clock(time.Now()), fmt.Sprintf(format, args...), f.fifo, f.receives, f.calm, f.leaky, f.faults, f.twice)
	token := ""
	if p != nil {
		token = p.token
		fmt.Fprintf(&b, "\n\tmessage %s:", token)
	}
	var lines []string
	for _, e := range f.events {
		if e.token == token || e.token == "" {
			lines = append(lines, e.String())
		}
	}
	const shown = 60
	fmt.Fprintf(&b, "\n\t\t%s", strings.Join(lines[max(0, len(lines)-shown):], "\n\t\t"))
	f.t.Error(b.String())
}
