package machines_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
)

// act is a fault, or an operator's action on a fleet, at some time after its start.
type act struct {
	at   time.Duration
	what string
	node int
	take time.Duration
}

func (a act) String() string {
	return fmt.Sprintf("%v: %s node %d for %v", a.at.Round(time.Second), a.what, a.node, a.take.Round(time.Second))
}

func drawActs(seed uint64, of nature) (acts []act) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: a simulation
	kinds := []string{"send", "send", "send", "start", "stop", "roll out", "pause", "limit", "redrive"}
	if !of.calm {
		kinds = append(kinds, "crash", "crash", "sleep", "cut off", "set the clock of", "disturb", "disturb", "forbid", "set the clock of SQS for", "wake", "outage")
	}
	if of.rate > 0 {
		end := of.lives - window - recovery
		return []act{{time.Duration(random.Int64N(int64(end / 2))), "outage", 0, time.Duration(random.Int64N(int64(end / 2)))}}
	}
	if of.keyed {
		kinds = append(kinds, "pause a key of")
	}
	long := of.lives > 24*time.Hour && !of.calm
	if long { // consumers that live long enough to hold messages for as long as SQS permits
		kinds = []string{"send", "pause", "redrive", "disturb"}
		at := time.Duration(random.Int64N(int64(8 * time.Hour)))
		acts = append(acts, act{at, "flood", 0, 0}, act{at, "outage", 0, 14 * time.Hour})
	}
	for range 6 + random.IntN(24) {
		acts = append(acts, act{time.Duration(random.Int64N(int64(of.lives))), kinds[random.IntN(len(kinds))], random.IntN(4), time.Duration(random.Int64N(int64(20 * time.Minute)))})
	}
	if random.IntN(12) == 0 {
		acts = append(acts, act{time.Duration(random.Int64N(int64(time.Hour))), "flood", random.IntN(4), 0})
	}
	if !of.calm && random.IntN(16) == 0 {
		acts = append(acts, act{time.Duration(random.Int64N(int64(of.lives))), "fail the region of", 0, time.Hour})
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	return acts
}

// Loop implements world.Simulation.
func (f *fleet) Loop() *world.Loop { return f.loop }

// Live implements world.Simulation: it runs the fleet through acts and then, without faults,
// to its end.
func (f *fleet) Live(acts []act) error {
	for range 1 + f.loop.Random.IntN(3) {
		f.start()
	}
	f.send(5 + f.loop.Random.IntN(30))
	for _, a := range acts {
		f.loop.After(a.at, "fate", func() { f.do(a) })
	}
	f.every()
	f.supply()
	f.loop.After(f.lives, "fate", f.mend)
	for end := f.lives; ; end += time.Hour {
		if err := f.loop.Run(end); err != nil {
			return err
		}
		if len(f.wrong) > 0 || end > f.lives && (end > f.lives+settling || f.workedOff()) {
			break
		}
	}
	for _, n := range slices.Clone(f.nodes) {
		f.stop(n)
	}
	if err := f.loop.Run(f.loop.Since() + 2*time.Minute); err != nil {
		return err
	}
	f.checkEnd()
	if len(f.wrong) > 0 {
		return errors.New(strings.Join(f.wrong, "\n"))
	}
	return nil
}

// mend ends all faults.
func (f *fleet) mend() {
	f.checkRate()
	f.mended = true
	f.sqs.Down = false
	clear(f.down)
	f.back = f.loop.Now()
	if f.front != nil {
		f.front.Link.Faults = nil
	}
	alive := false
	for _, n := range f.nodes {
		alive = alive || n.Alive()
		f.pause(n, false)
		for _, m := range n.consumers {
			m.Link.Faults, m.Beats.Faults = nil, nil
			for number := range 3 {
				if key := keyOf(number); m.pausedKey[key] {
					m.pauseKey(key, false)
				}
			}
		}
	}
	if !alive {
		f.start()
	}
	fresh := len(f.parts)
	f.send(5)
	f.loop.After(time.Hour, "fate", func() { f.checkNewcomers(f.parts[fresh:]) })
}

func (f *fleet) do(a act) {
	if len(f.nodes) == 0 {
		f.start()
	}
	n := f.nodes[a.node%len(f.nodes)]
	switch a.what {
	case "send":
		f.send(1 + a.node*a.node*8)
	case "flood":
		f.send(150 + a.node*80)
	case "start":
		f.start()
	case "stop":
		f.stop(n)
	case "roll out":
		f.configure()
		f.stop(n)
		f.start()
	case "crash":
		f.crash(n, a.take/10)
	case "sleep":
		// The first reply of SQS tells a node what its clock shows. Whether that was read late, nobody can know.
		const firstPoll = 30 * time.Second
		if f.loop.Since()-n.started > firstPoll {
			n.Sleep(a.take / 4)
		}
	case "cut off":
		n.CutOff(a.take)
	case "set the clock of":
		n.SetClock(a.take/10 - time.Minute)
	case "set the clock of SQS for":
		f.leaky = true
		f.sqs.SetClock(a.take / 10)
	case "redrive":
		f.redrive()
	case "fail the region of":
		f.sqs.Down, f.failed = true, true
		f.loop.After(a.take, "fate", func() { f.sqs.Down = false })
	case "outage":
		f.fail(a)
	case "disturb":
		p := float64(a.node) * 0.15
		f.disturb(n, world.Faults{LoseRequest: p / 4, LoseReply: p / 4, Throttle: p / 4, Fail: p / 8, Deny: p / 8, FailEntry: p / 2})
	case "forbid":
		action := []world.Action{world.Send, world.Delete, world.ChangeVisibility, world.Receive}[a.node]
		for _, m := range n.consumers {
			m.Link.Faults = map[world.Action]world.Faults{action: {Deny: float64(a.take % 2), DenyKey: 1}}
			f.loop.After(a.take, "fate", func() { m.Link.Faults = nil })
		}
	default:
		f.operate(n, a)
	}
}

