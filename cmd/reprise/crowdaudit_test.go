package main_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// crowdSend is one try to send a message.
type crowdSend struct {
	x       *crowdExchange
	entry   crowdInput
	id      string // that the server gave it; empty: it has not been acknowledged, or its id is not known
	acked   bool
	refused bool
}

// crowdReceipt is a message that was received.
type crowdReceipt struct {
	x      *crowdExchange
	m      *crowdMessage
	count  int
	hidden time.Duration // for how long the receive asked
}

// crowdSettlement is a delete or a change of visibility that may have had an effect.
type crowdSettlement struct {
	x     *crowdExchange
	of    *crowdReceipt // whose handle it names
	acked bool
	until int64         // it had its effect by then, if it had one
	hides time.Duration // of a change
}

// crowdKey names a message: an id says nothing of other queues, since dead letters keep theirs.
type crowdKey struct{ queue, id string }

// crowdLife is what is known of a message in a queue: receipts in the order of the replies, the rest in that of the requests.
type crowdLife struct {
	crowdKey
	receipts         []*crowdReceipt
	deletes, changes []*crowdSettlement
}

// crowdAudit holds logs against the laws. It notes what breaks them in problems.
type crowdAudit struct {
	crowdRecord
	problems []string

	sends   map[string][]*crowdSend // by body
	lives   map[crowdKey]*crowdLife
	unknown map[string][]*crowdExchange // receives without a reply, by queue
	safe    []int64                     // of each break: what was told before is on disk
	handles map[string][]*crowdReceipt
}

// auditCrowd returns what in the record no law permits. It is a function of the record alone. All queues have been
// emptied by receives and deletes, which the record has.
func auditCrowd(r crowdRecord) (problems []string) {
	a := &crowdAudit{
		crowdRecord: r, sends: make(map[string][]*crowdSend), lives: make(map[crowdKey]*crowdLife),
		unknown: make(map[string][]*crowdExchange), handles: make(map[string][]*crowdReceipt),
	}
	slices.SortStableFunc(a.exchanges, func(x, y *crowdExchange) int { return cmp.Compare(x.asked, y.asked) })
	a.findSafe()
	for _, note := range []func(*crowdExchange){a.checkOutcome, a.noteSends, a.noteReceives, a.noteSettlements} {
		for _, x := range a.exchanges {
			note(x)
		}
	}
	for _, l := range a.lives {
		slices.SortStableFunc(l.receipts, func(r, q *crowdReceipt) int { return cmp.Compare(r.x.told, q.x.told) })
	}
	for _, key := range slices.SortedFunc(maps.Keys(a.lives), func(x, y crowdKey) int { return cmp.Or(cmp.Compare(x.queue, y.queue), cmp.Compare(x.id, y.id)) }) {
		a.checkLife(a.lives[key])
	}
	a.checkLost()
	a.checkCopies()
	a.checkTimes()
	a.checkGroups()
	a.checkDeduplication()
	a.checkCommands()
	return a.problems
}

