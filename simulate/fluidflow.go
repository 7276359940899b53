package simulate

import "math"

// amount is a number of messages, and the sum of the times at which they were sent, in seconds.
type amount struct{ n, sent float64 }

func (a amount) scaled(by float64) amount { return amount{a.n * by, a.sent * by} }

// negligible is a number of messages that may be forgotten.
const negligible = 1e-9

// calendar has what happens in the steps to come, as the differences of one step to the next: so what
// is spread over many steps costs no more than what happens in one.
type calendar struct {
	diff []amount // a ring
	rate amount   // of the present step
}

// reach makes room for so many steps.
func (c *calendar) reach(now, steps int) {
	if steps < len(c.diff) {
		return
	}
	size := 8
	for size <= steps {
		size *= 2
	}
	diff := make([]amount, size)
	for k := range c.diff {
		diff[(now+k)&(size-1)] = c.diff[(now+k)&(len(c.diff)-1)]
	}
	c.diff = diff
}

// spread has a happen evenly from lo to hi, which count in steps from the start of step now.
func (c *calendar) spread(now int, a amount, lo, hi float64) {
	c.reach(now, int(hi)+2)
	a = a.scaled(1 / (hi - lo))
	c.edge(now, a, lo)
	c.edge(now, a.scaled(-1), hi)
}

func (c *calendar) edge(now int, a amount, at float64) {
	whole, part := math.Modf(at)
	k, mask := now+int(whole), len(c.diff)-1
	before, after := &c.diff[k&mask], &c.diff[(k+1)&mask]
	before.n += a.n * (1 - part)
	before.sent += a.sent * (1 - part)
	after.n += a.n * part
	after.sent += a.sent * part
}

// begins has n happen so many seconds after instants of step now.
func (c *calendar) begins(now int, step, n, after float64) {
	if n > 0 {
		c.spread(now, amount{n: n}, after/step, after/step+1)
	}
}

// next is what happens in step now.
func (c *calendar) next(now int) amount {
	if len(c.diff) == 0 {
		return amount{}
	}
	d := c.diff[now&(len(c.diff)-1)]
	return amount{c.rate.n + d.n, c.rate.sent + d.sent}
}

// advance takes out what happens in step now.
func (c *calendar) advance(now int) amount {
	if len(c.diff) == 0 {
		return amount{}
	}
	c.rate = c.next(now)
	c.diff[now&(len(c.diff)-1)] = amount{}
	return c.rate
}

// cell has the messages of an era and a class that wait for one attempt.
type cell struct {
	due calendar
	all amount
}

// waits adds messages whose attempt begins in step now and fails after so many seconds, and which wait
// as l says.
func (c *cell) waits(now int, step float64, m amount, takes float64, l *law) {
	c.all.n += m.n
	c.all.sent += m.sent
	for _, s := range l.waits {
		lo, hi := (takes+s.least)/step, (takes+s.most)/step
		if hi-lo < 1 { // the instants of the step spread it more than the policy does
			lo = (lo+hi)/2 - 0.5
			hi = lo + 1
		}
		lo, hi = lo+0.5, hi+0.5
		if lo < 1 {
			lo, hi = 1, max(hi, 2)
		}
		c.due.spread(now, m.scaled(s.share), lo, hi)
	}
}

// forget empties the cell.
func (c *cell) forget() {
	clear(c.due.diff)
	c.due.rate, c.all = amount{}, amount{}
}

// cohorts are the visible messages, in the order in which they became visible.
type cohorts struct {
	all   []cohort // from first on
	first int
	total float64
	spare [][]part
	place []place // of each cell in the newest cohort
	lists int     // of parts of a newest cohort, so far
}

// cohort has what became visible in a step: one part for each cell.
type cohort struct {
	step  int
	total float64
	parts []part
}

type part struct {
	cell int
	amount
}

// place is where the part of a cell is, if the list is the present one.
type place struct{ list, at int }

// begin has what is added from now on belong to the given step.
func (q *cohorts) begin(step int) {
	q.lists++
	if n := len(q.all); n > q.first && q.all[n-1].total <= negligible {
		c := &q.all[n-1]
		q.total -= c.total
		*c = cohort{step: step, parts: c.parts[:0]}
		return
	}
	if q.first > 1024 && q.first > len(q.all)/2 {
		q.all = q.all[:copy(q.all, q.all[q.first:])]
		q.first = 0
	}
	q.all = append(q.all, cohort{step: step, parts: q.unused()})
}

// unused is an empty list of parts, with room if there is one.
func (q *cohorts) unused() (parts []part) {
	if n := len(q.spare); n > 0 {
		parts, q.spare = q.spare[n-1], q.spare[:n-1]
	}
	return parts
}

// add adds messages to the newest cohort.
func (q *cohorts) add(cell int, a amount) {
	if a.n <= 0 {
		return
	}
	if cell >= len(q.place) {
		q.place = append(q.place, make([]place, cell+1-len(q.place))...)
	}
	c, p := &q.all[len(q.all)-1], &q.place[cell]
	if p.list == q.lists {
		one := &c.parts[p.at]
		one.n += a.n
		one.sent += a.sent
	} else {
		*p = place{q.lists, len(c.parts)}
		c.parts = append(c.parts, part{cell, a})
	}
	c.total += a.n
	q.total += a.n
}

// oldest is the step of the oldest cohort that has messages; that of the newest, if none has.
func (q *cohorts) oldest() int {
	return q.all[q.first].step
}

// take takes n messages, the oldest first; only those of the oldest cohort if one is set. do may add
// messages.
func (q *cohorts) take(n float64, one bool, do func(cell int, a amount)) {
	for n > negligible && q.total > 0 {
		c := &q.all[q.first]
		parts, had := c.parts, c.total
		share, newest := min(1, n/max(had, negligible)), q.first+1 == len(q.all)
		c.parts, c.total = nil, 0
		q.total -= had
		if newest {
			q.lists++
			c.parts = q.unused()
		}
		kept := parts[:0]
		for _, p := range parts {
			if p.n > 0 {
				do(p.cell, p.scaled(share))
			}
			if p.amount = p.scaled(1 - share); p.n > 0 {
				kept = append(kept, p)
			}
		}
		switch {
		case newest: // do may have added to it
			for _, p := range kept {
				q.add(p.cell, p.amount)
			}
			q.spare = append(q.spare, parts[:0])
			if q.total = max(q.total, 0); len(q.all)-q.first == 1 {
				q.total = c.total
			}
			return
		case share < 1:
			c.parts, c.total = kept, had*(1-share)
			q.total += c.total
			return
		}
		q.spare = append(q.spare, parts[:0])
		q.first++
		if n -= had; one {
			return
		}
	}
}
