package engine_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// model is the engine's slow twin: slices, full scans, and every state derived
// from the time instead of being kept. Where SQS leaves the order free (which
// visible messages a standard queue hands out first, how many exhausted ones a
// receive meets on its way), the model takes what the engine did and judges
// whether it was allowed.
type model struct {
	queues map[string]*modelQueue
	step   int
}

type modelQueue struct {
	key      string
	settings engine.Settings
	messages []*modelMessage // in the order they came
	accepted []modelAccepted
	turns    map[string]modelTurn // of the groups that are ready
}

// modelTurn bounds the step since which a group has waited: it became ready
// then, or was served. Only bounds are known where a message expires: the
// clock jumps, and the group may have been blocked for a moment in between.
type modelTurn struct{ from, to int }

type modelMessage struct {
	id           engine.ID
	group, dedup string
	payload      any
	sentAt       time.Time
	visibleAt    time.Time
	delayedLater bool // if it is delayed, that is not from its send
	first        time.Time
	received     time.Time
	receives     int
	before       int // receives in earlier queues
	source       string

	number, sequence, sendNumber uint64 // the engine's choice, zero until it was seen
}

type modelAccepted struct {
	dedup, group string
	sent         engine.Sent
	at           time.Time
}

func (q *modelQueue) retention() time.Duration {
	if q.settings.Retention == 0 {
		return 4 * 24 * time.Hour
	}
	return q.settings.Retention
}

// prune drops what has expired.
func (m *model) prune(now time.Time) {
	for _, q := range m.queues {
		q.messages = slices.DeleteFunc(q.messages, func(x *modelMessage) bool {
			expired := !x.sentAt.Add(q.retention()).After(now)
			if turn, ok := q.turns[x.group]; ok && expired {
				q.turns[x.group] = modelTurn{turn.from, m.step}
			}
			return expired
		})
	}
}

func (q *modelQueue) inFlight(now time.Time) (n int) {
	for _, x := range q.messages {
		if x.inFlight(now) {
			n++
		}
	}
	return n
}

func (x *modelMessage) hidden(now time.Time) bool   { return x.visibleAt.After(now) }
func (x *modelMessage) inFlight(now time.Time) bool { return x.hidden(now) && x.receives > x.before }

func (q *modelQueue) room(now time.Time) int {
	switch limit := q.settings.InFlightLimit; {
	case limit < 0:
		return 1 << 30
	case limit == 0:
		return 120_000 - q.inFlight(now)
	default:
		return limit - q.inFlight(now)
	}
}

// receivable is the set of the reference: on a standard queue what is visible,
// on a FIFO queue, group by group, what comes before the first hidden message.
func (q *modelQueue) receivable(now time.Time) []*modelMessage {
	var out []*modelMessage
	blocked := map[string]bool{}
	for _, x := range q.messages {
		switch {
		case x.hidden(now):
			blocked[x.group] = q.settings.FIFO
		case !blocked[x.group]:
			out = append(out, x)
		}
	}
	return out
}

func (m *model) exhausted(q *modelQueue, x *modelMessage) bool {
	return q.settings.MaxReceives > 0 && x.receives-x.before >= q.settings.MaxReceives && m.queues[q.settings.DeadLetter] != nil
}

func (m *model) send(now time.Time, q *modelQueue, msg engine.Message) engine.Sent {
	delay := msg.Delay
	if delay < 0 || q.settings.FIFO {
		delay = q.settings.Delay
	}
	if q.settings.FIFO {
		for _, a := range q.accepted {
			sameScope := !q.settings.DedupPerGroup || a.group == msg.Group
			if a.dedup == msg.Dedup && sameScope && now.Sub(a.at) < 5*time.Minute {
				a.sent.Duplicate = true
				return a.sent
			}
		}
		q.accepted = append(q.accepted, modelAccepted{msg.Dedup, msg.Group, engine.Sent{ID: msg.ID}, now})
	}
	q.messages = append(q.messages, &modelMessage{
		id: msg.ID, group: msg.Group, dedup: msg.Dedup, payload: msg.Payload,
		sentAt: now, visibleAt: now.Add(delay),
	})
	return engine.Sent{ID: msg.ID}
}

