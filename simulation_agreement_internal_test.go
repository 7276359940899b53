package reprise

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	direct "github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/retry"
)

// TestSimulationAgrees checks that internal/simulation starts the same attempts at the same times as a
// consumer of this package, whose shell it leaves out.
func TestSimulationAgrees(t *testing.T) {
	for _, test := range []struct {
		name  string
		queue engine.Settings
		cfg   Config
	}{
		{"hides", engine.Settings{MaxReceives: 100}, Config{}},
		{"copies", engine.Settings{MaxReceives: 100}, Config{Via: ViaRequeue}},
		{"copies at the last receive", engine.Settings{MaxReceives: 3}, Config{}},
		{"rate", engine.Settings{MaxReceives: 100}, Config{Rate: 7}},
		{"short lease", engine.Settings{MaxReceives: 100}, Config{Lease: 2 * time.Second}},
		{"fifo", engine.Settings{FIFO: true, MaxReceives: 100}, Config{}},
		{"fifo blocks", engine.Settings{FIFO: true, MaxReceives: 100}, Config{FIFO: FIFOBlock}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.Retry = retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: 5, MaxAge: -1}
			test.cfg.Outage.Off, test.cfg.seed = true, 1
			shell, other := agreeing(t, test.queue, test.cfg, startShell), agreeing(t, test.queue, test.cfg, startSimulation)
			attempts := 0
			for _, id := range slices.Sorted(maps.Keys(shell.attempts)) {
				attempts += len(shell.attempts[id])
				if !slices.Equal(shell.attempts[id], other.attempts[id]) {
					t.Fatalf("message %s:\n%v in this package,\n%v in internal/simulation", id, shell.attempts[id], other.attempts[id])
				}
			}
			if len(shell.attempts) != agreeingMessages || len(other.attempts) != agreeingMessages || attempts < 3*agreeingMessages/2 {
				t.Errorf("%d and %d messages were tried, in %d attempts; want %d, some of which fail", len(shell.attempts), len(other.attempts), attempts, agreeingMessages)
			}
			if shell.dead == 0 || shell.dead != other.dead || shell.left != 0 || other.left != 0 {
				t.Errorf("%d and %d messages are dead, %d and %d are left; want equal numbers, and none", shell.dead, other.dead, shell.left, other.left)
			}
		})
	}
}

var agreeingSeeds = flag.Int("agree.seeds", 60, "in how many random configurations TestSimulationAgreesAtRandom compares attempts")

// TestSimulationAgreesAtRandom checks the same in random configurations.
func TestSimulationAgreesAtRandom(t *testing.T) {
	tried := 0
	for seed := range uint64(*agreeingSeeds) { //nolint:gosec // G115: a small number
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: scenarios of a test
		queue := engine.Settings{FIFO: r.IntN(3) == 0, MaxReceives: 3 + r.IntN(100)}
		if r.IntN(4) == 0 {
			queue.Delay = time.Duration(r.IntN(20)) * time.Second
		}
		cfg := Config{
			Concurrency: 1 + r.IntN(40), Prefetch: r.IntN(40) - 1, Lease: time.Duration(2+r.IntN(90)) * time.Second,
			LongPoll: time.Duration(1+r.IntN(20)) * time.Second, Via: Via(r.IntN(3)), FIFO: FIFO(r.IntN(3)), seed: seed + 1, //nolint:gosec // G115: small numbers
			Retry: retry.Policy{
				Backoff: retry.Exponential{Base: time.Duration(1+r.IntN(5000)) * time.Millisecond, Max: time.Duration(10+r.IntN(600)) * time.Second},
				Jitter:  retry.Jitter(r.IntN(5)), MaxAttempts: 1 + r.IntN(8), MaxAge: -1, //nolint:gosec // G115: small numbers
			},
		}
		if queue.FIFO {
			cfg.Via = ViaAuto
		}
		if r.IntN(3) == 0 {
			cfg.Rate = 1 + 20*r.Float64()
		}
		if r.IntN(4) == 0 {
			cfg.HandlerTimeout = time.Second // shorter than a run
		}
		cfg.Outage.Off = r.IntN(2) == 0
		shell, other := agreeing(t, queue, cfg, startShell), agreeing(t, queue, cfg, startSimulation)
		for _, id := range slices.Sorted(maps.Keys(shell.attempts)) {
			tried += len(shell.attempts[id])
			if !slices.Equal(shell.attempts[id], other.attempts[id]) {
				t.Fatalf("seed %d, %+v, %+v: message %s:\n%v in this package,\n%v in internal/simulation", seed, queue, cfg, id, shell.attempts[id], other.attempts[id])
			}
		}
		if len(shell.attempts) != len(other.attempts) || shell.dead != other.dead || shell.left != other.left {
			t.Fatalf("seed %d, %+v, %+v: %d and %d messages were tried, %d and %d are dead, %d and %d are left", seed, queue, cfg, len(shell.attempts), len(other.attempts), shell.dead, other.dead, shell.left, other.left)
		}
	}
	if tried < 20*agreeingMessages {
		t.Errorf("%d attempts were compared, want many more", tried)
	}
}

