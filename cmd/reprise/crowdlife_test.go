package main_test

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// describe tells of a receipt in a problem.
func (r *crowdReceipt) describe() string {
	return r.x.client + " at " + clockTime(r.x.asked) + "-" + clockTime(r.x.told) + " for the " + strconv.Itoa(r.count) + "th time, hidden for " + r.hidden.String()
}

// checkLife holds what happened to a message in a queue against the laws about receipts.
func (a *crowdAudit) checkLife(l *crowdLife) {
	for i, q := range l.receipts {
		if i > 0 {
			r := l.receipts[i-1]
			a.checkHidden(l, r, q)
			a.checkCount(l, r, q)
		}
		a.checkChanged(l, q)
		a.checkDeleted(l, q)
	}
}

// checkHidden: a message is received again when its visibility timeout has ended by the server's clock, or somebody
// has changed it, or a crash has undone the receive.
func (a *crowdAudit) checkHidden(l *crowdLife, r, q *crowdReceipt) {
	if a.passed(r.x.asked, q.x.told) >= r.hidden || a.changedBetween(l, r.x.asked, q.x.told) || a.mayBeUndone(r.x.asked, r.x.told, q.x.told) {
		return
	}
	a.fail("%s of %s was received while it was hidden: by %s, then by %s", l.id, l.queue, r.describe(), q.describe())
}

func (a *crowdAudit) changedBetween(l *crowdLife, from, to int64) bool {
	return slices.ContainsFunc(l.changes, func(c *crowdSettlement) bool { return c.x.asked < to && c.until > from })
}

// unseen reports whether a receive of the queue, whose reply nobody got, may have got a message in that time.
func (a *crowdAudit) unseen(queue string, from, to int64) bool {
	return slices.ContainsFunc(a.unknown[queue], func(x *crowdExchange) bool { return x.asked < to && settledBy(x) > from })
}

// checkCount: the receive count grows by one each time, but for receives that a crash has undone, and those whose
// replies nobody got.
func (a *crowdAudit) checkCount(l *crowdLife, r, q *crowdReceipt) {
	switch {
	case r.x.told > q.x.asked: // at the same time
	case q.count <= r.count:
		if !a.mayBeUndone(r.x.asked, r.x.told, q.x.told) {
			a.fail("%s of %s was received with a count that does not grow: by %s, then by %s", l.id, l.queue, r.describe(), q.describe())
		}
	case q.count > r.count+1 && !a.unseen(l.queue, r.x.asked, q.x.told):
		a.fail("%s of %s was received with a count that skips others: by %s, then by %s", l.id, l.queue, r.describe(), q.describe())
	}
}

// checkChanged: if the last thing before a receive is a change of visibility with the newest handle, it holds.
func (a *crowdAudit) checkChanged(l *crowdLife, q *crowdReceipt) {
	for _, c := range l.changes {
		switch {
		case !c.acked || c.x.told >= q.x.asked || a.passed(c.x.asked, q.x.told) >= c.hides:
		case slices.ContainsFunc(l.receipts, func(r *crowdReceipt) bool {
			return r != q && a.isNewer(r, c.of, q.x.told)
		}):
		case slices.ContainsFunc(l.changes, func(o *crowdSettlement) bool { return o != c && o.until > c.x.asked && o.x.asked < q.x.told }):
		case a.mayBeUndone(c.x.asked, c.x.told, q.x.told), a.mayBeUndone(c.of.x.asked, c.of.x.told, q.x.told), a.unseen(l.queue, c.of.x.asked, q.x.told):
		default:
			a.fail("%s of %s was received by %s although %s had hidden it for %v at %s", l.id, l.queue, q.describe(), c.x.client, c.hides, clockTime(c.x.asked))
		}
	}
}

// isNewer reports whether r, and not of, can be the newest receive of their message at a time.
func (a *crowdAudit) isNewer(r, of *crowdReceipt, until int64) bool {
	return r != of && r.x.told > of.x.asked && r.x.asked < until && (r.count > of.count || a.lostBetween(of.x.asked, until))
}

// checkDeleted: nothing is received after its delete was acknowledged. A delete that names an older handle than the newest
// does nothing; the newest can be one that nobody knows.
func (a *crowdAudit) checkDeleted(l *crowdLife, q *crowdReceipt) {
	for _, d := range l.deletes {
		if !d.acked || d.x.told >= q.x.asked {
			continue
		}
		newer := slices.ContainsFunc(l.receipts, func(r *crowdReceipt) bool {
			return r != q && a.isNewer(r, d.of, d.x.told)
		})
		if !newer && !a.unseen(l.queue, d.of.x.asked, d.x.told) {
			a.fail("%s of %s was received by %s after its delete by %s was acknowledged at %s", l.id, l.queue, q.describe(), d.x.client, clockTime(d.x.told))
		}
	}
}

// isGone reports whether a delete can have removed the message: not if its handle was certainly older than the newest.
func (a *crowdAudit) isGone(l *crowdLife) bool {
	return l != nil && slices.ContainsFunc(l.deletes, func(d *crowdSettlement) bool {
		return !slices.ContainsFunc(l.receipts, func(r *crowdReceipt) bool {
			return r.count > d.of.count && r.x.told < d.x.asked && !a.lostBetween(d.of.x.asked, d.x.asked)
		})
	})
}

