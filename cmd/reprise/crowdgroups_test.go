package main_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

func isFIFO(queue string) bool { return strings.HasSuffix(queue, ".fifo") }

// crowdPlace is a message's place in its group.
type crowdPlace struct {
	body    string
	n       int      // how many are before it
	acked   int64    // when a send of it was first acknowledged; 0: none was
	asked   int64    // when it was first tried
	deleted int64    // when a delete that was not refused was first tried; 0: none was
	numbers []string // the server's sequence numbers, from the receives: a send that was repeated may have more than one
}

// sequenceOf is the server's sequence number of a message; "": the log has none.
func sequenceOf(m *crowdMessage) string { return m.Attributes["SequenceNumber"] }

// behind reports whether the server has put p behind the message m: a first try of a send may fail, and another be sent before the
// next.
func (p *crowdPlace) behind(m *crowdMessage) bool {
	return len(p.numbers) > 0 && !slices.ContainsFunc(p.numbers, func(number string) bool { return number < sequenceOf(m) })
}

// ahead reports whether the received message m, whose place p is, is before another one in its group: by the server's numbers, if
// both have one.
func (p *crowdPlace) ahead(m *crowdMessage, other *crowdPlace, received *crowdMessage) bool {
	if mine, its := sequenceOf(m), sequenceOf(received); mine != "" && its != "" {
		return mine < its
	}
	return p.n < other.n
}

// checkGroups: in a FIFO queue, a message comes when those before it in its group have been deleted, or with
// them in one reply, and while one of the group is in flight, none behind it comes.
func (a *crowdAudit) checkGroups() {
	groups := make(map[crowdKey][]*crowdPlace) // by queue and group
	places := make(map[crowdKey]*crowdPlace)   // by queue and body
	for _, x := range a.exchanges {
		if !strings.HasPrefix(x.action, "SendMessage") || !isFIFO(x.queue) {
			continue
		}
		for _, e := range x.entries() {
			key, group := crowdKey{x.queue, e.MessageBody}, crowdKey{x.queue, e.MessageGroupID}
			p := places[key]
			if p == nil {
				p = &crowdPlace{body: e.MessageBody, n: len(groups[group]), asked: x.asked}
				places[key] = p
				groups[group] = append(groups[group], p)
			}
			if _, acked := x.answer(e.ID); acked && p.acked == 0 {
				p.acked = x.told
			}
		}
	}
	for _, l := range a.lives {
		if !isFIFO(l.queue) {
			continue
		}
		for _, r := range l.receipts {
			if p := places[crowdKey{l.queue, r.m.Body}]; p != nil && sequenceOf(r.m) != "" {
				p.numbers = append(p.numbers, sequenceOf(r.m))
			}
		}
		for _, d := range l.deletes {
			if p := places[crowdKey{l.queue, d.of.m.Body}]; p != nil && (p.deleted == 0 || d.x.asked < p.deleted) {
				p.deleted = d.x.asked
			}
		}
	}
	begun := make(map[crowdKey]int) // how many places of a group have been deleted before
	replies := make(map[crowdKey][]*crowdExchange)
	received := slices.Clone(a.exchanges)
	slices.SortStableFunc(received, func(x, y *crowdExchange) int { return cmp.Compare(x.told, y.told) })
	for _, x := range received {
		if x.action != "ReceiveMessage" || x.reply == nil || !isFIFO(x.queue) {
			continue
		}
		for i, m := range x.reply.Messages {
			group := crowdKey{x.queue, m.Attributes["MessageGroupId"]}
			all := groups[group]
			n := begun[group]
			for n < len(all) && all[n].deleted > 0 && all[n].deleted < x.told {
				n++
			}
			begun[group] = n
			a.checkTurn(x, i, all[n:], places[crowdKey{x.queue, m.Body}])
			a.checkAlone(x, &x.reply.Messages[i], group, places, replies[group])
			if len(replies[group]) == 0 || replies[group][len(replies[group])-1] != x {
				replies[group] = append(replies[group], x)
			}
		}
	}
}