const agreeingMessages = 200

// agreement is what a consumer has done.
type agreement struct {
	attempts   map[string][]string // by origin: the number and the time of each
	dead, left int
}

// agreeing runs a consumer that start starts, in a loop of its own.
func agreeing(t *testing.T, queue engine.Settings, cfg Config, start func(*testing.T, place, Config, func(origin string, n int) error)) agreement {
	t.Helper()
	a := agreement{attempts: make(map[string][]string)}
	p := place{loop: world.NewLoop(machinesEpoch, 1), latency: world.Latency{Base: 3 * time.Millisecond}}
	p.sqs = p.loop.NewService()
	suffix := map[bool]string{true: ".fifo"}[queue.FIFO]
	dead := p.sqs.Create("dead"+suffix, engine.Settings{FIFO: queue.FIFO})
	queue.Visibility, queue.DeadLetter = 30*time.Second, "dead"+suffix
	p.queue = p.sqs.Create("main"+suffix, queue)
	for i := range agreeingMessages {
		m := engine.Message{Delay: -1, Payload: &letter{body: "m"}}
		if queue.FIFO {
			m.Group, m.Dedup = fmt.Sprint(i%13), fmt.Sprint(i)
		}
		p.queue.Put(m)
	}
	start(t, p, cfg, func(origin string, n int) error {
		a.attempts[origin] = append(a.attempts[origin], fmt.Sprintf("%d at %v", n, p.loop.Since()))
		h := fnv.New32a()
		fmt.Fprint(h, origin, n)
		if h.Sum32()*2654435761>>16%100 < 60 { // the sum alone differs too little between attempts
			return errOfHandler
		}
		return nil
	})
	if err := p.loop.Run(12 * time.Hour); err != nil {
		t.Fatal(err)
	}
	count := func(q *world.Queue) int {
		visible, inFlight, delayed := q.Counts()
		return visible + inFlight + delayed
	}
	a.dead, a.left = count(dead), count(p.queue)
	return a
}

// place is where an agreeing consumer runs.
type place struct {
	loop    *world.Loop
	sqs     *world.Service
	queue   *world.Queue
	latency world.Latency
}

const agreeingRun = 1500 * time.Millisecond

func startShell(t *testing.T, p place, cfg Config, attempt func(string, int) error) {
	t.Helper()
	model := func(messages []*Message) work {
		err := attempt(messages[0].OriginID, messages[0].Attempt)
		return work{takes: agreeingRun, finished: func() {}, errs: func() []error { return []error{err} }}
	}
	h := newHost(p.loop, p.loop.Start("node", 0, 0))
	if err := simulateOne(h, simulation{sqs: p.sqs, queue: p.queue, latency: p.latency, spec: spec{cfg: cfg}}, model); err != nil {
		t.Fatal(err)
	}
}

func startSimulation(t *testing.T, p place, cfg Config, attempt func(string, int) error) {
	t.Helper()
	queue := queueURL{url: urlOf(p.queue.Name()), name: p.queue.Name(), fifo: p.queue.Settings().FIFO}
	c := &Consumer{cfg: cfg.withDefaults(), queue: queue, copyTo: queue}
	s, err := direct.New(direct.Spec{
		Settings: c.machineSettings(), Process: p.loop.Start("node", 0, 0), Service: p.sqs, Queue: p.queue, Latency: p.latency, Size: 1,
		Handler: func(m *direct.Message) direct.Run {
			return direct.Run{Takes: agreeingRun, Err: attempt(m.OriginID, m.Attempt), Ignores: true} // as the shell's model does
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
}

// TestSimulatedFailures checks that internal/simulation tells the machine the same of each failure of a
// request as this package tells it of SQS's error.
func TestSimulatedFailures(t *testing.T) {
	for _, err := range []error{
		world.ErrLost, world.ErrThrottled, world.ErrServer, world.ErrDenied, world.ErrKey, world.ErrUnacceptable, engine.ErrOverLimit,
		errors.New("another"),
	} {
		if shell, other := failureOf(failure(err)).Kinds, direct.Failure(err).Kinds; shell != other {
			t.Errorf("%v: kinds %b in this package, %b in internal/simulation", err, shell, other)
		}
	}
}