func (a *crowdAudit) fail(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// findSafe finds, for each break, what must be on disk: everything that was told before a send or a delete began that
// was acknowledged before the break.
func (a *crowdAudit) findSafe() {
	a.safe = make([]int64, len(a.breaks))
	for _, x := range a.exchanges {
		if x.reply == nil || !strings.HasPrefix(x.action, "Send") && !strings.HasPrefix(x.action, "Delete") || len(x.reply.Failed) > 0 {
			continue
		}
		for i, b := range a.breaks {
			if x.told < b.from {
				a.safe[i] = max(a.safe[i], x.asked)
			}
		}
	}
}

// mayBeUndone reports whether a crash can have undone before until what was asked at asked and told at told, a receive or a
// change of visibility.
func (a *crowdAudit) mayBeUndone(asked, told, until int64) bool {
	for i, b := range a.breaks {
		if b.loses() && b.to > asked && b.from < until && told >= a.safe[i] {
			return true
		}
	}
	return false
}

// passed is how much time the server's clock can have counted between two times at most.
func (a *crowdAudit) passed(from, to int64) time.Duration {
	d := to - from
	for _, j := range a.jumps {
		if j.by > 0 && j.to >= from && j.from <= to {
			d += j.by
		}
	}
	return time.Duration(d)
}

// during reports whether the time of a request, or a moment more, meets one in which the server was starting, stopping,
// away or without room.
func (a *crowdAudit) during(from, to int64) bool {
	const around = int64(time.Second)
	return slices.ContainsFunc(a.breaks, func(b crowdBreak) bool { return b.from-around < to && from < b.to+around })
}

// lostBetween reports whether a crash can have undone anything between two times.
func (a *crowdAudit) lostBetween(from, to int64) bool {
	return slices.ContainsFunc(a.breaks, func(b crowdBreak) bool { return b.loses() && b.to > from && b.from < to })
}

// settledBy is when a request had its effect at the latest. Without a reply the server can have carried it out after
// the client gave up.
func settledBy(x *crowdExchange) int64 {
	switch {
	case x.told == 0:
		return math.MaxInt64
	case x.reply == nil:
		return x.told + int64(2*time.Second)
	}
	return x.told
}

// codeOfGoneLease is the one refusal that clients may meet: they settle with old handles on purpose.
const codeOfGoneLease = "InvalidParameterValue"

// checkOutcome: a request succeeds, unless the server is away or lacks room, or a lease has ended.
func (a *crowdAudit) checkOutcome(x *crowdExchange) {
	settles := strings.HasPrefix(x.action, "Delete") || strings.HasPrefix(x.action, "Change")
	switch {
	case x.told == 0 || x.code == codeCanceled:
	case x.reply == nil && (x.status == 0 || x.status >= 500):
		if !a.during(x.asked, x.told) {
			a.fail("%s: %s of %s failed while the server was up and had room: status %d, %s %s, from %s to %s", x.client, x.action, x.queue, x.status, x.code, x.message, clockTime(x.asked), clockTime(x.told))
		}
	case x.reply == nil:
		if !settles || !strings.Contains(x.code, codeOfGoneLease) {
			a.fail("%s: %s of %s was refused: status %d, %s %s", x.client, x.action, x.queue, x.status, x.code, x.message)
		}
	case strings.HasSuffix(x.action, "Batch"):
		var answered, asked []string
		for _, e := range slices.Concat(x.reply.Successful, x.reply.Failed) {
			answered = append(answered, e.ID)
		}
		for _, e := range x.input.Entries {
			asked = append(asked, e.ID)
		}
		if slices.Sort(answered); !slices.Equal(answered, slices.Sorted(slices.Values(asked))) {
			a.fail("%s: the reply to %s has the entries %q, the request %q", x.client, x.action, answered, asked)
		}
		for _, e := range x.reply.Failed {
			if (!settles || !strings.Contains(e.Code, codeOfGoneLease)) && !a.during(x.asked, x.told) {
				a.fail("%s: an entry of %s of %s was refused: %s %s", x.client, x.action, x.queue, e.Code, e.Message)
			}
		}
	}
}

// codeCanceled is the code of a request that its client has cancelled, as consumers do when they stop.
const codeCanceled = "Canceled"

// noteSends notes what a request sends, and checks what its reply says of that.
func (a *crowdAudit) noteSends(x *crowdExchange) {
	if !strings.HasPrefix(x.action, "SendMessage") {
		return
	}
	for _, e := range x.entries() {
		s := &crowdSend{x: x, entry: e, refused: x.refused(e.ID)}
		a.sends[e.MessageBody] = append(a.sends[e.MessageBody], s)
		answer, ok := x.answer(e.ID)
		if !ok {
			continue
		}
		s.id, s.acked = answer.MessageID, true
		if x.repeats {
			continue
		}
		if answer.MessageID == "" || answer.MD5OfMessageBody != md5Of(e.MessageBody) || answer.MD5OfMessageAttributes != md5OfAttributes(e.MessageAttributes) {
			a.fail("%s: the reply to the send of %.40q has the id %q and the digests %q and %q, want %q and %q", x.client, e.MessageBody, answer.MessageID,
				answer.MD5OfMessageBody, answer.MD5OfMessageAttributes, md5Of(e.MessageBody), md5OfAttributes(e.MessageAttributes))
		}
	}
}

// noteReceives notes what a receive got.
func (a *crowdAudit) noteReceives(x *crowdExchange) {
	switch {
	case x.action == "ReceiveMessage" && x.reply == nil:
		if x.status < 400 || x.status >= 500 {
			a.unknown[x.queue] = append(a.unknown[x.queue], x)
		}
	case x.action == "ReceiveMessage":
		if len(x.reply.Messages) > max(1, x.input.MaxNumberOfMessages) {
			a.fail("%s: %d messages came, %d were asked for", x.client, len(x.reply.Messages), x.input.MaxNumberOfMessages)
		}
		for i := range x.reply.Messages {
			a.noteReceipt(x, &x.reply.Messages[i])
		}
	}
}

func (a *crowdAudit) noteReceipt(x *crowdExchange, m *crowdMessage) {
	r := &crowdReceipt{x: x, m: m}
	var err error
	if r.count, err = strconv.Atoi(m.Attributes["ApproximateReceiveCount"]); err != nil || r.count < 1 {
		a.fail("%s: received %s of %s with the receive count %q", x.client, m.MessageID, x.queue, m.Attributes["ApproximateReceiveCount"])
	}
	if most := a.receives[x.queue]; most > 0 && r.count > most {
		a.fail("%s: received %s of %s for the %dth time, and at the %dth it is a dead letter", x.client, m.MessageID, x.queue, r.count, most+1)
	}
	if v := x.input.VisibilityTimeout; v != nil {
		r.hidden = time.Duration(*v) * time.Second
	}
	if m.MD5OfBody != md5Of(m.Body) {
		a.fail("%s: received %s of %s with the digest %q of its body, want %q", x.client, m.MessageID, x.queue, m.MD5OfBody, md5Of(m.Body))
	}
	l := a.life(crowdKey{x.queue, m.MessageID})
	if len(l.receipts) > 0 && l.receipts[0].m.Body != m.Body {
		a.fail("%s of %s was received with two bodies: %.60q and %.60q", m.MessageID, x.queue, l.receipts[0].m.Body, m.Body)
	}
	l.receipts = append(l.receipts, r)
	a.handles[m.ReceiptHandle] = append(a.handles[m.ReceiptHandle], r)
	a.checkOrigin(r)
}

func (a *crowdAudit) life(key crowdKey) *crowdLife {
	l := a.lives[key]
	if l == nil {
		l = &crowdLife{crowdKey: key}
		a.lives[key] = l
	}
	return l
}

// checkOrigin: what is received has been sent, to a queue from which it can have come here, with these attributes.
func (a *crowdAudit) checkOrigin(r *crowdReceipt) {
	var tried, here bool
	for _, s := range a.sends[r.m.Body] {
		if s.refused || s.x.asked > r.x.told {
			continue
		}
		tried = true
		if s.x.queue != r.x.queue && !a.leads(s.x.queue, r.x.queue) {
			continue
		}
		if here = maps.Equal(s.entry.MessageAttributes, r.m.MessageAttributes) && s.entry.MessageGroupID == r.m.Attributes["MessageGroupId"]; here {
			return
		}
	}
	if !tried {
		a.fail("%s: received %.60q from %s, which nobody had tried to send", r.x.client, r.m.Body, r.x.queue)
		return
	}
	a.fail("%s: received %.60q from %s with the attributes %v and the group %q: it was never sent so to a queue from which it could get there", r.x.client, r.m.Body, r.x.queue, r.m.MessageAttributes, r.m.Attributes["MessageGroupId"])
}

// leads reports whether messages get from one queue to another otherwise than by a send.
func (a *crowdAudit) leads(from, to string) bool {
	seen := []string{from}
	for i := 0; i < len(seen); i++ {
		for _, next := range a.routes[seen[i]] {
			if next == to {
				return true
			}
			if !slices.Contains(seen, next) {
				seen = append(seen, next)
			}
		}
	}
	return false
}

// noteSettlements notes the deletes and changes of visibility that may have had an effect.
func (a *crowdAudit) noteSettlements(x *crowdExchange) {
	deletes, changes := strings.HasPrefix(x.action, "DeleteMessage"), strings.HasPrefix(x.action, "ChangeMessage")
	if !deletes && !changes {
		return
	}
	for _, e := range x.entries() {
		if x.refused(e.ID) {
			continue
		}
		_, acked := x.answer(e.ID)
		s := &crowdSettlement{x: x, acked: acked, until: settledBy(x)}
		for _, r := range a.handles[e.ReceiptHandle] { // the latest before: after a crash a handle can come again
			if r.x.told <= x.asked+int64(time.Millisecond) { // some clients' clocks count in milliseconds
				s.of = r
			}
		}
		if s.of == nil {
			a.fail("%s: %s of %s names a receipt handle that nobody had received", x.client, x.action, x.queue)
			continue
		}
		l := a.life(crowdKey{x.queue, s.of.m.MessageID})
		if deletes {
			l.deletes = append(l.deletes, s)
			continue
		}
		if e.VisibilityTimeout != nil {
			s.hides = time.Duration(*e.VisibilityTimeout) * time.Second
		}
		l.changes = append(l.changes, s)
	}
}

func clockTime(at int64) string { return time.Unix(0, at).UTC().Format("15:04:05.000") }