// checkTurn checks that message i of a reply comes after those that are before it in its group; some that are deleted are
// left out.
func (a *crowdAudit) checkTurn(x *crowdExchange, i int, group []*crowdPlace, own *crowdPlace) {
	for _, before := range group {
		if own == nil || before == own || before.asked > own.asked {
			return
		}
		if before.acked == 0 || before.acked > own.asked || before.deleted > 0 && before.deleted < x.told || before.behind(&x.reply.Messages[i]) {
			continue
		}
		if !slices.ContainsFunc(x.reply.Messages[:i], func(m crowdMessage) bool { return m.Body == before.body }) {
			a.fail("%s: received %.60q from %s at %s before %.60q, which is before it in its group and which nobody had deleted", x.client, own.body, x.queue, clockTime(x.told), before.body)
			return
		}
	}
}

// longestCrowdLease is longer than any visibility timeout of the clients.
const longestCrowdLease = time.Minute

// checkAlone checks that none of a group was in flight when one behind it was received; earlier are the replies before. Those before
// one that is in flight may be received: they have been given back.
func (a *crowdAudit) checkAlone(x *crowdExchange, got *crowdMessage, group crowdKey, places map[crowdKey]*crowdPlace, earlier []*crowdExchange) {
	own := places[crowdKey{x.queue, got.Body}]
	for i := len(earlier) - 1; i >= 0; i-- {
		y := earlier[i]
		if own == nil || x.told-y.asked > int64(longestCrowdLease) {
			return
		}
		if y == x || y.input.VisibilityTimeout == nil || a.passed(y.asked, x.told) >= time.Duration(*y.input.VisibilityTimeout)*time.Second || a.mayBeUndone(y.asked, y.told, x.told) {
			continue
		}
		for _, m := range y.reply.Messages {
			l := a.lives[crowdKey{x.queue, m.MessageID}]
			settled := slices.ContainsFunc(l.deletes, func(d *crowdSettlement) bool { return d.x.asked < x.told }) || a.changedBetween(l, y.asked, x.told)
			before := places[crowdKey{x.queue, m.Body}]
			if m.Attributes["MessageGroupId"] == group.id && before != nil && before.ahead(&m, own, got) && !settled {
				a.fail("%s: received %.60q from group %s of %s at %s while %.60q, which is before it, was in flight, received by %s at %s", x.client, own.body, group.id, x.queue, clockTime(x.told), m.Body, y.client, clockTime(y.told))
				return
			}
		}
	}
}

// checkDeduplication: sends with the same deduplication id within five minutes by the server's clock give the same id.
func (a *crowdAudit) checkDeduplication() {
	tries := make(map[crowdKey][]*crowdSend)
	for _, x := range a.exchanges {
		for _, e := range x.entries() {
			if strings.HasPrefix(x.action, "SendMessage") && e.MessageDeduplicationID != "" {
				s := &crowdSend{x: x, entry: e}
				if answer, ok := x.answer(e.ID); ok {
					s.id = answer.MessageID
				}
				key := crowdKey{x.queue, e.MessageDeduplicationID}
				tries[key] = append(tries[key], s)
			}
		}
	}
	for key, all := range tries {
		var first *crowdSend
		for _, s := range all {
			switch {
			case s.id == "":
			case first == nil:
				first = s
			case s.id != first.id && a.passed(all[0].x.asked, s.x.told) < dedupWindow:
				a.fail("two sends to %s with the deduplication id %s gave the ids %s, at %s, and %s, at %s", key.queue, key.id, first.id, clockTime(first.x.told), s.id, clockTime(s.x.told))
			}
		}
	}
}

// exitsWith are the exit codes that the documentation gives to commands which have done what they were asked to.
var exitsWith = map[string][]int{"search": {0, 3}, "move": {0, 3}, "redrive": {0, 3}, "dead": {0, 3}}

// checkCommands: operators' commands exit as documented. While the server is away they fail with one of the documented
// codes, and a purge within a minute of another one says so.
func (a *crowdAudit) checkCommands() {
	for _, c := range a.commands {
		permitted := exitsWith[c.args[0]]
		if permitted == nil {
			permitted = []int{0}
		}
		away := a.during(c.asked, c.told)
		if away {
			permitted = []int{0, 1, 3, 4, 5}
		}
		early := c.args[0] == "purge" && c.code == 1 && strings.Contains(c.output, "less than 60 seconds ago")
		if !early && !slices.Contains(permitted, c.code) || strings.Contains(c.output, "panic:") {
			a.fail("reprise %s, from %s to %s, ended with %d: %s", strings.Join(c.args, " "), clockTime(c.asked), clockTime(c.told), c.code, fmt.Sprintf("%.600s", c.output))
		}
	}
}
