package stranger_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
)

// callUntil returns when a call of a handler was over, for what it could disturb.
func (f *facts) callUntil(c *call) time.Duration {
	if l := f.r.processes[c.process]; l.crashed && (c.ended < 0 || c.ended > l.until) {
		return max(c.began, l.until)
	}
	if c.ended < 0 {
		return f.r.over
	}
	return c.ended
}

// mostAtOnce returns the largest number of calls at once, and when that was.
func (f *facts) mostAtOnce(of func(c *call) bool) (most int, when time.Duration) {
	type edge struct {
		at   time.Duration
		step int
	}
	var edges []edge
	for _, c := range f.r.calls {
		if until := f.callUntil(c); of(c) && until > c.began {
			edges = append(edges, edge{c.began, 1}, edge{until, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	n := 0
	for _, e := range edges {
		if n += e.step; n > most {
			most, when = n, e.at
		}
	}
	return most, when
}

func (s *scenario) does(ops ...operation) bool {
	return slices.ContainsFunc(s.Acts, func(a act) bool { return slices.Contains(ops, a.Do) })
}

// poolsHold holds that a pool runs no more handlers than it has places, says what it does, and stops in time.
func poolsHold(f *facts) (how []string) {
	for p, l := range f.r.processes {
		v := l.settings
		if !v.Pooled {
			continue
		}
		if most, when := f.mostAtOnce(func(c *call) bool { return c.process == p }); most > v.places() && !f.s.does(doSetPlaces) {
			how = append(how, fmt.Sprintf("the pool of process %d ran %d handlers at %v, and has %d places", p, most, when, v.places()))
		}
		for _, status := range l.pools {
			sum := 0
			for _, q := range status.Queues {
				sum += q.Handlers
			}
			inOrder := slices.IsSortedFunc(status.Queues, func(a, b reprise.PoolQueue) int { return cmp.Compare(b.Share.Priority, a.Share.Priority) })
			if !inOrder || sum != status.Handlers {
				how = append(how, fmt.Sprintf("the pool of process %d says %+v", p, status))
				break
			}
		}
		for _, end := range l.neighbours {
			budget := cmp.Or(v.StopBudget, 25*time.Second)
			if end.took > budget || end.err == nil && !end.report.Drained() {
				how = append(how, fmt.Sprintf("process %d: neighbour %d took %v of %v to stop, and ended with %v: %v", p, end.neighbour, end.took, budget, end.err, end.report))
			}
		}
	}
	return how
}

// turn is the time in which a message was ready in its pool: received, and not started yet.
type turn struct{ ready, began time.Duration }

// turns returns those of the queues of a pool whose messages are ready as soon as they are received, by queue: -1, and the
// numbers of neighbours.
func (f *facts) turns(process int) map[int][]turn {
	l := f.r.processes[process]
	type message struct {
		queue int
		id    string
	}
	first := make(map[message]time.Duration)
	for _, r := range f.r.runs {
		if m := (message{-1, r.id}); r.process == process && r.receives == 1 && r.attempt == 1 {
			if _, again := first[m]; !again {
				first[m] = r.began
			}
		}
	}
	for _, r := range f.r.errands {
		if m := (message{r.neighbour, r.id}); r.process == process && r.receives == 1 {
			if _, again := first[m]; !again {
				first[m] = r.began
			}
		}
	}
	all := make(map[int][]turn)
	resized := f.s.does(doSetPlaces) // a queue's own limit may be lower then
	for _, a := range f.r.arrivals {
		if a.process != process || a.duplicate || a.receives != 1 || a.attempt != 1 {
			continue
		}
		if v := l.settings; a.queue < 0 && (!f.calm || v.Batch || v.Lane || v.Rate > 0 || f.s.Queue.FIFO || v.Concurrency > 0 && (resized || v.Concurrency < v.places())) {
			continue
		}
		if a.queue >= 0 {
			if n := f.s.Neighbours[a.queue]; n.FIFO || n.Concurrency > 0 && (resized || n.Concurrency < l.settings.places()) {
				continue
			}
		}
		if began, ok := first[message{a.queue, a.id}]; ok {
			all[a.queue] = append(all[a.queue], turn{a.at, began})
		}
	}
	return all
}

// shareOf returns the share of a queue of a process's pool.
func (f *facts) shareOf(process, queue int) reprise.Share {
	if queue >= 0 {
		return f.s.Neighbours[queue].Share
	}
	return f.r.processes[process].settings.Share
}

// takesTurns reports whether a process has a pool whose turns can be judged: no message is suspected to have killed a process, and
// runs alone.
func (f *facts) takesTurns(l *life) bool { return l.settings.Pooled && len(f.crashes) == 0 }

// prioritiesAreStrict holds that no handler starts while a message of a higher priority is ready.
func prioritiesAreStrict(f *facts) (how []string) {
	for p, l := range f.r.processes {
		if !f.takesTurns(l) {
			continue
		}
		all := f.turns(p)
		for _, c := range f.r.calls {
			if c.process != p || c.queue < 0 && l.settings.Lane || l.stopped > 0 && c.began >= l.stopped {
				continue
			}
			for queue, turns := range all {
				if f.shareOf(p, queue).Priority <= f.shareOf(p, c.queue).Priority {
					continue
				}
				if i := slices.IndexFunc(turns, func(t turn) bool { return t.ready < c.began && t.began > c.began }); i >= 0 {
					how = append(how, fmt.Sprintf("process %d started a handler of queue %d at %v, and queue %d of a higher priority had a message that was ready from %v to %v",
						p, c.queue, c.began, queue, turns[i].ready, turns[i].began))
				}
			}
		}
	}
	return how
}

// weightsHold holds that two queues that have messages all the time start handlers in proportion to their weights.
func weightsHold(f *facts) (how []string) {
	for p, l := range f.r.processes {
		if !f.takesTurns(l) {
			continue
		}
		all := f.turns(p)
		for a := range all {
			for b := range all {
				if sa, sb := f.shareOf(p, a), f.shareOf(p, b); a < b && sa.Priority == sb.Priority {
					how = append(how, f.unfair(p, a, b, all, float64(max(1, sa.Weight)), float64(max(1, sb.Weight)))...)
				}
			}
		}
	}
	return how
}

// allowance is by how many starts a share may be missed: one, what a queue catches up with, and the fraction for further queues.
const allowance = 1 + 10 + 1

// unfair returns a time in which queues a and b both had messages, and did not start them by their weights.
func (f *facts) unfair(p, a, b int, all map[int][]turn, wa, wb float64) []string {
	var starts []*call
	for _, c := range f.r.calls {
		if l := f.r.processes[p]; c.process == p && (c.queue == a || c.queue == b) && (l.stopped == 0 || c.began < l.stopped) {
			starts = append(starts, c)
		}
	}
	slices.SortStableFunc(starts, func(x, y *call) int { return cmp.Compare(x.began, y.began) })
	both := func(from, until time.Duration) bool { // have a message all the time
		ready := func(t turn) bool { return t.ready < from && t.began > until }
		return slices.ContainsFunc(all[a], ready) && slices.ContainsFunc(all[b], ready)
	}
	for i := range starts {
		var sa, sb float64
		for j := i + 1; j < len(starts) && both(starts[j-1].began, starts[j].began); j++ {
			if starts[j].queue == a {
				sa++
			} else {
				sb++
			}
			if due := (sa + sb) * wa / (wa + wb); math.Abs(sa-due) > allowance {
				return []string{fmt.Sprintf("process %d started %v handlers of queue %d (weight %v) and %v of queue %d (weight %v) from %v to %v, and both had messages all the time",
					p, sa, a, wa, sb, b, wb, starts[i].began, starts[j].began)}
			}
		}
	}
	return nil
}

// errandsAreDone holds that the neighbours' messages are handled, once if nothing goes wrong.
func errandsAreDone(f *facts) (how []string) {
	lived := slices.ContainsFunc(f.r.processes, func(l *life) bool { return l.settings.Pooled && !l.crashed && l.stopped == f.r.over })
	for i, n := range f.s.Neighbours {
		for j, e := range n.Errands {
			done := 0
			for _, r := range f.r.errands {
				done += b2i(r.neighbour == i && r.errand == j && r.succeeded)
			}
			waits := f.r.errandsLeft[errandOf{i, j}]
			expired := e.At+96*time.Hour < f.r.over
			switch {
			case e.At > f.r.over:
			case done == 0 && !waits && !expired:
				how = append(how, fmt.Sprintf("errand %d of neighbour %d was neither handled nor is it in its queue", j, i))
			case f.calm && done > 1:
				how = append(how, fmt.Sprintf("errand %d of neighbour %d was handled %d times, and nothing was wrong", j, i, done))
			case f.calm && done == 0 && lived && !expired && !f.r.cut && endsBy(f.s) <= mostPatience:
				how = append(how, fmt.Sprintf("errand %d of neighbour %d, sent at %v, was not handled until %v", j, i, e.At, f.r.over))
			}
		}
	}
	return how
}