// checkLost: each message whose send was acknowledged has been deleted in the end, in the queue to which it was sent,
// or in one to which it can have got.
func (a *crowdAudit) checkLost() {
	last := make(map[string]*crowdReceipt) // of each body
	for _, l := range a.lives {
		for _, r := range l.receipts {
			if b := last[r.m.Body]; b == nil || b.x.told < r.x.told { // a long poll is asked long before
				last[r.m.Body] = r
			}
		}
	}
	for _, body := range slices.Sorted(maps.Keys(a.sends)) {
		for _, s := range a.sends[body] {
			if !s.acked {
				continue
			}
			key := crowdKey{s.x.queue, s.id}
			if r := last[body]; r != nil && (s.id == "" || len(a.routes[s.x.queue]) > 0) {
				key = crowdKey{r.x.queue, r.m.MessageID}
			}
			if !a.isGone(a.lives[key]) {
				a.fail("%.60q, id %s, is lost: its send to %s by %s was acknowledged at %s, and no delete can have removed it; last received: %s", body, s.id, s.x.queue, s.x.client, clockTime(s.x.told), describeLast(last[body]))
			}
		}
	}
}

func describeLast(r *crowdReceipt) string {
	if r == nil {
		return "never"
	}
	return "from " + r.x.queue + " by " + r.describe()
}

// checkCopies: a message is there once for each time that somebody tried to send it, and once in five minutes in a FIFO queue.
func (a *crowdAudit) checkCopies() {
	ids := make(map[crowdKey][]string) // of each body in each queue
	for _, l := range a.lives {
		if len(l.receipts) > 0 {
			key := crowdKey{l.queue, l.receipts[0].m.Body}
			ids[key] = append(ids[key], l.id)
		}
	}
	for key, found := range ids {
		var tries int
		var first, last int64
		routed := len(a.routes[key.queue]) > 0
		for _, s := range a.sends[key.id] {
			routed = routed || s.x.queue != key.queue || s.x.repeats
			if tries++; first == 0 {
				first = s.x.asked
			}
			last = settledBy(s.x)
		}
		if isFIFO(key.queue) && tries > 0 && a.passed(first, last) < dedupWindow {
			tries = 1
		}
		if !routed && len(found) > tries {
			slices.Sort(found)
			a.fail("%.60q is in %s %d times, and was sent %d times: %q", key.id, key.queue, len(found), tries, found)
		}
	}
}

const dedupWindow = 5 * time.Minute

// checkTimes: a delayed message comes when its delay is over by the server's clock, and that clock never goes back, but at a
// start, with the machine's.
func (a *crowdAudit) checkTimes() {
	type stamped struct {
		s  *crowdSend
		at int64
	}
	var all []stamped
	for body, sends := range a.sends {
		for _, s := range sends {
			l := a.lives[crowdKey{s.x.queue, s.id}]
			if l == nil || len(l.receipts) == 0 || len(sends) > 1 {
				continue
			}
			r := l.receipts[0]
			if delay := time.Duration(s.entry.DelaySeconds) * time.Second; a.passed(s.x.asked, r.x.told) < delay {
				a.fail("%.60q was received by %s, and was sent at %s with a delay of %v", body, r.describe(), clockTime(s.x.asked), delay)
			}
			at, err := strconv.ParseInt(r.m.Attributes["SentTimestamp"], 10, 64)
			if err != nil {
				a.fail("%.60q was received with the SentTimestamp %q", body, r.m.Attributes["SentTimestamp"])
				continue
			}
			all = append(all, stamped{s, at})
		}
	}
	begun := slices.SortedFunc(slices.Values(all), func(x, y stamped) int { return cmp.Compare(x.s.x.asked, y.s.x.asked) })
	slices.SortFunc(all, func(x, y stamped) int { return cmp.Compare(x.s.x.told, y.s.x.told) })
	var latest stamped
	next := 0
	for _, s := range begun {
		for ; next < len(all) && all[next].s.x.told < s.s.x.asked; next++ {
			if all[next].at > latest.at {
				latest = all[next]
			}
		}
		if s.at < latest.at && !a.setBack(latest.s.x.asked, s.s.x.told, latest.at-s.at) {
			a.fail("the server's clock went back by %d ms: a message sent at %s has the time %d, and one acknowledged before, at %s, %d",
				latest.at-s.at, clockTime(s.s.x.asked), s.at, clockTime(latest.s.x.told), latest.at)
		}
	}
}

// setBack reports whether a start of the server between two times can have set its clock back by so many milliseconds.
func (a *crowdAudit) setBack(from, to, by int64) bool {
	var back int64
	for _, j := range a.jumps {
		if j.from < to {
			back += max(0, -j.by)
		}
	}
	started := slices.ContainsFunc(a.breaks, func(b crowdBreak) bool { return b.kind != "low" && b.from < to && b.to > from })
	return started && by*int64(time.Millisecond) <= back+int64(time.Second)
}