// operate does an operator's action on a running consumer.
func (f *fleet) operate(n *node, a act) {
	if !n.Alive() {
		return
	}
	m := n.consumers[0]
	switch a.what {
	case "pause":
		f.pause(n, true)
		f.loop.After(a.take, "fate", func() { f.pause(n, false) })
	case "limit":
		if m.pool == nil {
			m.wanted = 1 + a.node*5
			m.limit = max(m.wanted, m.handlers)
			m.Operate(func(c *consumer.Machine) { c.SetConcurrency(m.wanted) })
		}
	case "wake":
		f.outages = true
		m.each(func(c *consumer.Machine) { c.Wake() })
	case "pause a key of":
		key := keyOf(a.node)
		m.pauseKey(key, true)
		f.loop.After(a.take, "fate", func() { m.pauseKey(key, false) })
	}
}

func (m *machine) pauseKey(key string, paused bool) {
	if !m.Process.Alive() || m.n.stopped {
		return
	}
	for _, m := range m.n.consumers {
		m.pausedKey[key] = paused
		m.each(func(c *consumer.Machine) { c.SetKeyPaused(key, paused) })
		if paused {
			m.f.loop.Note(m.Name, "pauses a key", 0)
		}
	}
}

func (f *fleet) disturb(n *node, by world.Faults) {
	for _, m := range n.consumers {
		m.Link.Faults = map[world.Action]world.Faults{"": by}
		m.Beats.Faults = m.Link.Faults
	}
	if f.front != nil {
		by.Deny = 0 // it would give messages up
		f.front.Link.Faults = map[world.Action]world.Faults{"": by}
	}
}

// fail makes the dependency of handlers unavailable for a while, for all keys or for one.
func (f *fleet) fail(a act) {
	key := ""
	if f.keyed && a.node > 0 {
		key = keyOf(a.node)
	}
	f.down[key] = true
	f.loop.After(a.take, "fate", func() {
		delete(f.down, key)
		f.back = f.loop.Now()
	})
}

func keyOf(number int) string { return fmt.Sprint("k", number%3) }

func (f *fleet) send(n int) {
	r := f.loop.Random
	for range n {
		p := &part{number: len(f.parts), queue: f.queues[r.IntN(len(f.queues))], enqueued: f.sqs.Now()}
		p.body, p.key = fmt.Sprint("m", p.number), keyOf(p.number)
		m := engine.Message{Delay: -1}
		if f.fifo {
			p.group, m.Dedup = fmt.Sprint("g", r.IntN(f.groups)), p.body
			if f.mended { // what was sent before may wait for hours, and its group with it
				p.group = p.body
			}
			m.Group = p.group
		} else if len(f.odd) > 0 && r.IntN(10) == 0 && !f.mended {
			p.kind = f.odd[r.IntN(len(f.odd))]
			if p.kind == deadly {
				f.killers++
			}
			if f.killers > mostKillers {
				p.kind = plain
			}
		}
		m.Payload = f.write(p)
		f.parts = append(f.parts, p)
		if f.front != nil && p.queue == f.queues[0] && p.kind == plain {
			f.front.Send(m)
		} else {
			p.queue.Put(m)
		}
	}
}

// write returns the payload of p.
func (f *fleet) write(p *part) any {
	switch p.kind {
	case large:
		p.body += strings.Repeat("x", 3000)
	case forged:
		return &simulation.Copy{Payload: p, History: f.forge(p.queue.Name())}
	}
	return p
}

// forge draws a history that no consumer has written.
func (f *fleet) forge(queue string) string {
	r := f.loop.Random
	h := history.History{Queue: queue, Origin: origin, Attempt: r.IntN(10), Releases: r.IntN(30), Alone: r.IntN(2), Losses: r.IntN(1001), Unavailable: r.IntN(2) == 0}
	now := f.sqs.Now()
	h.Date(now, now.Add(-f.loop.Between(0, 48*time.Hour)), now, now.Add(f.loop.Between(0, 15*time.Hour)))
	text := h.String()
	if r.IntN(3) == 0 { // some are damaged
		at := r.IntN(len(text))
		text = text[:at] + "9" + text[at+1:]
	}
	return text
}

// origin is the origin in forged histories.
const origin = "00000000-0000-0000-0000-00000000f06e"

func (f *fleet) redrive() {
	if f.dead == nil {
		return
	}
	for _, d := range f.dead.Messages() {
		p := partOf(d.Payload)
		p.redriven, p.hiddenUntil, p.kills, p.enqueued, p.queue = true, time.Time{}, 0, f.sqs.Now(), f.queues[0]
	}
	moved, err := f.dead.Redrive(f.queues[0], len(f.parts))
	if err != nil {
		f.broken("the queue redrives its dead letters", "%v", err)
	}
	if moved > 0 {
		f.loop.Note("the operator", "redrives", int64(moved))
	}
}
