package engine_test

import (
	"maps"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/engine"
)

func (tw *twin) compareErrors(got, want error) {
	tw.t.Helper()
	if got != want {
		tw.failf("got error %v, want %v", got, want)
	}
}

// compare checks the pages, the counts and the next instant of every queue.
func (tw *twin) compare() {
	tw.m.prune(tw.now) // what came into a queue of shorter retention
	for _, key := range slices.Sorted(maps.Keys(tw.m.queues)) {
		q, mq := tw.e.Lookup(key), tw.m.queues[key]
		tw.comparePages(q, mq)
		if err := engine.Invariants(q); err != nil {
			tw.failf("%s: %v", key, err)
		}
		v, f, d := tw.e.Counts(tw.now, q)
		wv, wf, wd := mq.counts(tw.now)
		if v != wv || f != wf || d != wd {
			tw.failf("counts of %s: got %d %d %d, want %d %d %d", key, v, f, d, wv, wf, wd)
		}
		next, ok := tw.e.Next(q)
		if want, wantOK := mq.next(tw.now); ok != wantOK || !next.Equal(want) {
			tw.failf("next of %s: got %v %v, want %v %v", key, next, ok, want, wantOK)
		}
	}
}

func (tw *twin) comparePages(q *engine.Queue, mq *modelQueue) {
	got := map[engine.ID]engine.Delivery{}
	for after := uint64(0); ; {
		page := tw.e.Messages(tw.now, q, after, 7)
		for _, d := range page {
			if d.Receipt.Number <= after {
				tw.failf("page of %s: number %d after %d", mq.key, d.Receipt.Number, after)
			}
			after = d.Receipt.Number
			got[d.ID] = d
		}
		if len(page) < 7 {
			break
		}
	}
	want := map[engine.ID]engine.Delivery{}
	sequence := uint64(0)
	for _, x := range mq.messages {
		tw.adopt(mq, x, got[x.id])
		want[x.id] = mq.delivery(tw.now, x)
		d := got[x.id]
		if later := x.delayedLater && x.hidden(tw.now) && !x.inFlight(tw.now); d.DelayedLater() != later {
			tw.failf("%v of %s: it is %v that an operator has delayed it, want %v", x.id, mq.key, !later, later)
		}
		if mq.settings.FIFO && x.sequence <= sequence {
			tw.failf("sequence %d after %d in %s", x.sequence, sequence, mq.key)
		}
		sequence = x.sequence
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		tw.failf("messages of %s (-want +got):\n%s", mq.key, diff)
	}
}

// adopt takes the engine's number for a message that is new to its queue, if
// no other message ever had it.
func (tw *twin) adopt(mq *modelQueue, x *modelMessage, d engine.Delivery) {
	if x.number != 0 || d.Receipt.Number == 0 {
		return
	}
	if owner, used := tw.numbers[d.Receipt.Number]; used {
		tw.failf("number %d of %v was %v's", d.Receipt.Number, x.id, owner)
	}
	tw.numbers[d.Receipt.Number] = x.id
	x.number = d.Receipt.Number
	if mq.settings.FIFO {
		x.sequence = d.Sequence
	}
}

// receivable is what each queue could hand out at this moment.
func (tw *twin) receivable() map[string]map[uint64]bool {
	all := map[string]map[uint64]bool{}
	for key, mq := range tw.m.queues {
		set := map[uint64]bool{}
		if mq.room(tw.now) > 0 {
			for _, x := range mq.receivable(tw.now) {
				set[x.number] = true
			}
		}
		all[key] = set
	}
	return all
}

// compareWoken checks that no queue gained a receivable message in silence.
func (tw *twin) compareWoken(before map[string]map[uint64]bool) {
	woken := tw.e.Woken(nil)
	for key, set := range tw.receivable() {
		gained := false
		for number := range set {
			gained = gained || !before[key][number]
		}
		if gained && !slices.Contains(woken, tw.e.Lookup(key)) {
			tw.failf("%s gained a receivable message and was not reported", key)
		}
	}
	for _, q := range woken {
		if tw.e.Lookup(q.Key()) != q {
			tw.failf("a dropped queue was reported")
		}
	}
}

// noteReady gives the groups that became ready in this step their turn.
func (tw *twin) noteReady() {
	for _, mq := range tw.m.queues {
		for _, x := range mq.receivable(tw.now) {
			if _, ok := mq.turns[x.group]; !ok {
				mq.turns[x.group] = modelTurn{tw.m.step, tw.m.step}
			}
		}
	}
}

// noteBlocked takes their turn from the groups that are no longer ready.
func (tw *twin) noteBlocked() {
	for _, mq := range tw.m.queues {
		ready := map[string]bool{}
		for _, x := range mq.receivable(tw.now) {
			ready[x.group] = true
		}
		maps.DeleteFunc(mq.turns, func(group string, _ modelTurn) bool { return !ready[group] })
	}
}
