package world_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/retry"
)

var (
	fleetSeeds = flag.Uint64("world.seeds", uint64(race.Fewer(2000, 100)), "how many fleets TestPlainFleets runs")
	fleetFrom  = flag.Uint64("world.from", 1, "the seed of the first")
)

// An act is what fate or an operator does to a fleet, at some time after its start.
type act struct {
	at   time.Duration
	what string
	node int
	take time.Duration
}

func (a act) String() string {
	return fmt.Sprintf("%v: %s node %d for %v", a.at.Round(time.Second), a.what, a.node, a.take.Round(time.Second))
}

// fleet is consumers of the plainest kind on one queue with a dead-letter queue, and
// what must hold of them: no message is lost, none comes before its time, groups keep
// their order, and all is done soon after the last fault.
type fleet struct {
	loop    *world.Loop
	sqs     *world.Service
	queue   *world.Queue
	dead    *world.Queue
	fifo    bool
	nodes   []*plain
	hasty   bool // a mistake: consumers delete before they run
	policy  retry.Policy
	failing float64 // probability that a run fails
	sent    []*message
	wrong   []string
}

// message is what is known of a message, which carries it.
type message struct {
	number   int
	group    string
	done     bool
	redriven bool      // at least once: it has lost its place in its group
	running  int       // how many run it, crashed ones included
	receives int       // at its latest run
	stale    bool      // a receive before the latest has changed its visibility, or may have
	due      time.Time // by the service's clock: it is hidden until then, at least
}

// plain is a consumer without any finesse: it receives one message at a time, runs it,
// and deletes it or hides it for as long as the policy says.
type plain struct {
	*world.Process
	link *world.Link
}

const (
	lease            = time.Minute
	longestRun       = 20 * time.Second
	longestRoundTrip = 6 * time.Second
)

func newFleet(seed uint64, hasty bool) *fleet {
	l := world.NewLoop(epoch, seed)
	f := &fleet{
		loop: l, sqs: l.NewService(), hasty: hasty, fifo: l.Chance(0.5), failing: 0.3,
		policy: retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: 5 * time.Minute}, MaxAttempts: 100, MaxAge: -1},
	}
	if hasty {
		f.failing = 0 // a crash alone loses what is deleted
	}
	f.dead = f.sqs.Create("dead", engine.Settings{FIFO: f.fifo, Visibility: lease})
	f.queue = f.sqs.Create("main", engine.Settings{FIFO: f.fifo, Visibility: lease, DeadLetter: "dead", MaxReceives: 2 + l.Random.IntN(6)})
	return f
}

// draw draws what happens to the fleet in an hour.
func draw(seed uint64) (acts []act) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: a simulation
	kinds := []string{"send", "send", "send", "crash", "crash", "start", "start", "sleep", "cut off", "set the clock of", "disturb", "set the clock of SQS for", "redrive"}
	for range 5 + random.IntN(25) {
		acts = append(acts, act{time.Duration(random.Int64N(int64(time.Hour))), kinds[random.IntN(len(kinds))], random.IntN(3), time.Duration(random.Int64N(int64(5 * time.Minute)))})
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	return acts
}

// Loop implements world.Simulation.
func (f *fleet) Loop() *world.Loop { return f.loop }

// Live implements world.Simulation: it runs the fleet through acts and then, without faults,
// to its end.
func (f *fleet) Live(acts []act) error {
	for range 3 {
		f.start()
	}
	f.send(5)
	for _, a := range acts {
		f.loop.After(a.at, "fate", func() { f.do(a) })
	}
	f.loop.After(time.Hour, "fate", func() {
		for len(f.nodes) < 3 || !slices.ContainsFunc(f.nodes, func(n *plain) bool { return n.Alive() }) {
			f.start()
		}
		for _, n := range f.nodes {
			n.link.Faults = nil
		}
	})
	for end := time.Hour; ; end += 10 * time.Minute {
		if err := f.loop.Run(end); err != nil {
			return err
		}
		if end > time.Hour && (end > 12*time.Hour || len(f.queue.Messages()) == 0) {
			return f.check()
		}
	}
}