// receive judges what the engine took and dead-lettered, and does the same.
func (m *model) receive(now time.Time, q *modelQueue, count int, visibility time.Duration, taken, moved []engine.ID, err error) error {
	room := q.room(now)
	if room <= 0 && !q.settings.FIFO {
		if err != engine.ErrOverLimit || len(taken)+len(moved) > 0 {
			return fmt.Errorf("at the quota: got %d taken, %d moved, error %v", len(taken), len(moved), err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("unexpected error %v", err)
	}
	wanted := max(0, min(count, room))
	candidates := q.receivable(now)
	if len(taken) > wanted {
		return fmt.Errorf("took %d, wanted %d", len(taken), wanted)
	}
	if len(taken) < wanted && len(taken)+len(moved) != len(candidates) {
		return fmt.Errorf("took %d and moved %d of %d receivable, wanted %d", len(taken), len(moved), len(candidates), wanted)
	}
	for i, id := range taken {
		if x := find(candidates, id); x == nil || m.exhausted(q, x) || slices.Contains(taken[:i], id) {
			return fmt.Errorf("took %v, which is not receivable, or took it twice", id)
		}
	}
	for _, id := range moved {
		if x := find(candidates, id); x == nil || !m.exhausted(q, x) {
			return fmt.Errorf("dead-lettered %v, which is not exhausted", id)
		}
	}
	if q.settings.FIFO {
		if err := q.judgeOrder(candidates, taken, moved); err != nil {
			return err
		}
	}
	for _, id := range moved {
		m.deadLetter(now, q, id)
	}
	if visibility < 0 {
		visibility = q.settings.Visibility
	}
	for _, id := range taken {
		x := find(q.messages, id)
		x.receives++
		x.received, x.visibleAt = now, now.Add(visibility)
		if x.first.IsZero() {
			x.first = now
		}
	}
	return nil
}

// judgeOrder checks the order of a FIFO receive: one group after the other,
// each from its front on, each to its end before the next is begun, and none
// before a group that has waited longer.
func (q *modelQueue) judgeOrder(candidates []*modelMessage, taken, moved []engine.ID) error {
	var order []string // of the groups taken from
	next := map[string][]*modelMessage{}
	for _, x := range candidates {
		next[x.group] = append(next[x.group], x)
	}
	used := map[string]int{}
	for _, id := range slices.Concat(taken, moved) {
		used[find(candidates, id).group]++
	}
	partial := 0
	for group, n := range used {
		if n < len(next[group]) {
			partial++
		}
		for _, x := range next[group][:n] {
			if !slices.Contains(taken, x.id) && !slices.Contains(moved, x.id) {
				return fmt.Errorf("group %q: passed over %v", group, x.id)
			}
		}
	}
	if partial > 1 {
		return fmt.Errorf("%d groups begun and not finished", partial)
	}
	position := -1
	for _, id := range taken {
		x := find(candidates, id)
		if len(order) == 0 || order[len(order)-1] != x.group {
			if slices.Contains(order, x.group) {
				return fmt.Errorf("group %q served in two pieces", x.group)
			}
			if len(order) > 0 && used[order[len(order)-1]] < len(next[order[len(order)-1]]) {
				return fmt.Errorf("group %q left before its end", order[len(order)-1])
			}
			order, position = append(order, x.group), -1
		}
		at := slices.Index(next[x.group], x)
		if at < position {
			return fmt.Errorf("group %q out of order", x.group)
		}
		position = at
	}
	for _, group := range order {
		for other := range next {
			if used[other] == 0 && q.turns[other].to < q.turns[group].from {
				return fmt.Errorf("group %q was served before %q, which had waited longer", group, other)
			}
		}
	}
	return nil
}

// deadLetter moves a message; without a dead-letter queue it does nothing.
func (m *model) deadLetter(now time.Time, q *modelQueue, id engine.ID) bool {
	to := m.queues[q.settings.DeadLetter]
	x := find(q.messages, id)
	if to == nil || x == nil {
		return false
	}
	q.delete(x)
	if !slices.ContainsFunc(q.messages, func(y *modelMessage) bool { return y.group == x.group }) {
		delete(q.turns, x.group) // should it be its own target, the group begins anew
	}
	x.before, x.source, x.visibleAt = x.receives, q.key, now
	x.number, x.sequence = 0, 0
	if to.settings.FIFO {
		x.sentAt, x.dedup = now, x.id.String()
	}
	to.messages = append(to.messages, x)
	return true
}

func (m *model) delete(now time.Time, q *modelQueue, r engine.Receipt) error {
	x := q.byNumber(r.Number)
	if x == nil {
		return nil
	}
	generation := int(r.Generation)
	if q.settings.FIFO && (generation != x.receives || !x.inFlight(now)) {
		return engine.ErrExpired
	}
	if generation >= x.receives {
		q.delete(x)
	}
	return nil
}

func (m *model) changeVisibility(now time.Time, q *modelQueue, r engine.Receipt, d time.Duration) error {
	x := q.byNumber(r.Number)
	generation := int(r.Generation)
	if x == nil || generation <= x.before || generation > x.receives {
		return engine.ErrGone
	}
	if q.settings.FIFO && (generation != x.receives || !x.inFlight(now)) {
		return engine.ErrExpired
	}
	if d > 0 && !now.Add(d).Before(x.received.Add(12*time.Hour)) {
		return engine.ErrBeyond12Hours
	}
	x.visibleAt = now.Add(d)
	return nil
}

func (m *model) configure(now time.Time, q *modelQueue, s engine.Settings) {
	redelay := q.settings.FIFO && s.Delay != q.settings.Delay
	s.FIFO, s.DedupPerGroup = q.settings.FIFO, q.settings.DedupPerGroup
	q.settings = s
	for _, x := range q.messages {
		if redelay && x.receives == 0 {
			x.visibleAt = x.sentAt.Add(s.Delay)
		}
	}
}

// next is the earliest end of a delay or lease; while there is one, also the
// first expiry.
func (q *modelQueue) next(now time.Time) (time.Time, bool) {
	var earliest time.Time
	for _, x := range q.messages {
		if x.hidden(now) && (earliest.IsZero() || x.visibleAt.Before(earliest)) {
			earliest = x.visibleAt
		}
	}
	if earliest.IsZero() {
		return earliest, false
	}
	for _, x := range q.messages {
		if expiry := x.sentAt.Add(q.retention()); expiry.Before(earliest) {
			earliest = expiry
		}
	}
	return earliest, true
}

func (q *modelQueue) counts(now time.Time) (visible, inFlight, delayed int) {
	for _, x := range q.messages {
		switch {
		case x.inFlight(now):
			inFlight++
		case x.hidden(now):
			delayed++
		default:
			visible++
		}
	}
	return visible, inFlight, delayed
}

// delivery is what an inspection must show.
func (q *modelQueue) delivery(now time.Time, x *modelMessage) engine.Delivery {
	d := engine.Delivery{
		Message:       engine.Message{ID: x.id, Group: x.group, Dedup: x.dedup, Payload: x.payload},
		Receipt:       engine.Receipt{Number: x.number, Generation: uint32(x.receives)},
		Sequence:      x.sequence,
		SendNumber:    x.sendNumber,
		SentAt:        x.sentAt,
		FirstReceived: x.first,
		Receives:      x.receives,
		Source:        x.source,
		InFlight:      x.inFlight(now),
	}
	if x.hidden(now) {
		d.VisibleAt = x.visibleAt
	}
	return d
}

func (q *modelQueue) byNumber(number uint64) *modelMessage {
	for _, x := range q.messages {
		if x.number == number {
			return x
		}
	}
	return nil
}

func (q *modelQueue) delete(x *modelMessage) {
	q.messages = slices.DeleteFunc(q.messages, func(y *modelMessage) bool { return y == x })
}

func find(messages []*modelMessage, id engine.ID) *modelMessage {
	for _, x := range messages {
		if x.id == id {
			return x
		}
	}
	return nil
}
