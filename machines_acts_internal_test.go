package reprise

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

// machineAct is what fate or an operator does to a fleet, at some time after its start.
type machineAct struct {
	at   time.Duration
	what string
	node int
	take time.Duration
}

func (a machineAct) String() string {
	return fmt.Sprintf("%v: %s node %d for %v", a.at.Round(time.Second), a.what, a.node, a.take.Round(time.Second))
}

func drawMachineActs(seed uint64, calm bool) (acts []machineAct) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: a simulation
	kinds := []string{"send", "send", "send", "start", "stop", "roll out", "pause", "limit", "redrive"}
	if !calm {
		kinds = append(kinds, "crash", "crash", "sleep", "cut off", "set the clock of", "disturb", "disturb", "set the clock of SQS for", "wake", "outage")
	}
	for range 6 + random.IntN(24) {
		acts = append(acts, machineAct{time.Duration(random.Int64N(int64(machinesLive))), kinds[random.IntN(len(kinds))], random.IntN(4), time.Duration(random.Int64N(int64(20 * time.Minute)))})
	}
	slices.SortStableFunc(acts, func(a, b machineAct) int { return int(a.at - b.at) })
	return acts
}

// live runs the fleet through acts and then, without faults, to its end.
func (f *machines) live(acts []machineAct) error {
	for range 1 + f.loop.Random.IntN(3) {
		f.start()
	}
	f.send(5 + f.loop.Random.IntN(30))
	for _, a := range acts {
		f.loop.After(a.at, "fate", func() { f.do(a) })
	}
	f.every()
	f.loop.After(machinesLive, "fate", f.mend)
	for end := machinesLive; ; end += time.Hour {
		if err := f.loop.Run(end); err != nil {
			return err
		}
		if len(f.wrong) > 0 || end > machinesLive && (end > machinesEnd || len(f.queue.Messages()) == 0) {
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
func (f *machines) mend() {
	f.mended = true
	f.setOutage(false)
	for _, n := range f.nodes {
		n.link.Faults, n.beats.Faults = nil, nil
		f.pause(n, false)
	}
	if !slices.ContainsFunc(f.nodes, func(n *machine) bool { return n.Alive() }) {
		f.start()
	}
	fresh := len(f.parts)
	f.send(5)
	f.loop.After(time.Hour, "fate", func() {
		for _, p := range f.parts[fresh:] {
			if !p.ran {
				f.broken("a new message is run within an hour when the faults have ended", "%s, by %s", p.body, f.states())
				return
			}
		}
	})
}

// states is how the consumers are, for a reader of a failure.
func (f *machines) states() string {
	var text strings.Builder
	for _, n := range f.nodes {
		if !n.Alive() {
			continue
		}
		core := n.lock()
		var pollers []string
		for _, p := range core.pollers {
			pollers = append(pollers, fmt.Sprintf("%d until %v", p.state, p.alarm.At()))
		}
		fmt.Fprintf(&text, "%s at %v: %d waiting, %d running, %d settling, %d reserved, %d workers, summoned %v, pollers %q, breakers %+v, next alarm %v, rings at %v; ", n.Name, core.now, core.waiting, core.running, core.settling, core.reserved, core.workers, core.summoned, pollers, core.breakers(), core.alarms.Next(), n.ringsAt)
		n.unlock()
	}
	return text.String()
}

func (f *machines) do(a machineAct) {
	if len(f.nodes) == 0 {
		f.start()
	}
	n := f.nodes[a.node%len(f.nodes)]
	switch a.what {
	case "send":
		f.send(1 + a.node*a.node*8)
	case "start":
		f.start()
	case "stop":
		f.stop(n)
	case "roll out":
		f.configure()
		f.stop(n)
		f.start()
	case "crash":
		n.Crash()
		f.loop.After(a.take/10, "fate", func() { f.start() })
	case "sleep":
		n.Sleep(a.take / 4)
		n.quietSince = f.loop.Now().Add(a.take / 4)
	case "cut off":
		n.CutOff(a.take)
	case "set the clock of":
		n.SetClock(a.take/10 - time.Minute)
	case "set the clock of SQS for":
		f.leaky = true
		f.sqs.SetClock(a.take / 10)
	case "pause":
		f.pause(n, true)
		f.loop.After(a.take, "fate", func() { f.pause(n, false) })
	case "limit":
		if n.Alive() {
			_ = n.SetConcurrency(1 + a.node*5)
		}
	case "wake":
		if n.Alive() {
			f.outages = true
			n.Wake()
		}
	case "redrive":
		f.redrive()
	case "outage":
		f.setOutage(true)
		f.loop.After(a.take, "fate", func() { f.setOutage(false) })
	case "disturb":
		p := float64(a.node) * 0.15
		n.link.Faults = map[world.Action]world.Faults{"": {LoseRequest: p / 4, LoseReply: p / 4, Throttle: p / 4, Fail: p / 8, Deny: p / 8, FailEntry: p / 2}}
		n.beats.Faults = n.link.Faults
	}
}

func (f *machines) setOutage(on bool) {
	f.outage = on
	if !on {
		f.back = f.loop.Now()
	}
}

func (f *machines) send(n int) {
	for range n {
		p := &part{number: len(f.parts)}
		p.body = fmt.Sprint("m", p.number)
		m := engine.Message{Delay: -1, Payload: &letter{body: p.body}}
		if f.fifo {
			p.group, m.Dedup = fmt.Sprint("g", f.loop.Random.IntN(4)), p.body
			if f.mended { // what was sent before may wait for hours, and its group with it
				p.group = p.body
			}
			m.Group = p.group
		}
		f.parts = append(f.parts, p)
		f.byBody[p.body] = p
		f.queue.Put(m)
	}
}

func (f *machines) redrive() {
	for _, d := range f.dead.Messages() {
		p := f.byBody[d.Payload.(*letter).body]
		p.redriven, p.hiddenUntil = true, time.Time{}
	}
	moved, err := f.dead.Redrive(f.queue, len(f.parts))
	if err != nil {
		f.broken("the queue redrives its dead letters", "%v", err)
	}
	if moved > 0 {
		f.loop.Note("the operator", "redrives", int64(moved))
	}
}