func (f *fleet) do(a act) {
	n := f.nodes[a.node%len(f.nodes)]
	switch a.what {
	case "send":
		f.send(1 + a.node*4)
	case "crash":
		n.Crash()
	case "start":
		f.start()
	case "sleep":
		n.Sleep(a.take)
	case "cut off":
		n.CutOff(a.take)
	case "set the clock of":
		n.SetClock(a.take - 2*time.Minute)
	case "set the clock of SQS for":
		f.sqs.SetClock(a.take / 10)
	case "redrive":
		for _, d := range f.dead.Messages() {
			m := d.Payload.(*message)
			m.redriven, m.due = true, time.Time{}
		}
		moved, err := f.dead.Redrive(nil, len(f.sent))
		if err != nil {
			f.violate("redrive: %v", err)
		}
		if moved > 0 {
			f.loop.Note("the operator", "redrives", int64(moved))
		}
	case "disturb":
		p := a.take.Minutes() / 5 * 0.6
		n.link.Faults = map[world.Action]world.Faults{"": {LoseRequest: p / 4, LoseReply: p / 4, Throttle: p / 4, Fail: p / 8, Deny: p / 8, FailEntry: p / 2}}
	}
}

func (f *fleet) violate(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf("after %v: ", f.loop.Since().Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (f *fleet) send(n int) {
	for range n {
		m := &message{number: len(f.sent)}
		if f.fifo {
			m.group = fmt.Sprint("g", f.loop.Random.IntN(3))
		}
		f.sent = append(f.sent, m)
		f.queue.Put(engine.Message{Delay: -1, Dedup: fmt.Sprint(m.number), Group: m.group, Payload: m})
	}
}

func (f *fleet) start() {
	p := f.loop.Start(fmt.Sprint("node ", len(f.nodes)), f.loop.Between(-time.Minute, time.Minute), 1e-4*(f.loop.Random.Float64()-0.5))
	n := &plain{p, p.NewLink(world.Latency{Base: time.Millisecond, Spread: 5 * time.Millisecond, Most: 3 * time.Second}, 30*time.Second)}
	f.nodes = append(f.nodes, n)
	f.poll(n)
}

func (f *fleet) poll(n *plain) {
	f.queue.Receive(n.link, 1, lease, 20*time.Second, func(got []engine.Delivery, err error) {
		if err != nil {
			n.After(time.Second, func() { f.poll(n) })
			return
		}
		if len(got) == 0 {
			f.poll(n)
			return
		}
		f.run(n, got[0])
	})
}

func (f *fleet) run(n *plain, d engine.Delivery) {
	m := d.Payload.(*message)
	f.loop.Note(n.Name, "runs message", int64(m.number))
	f.checkTurn(m, d)
	if m.receives > 0 {
		f.loop.Note(n.Name, "runs a message again", int64(m.number))
	}
	if m.running > 0 {
		f.loop.Note(n.Name, "runs a message that another runs", int64(m.number))
	}
	m.running++
	m.receives, m.due = d.Receives, time.Time{}
	entries := []world.Entry{{Receipt: d.Receipt}}
	if f.hasty {
		f.queue.Delete(n.link, entries, func([]world.Entry, error) {})
	}
	n.After(f.loop.Between(time.Millisecond, longestRun), func() {
		m.running--
		next := func([]world.Entry, error) { f.poll(n) }
		switch {
		case f.loop.Chance(f.failing):
			f.hide(n, m, d, next)
		case f.hasty:
			m.done = true
			f.poll(n)
		default:
			m.done = true
			f.loop.Note(n.Name, "has done message", int64(m.number))
			f.queue.Delete(n.link, entries, next)
		}
	})
}

// checkTurn checks that it is m's turn, which begins to run: not where the receive was
// answered while its process slept, and others have received it since.
func (f *fleet) checkTurn(m *message, d engine.Delivery) {
	if f.sqs.Now().Before(m.due) && !m.stale && d.Receives > m.receives {
		f.violate("message %d came %v before its time", m.number, m.due.Sub(f.sqs.Now()))
	}
	if m.group == "" || m.redriven {
		return
	}
	for _, d := range f.queue.Messages() {
		if earlier := d.Payload.(*message); earlier.group == m.group && earlier.number < m.number && !earlier.redriven {
			f.violate("message %d of group %s came before %d", m.number, m.group, earlier.number)
		}
	}
}

// hide lets a failed message come again when the policy says.
func (f *fleet) hide(n *plain, m *message, d engine.Delivery, next func([]world.Entry, error)) {
	decision := f.policy.Decide(retry.Failure{N: d.Receives, Ended: epoch, Seed: fmt.Sprint(m.number)})
	entries := []world.Entry{{Receipt: d.Receipt, Visibility: decision.At.Sub(epoch)}}
	m.stale = m.stale || d.Receives != m.receives || f.sqs.Now().Sub(d.VisibleAt) > -longestRoundTrip
	asked := f.sqs.Now()
	f.queue.ChangeVisibility(n.link, entries, func(got []world.Entry, err error) {
		if err == nil && got[0].Err == nil && d.Receives == m.receives {
			m.due = asked.Add(entries[0].Visibility)
		}
		next(got, err)
	})
}

func (f *fleet) check() error {
	left := make(map[*message]bool)
	for _, d := range f.dead.Messages() {
		left[d.Payload.(*message)] = true
		f.loop.Note("the queue", "finds a dead letter", int64(d.Payload.(*message).number))
	}
	for _, d := range f.queue.Messages() {
		left[d.Payload.(*message)] = true
		f.violate("message %d is still there", d.Payload.(*message).number)
	}
	for _, m := range f.sent {
		if !m.done && !left[m] {
			f.violate("message %d is lost", m.number)
		}
	}
	if len(f.wrong) > 0 {
		return errors.New(strings.Join(f.wrong, "\n"))
	}
	return nil
}

// reached are the paths that some fleet must take.
var reached = []string{
	"starts", "crashes", "sleeps for", "is cut off for", "sets its clock by", "loses a request", "loses a reply", "is throttled",
	"gets an error of the service", "is denied access", "has an entry refused", "runs a message again", "runs a message that another runs", "finds a dead letter", "redrives",
}

// fleets are the fleets of all seeds.
func fleets(hasty bool) world.Seeds[act] {
	return world.Seeds[act]{Make: func(seed uint64) world.Simulation[act] { return newFleet(seed, hasty) }, Acts: draw}
}

// TestPlainFleets runs consumers of the plainest kind through everything that a seed has
// in store for them. It tests the queues and the world: nothing is lost, nothing comes
// early, groups keep their order, and all is done at the end.
func TestPlainFleets(t *testing.T) {
	if testing.Short() {
		*fleetSeeds = min(*fleetSeeds, 200)
	}
	found := fleets(false).Run(*fleetFrom, *fleetSeeds)
	fmt.Printf("TestPlainFleets: %v, from %d\n", found, *fleetFrom)
	for _, seed := range found.Failed {
		t.Errorf("seed %d, again with -world.from=%d -world.seeds=1:\n%v", seed, seed, fleets(false).Story(seed))
	}
	if missing := found.Missing(reached); *fleetSeeds >= 100 && len(missing) > 0 {
		t.Errorf("no fleet has noted %q", missing)
	}
}

func TestFleetsRepeat(t *testing.T) {
	traces := make(map[uint64]uint64)
	for seed := uint64(1); seed <= uint64(race.Fewer(50, 5)); seed++ {
		once, err := fleets(false).Trace(seed)
		again, wrong := fleets(false).Trace(seed)
		if err := errors.Join(err, wrong); err != nil {
			t.Error(err)
		}
		if once != again {
			t.Errorf("seed %d does not repeat", seed)
		}
		if other, ok := traces[once]; ok {
			t.Errorf("seeds %d and %d have the same trace", seed, other)
		}
		traces[once] = seed
	}
}

// TestMistakeIsFound: consumers that delete a message before they run it lose it when
// they crash, and the story of that is short.
func TestMistakeIsFound(t *testing.T) {
	found := fleets(true).Run(1, 20)
	for _, seed := range found.Failed {
		story := fleets(true).Story(seed)
		if !strings.Contains(story.Err.Error(), "is lost") {
			continue
		}
		if len(story.Acts) > 2 {
			t.Errorf("seed %d: %d acts are needed for a loss:\n%v", seed, len(story.Acts), story)
		}
		return
	}
	t.Error("no seed of 20 has found it")
}
