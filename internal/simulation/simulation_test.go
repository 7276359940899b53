package simulation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// TestEndsOfAttempts checks what becomes of one message by what its handler does.
func TestEndsOfAttempts(t *testing.T) {
	const takes = 20 * time.Millisecond
	for _, test := range []struct {
		name     string
		queue    engine.Settings
		change   func(*consumer.Settings)
		handler  func(m *simulation.Message) simulation.Run
		attempts int
		outcome  consumer.Outcome // of the last settlement
		dead     int
	}{
		{name: "success", handler: func(*simulation.Message) simulation.Run { return simulation.Run{Takes: takes} }, attempts: 1},
		{name: "third attempt succeeds", handler: func(m *simulation.Message) simulation.Run {
			if m.Attempt < 3 {
				return simulation.Run{Takes: takes, Err: errFailed}
			}
			return simulation.Run{Takes: takes}
		}, attempts: 3},
		{name: "attempts used up", handler: func(*simulation.Message) simulation.Run { return simulation.Run{Takes: takes, Err: errFailed} },
			attempts: 4, outcome: consumer.OutcomeDeadLetter, dead: 1},
		{name: "permanent", handler: func(*simulation.Message) simulation.Run {
			return simulation.Run{Takes: takes, Err: retry.Permanent(errFailed)}
		}, attempts: 1, outcome: consumer.OutcomeDeadLetter, dead: 1},
		{name: "copies", change: func(s *consumer.Settings) { s.Via = plan.ViaRequeue }, handler: func(m *simulation.Message) simulation.Run {
			if m.Attempt < 4 {
				return simulation.Run{Takes: takes, Err: errFailed}
			}
			return simulation.Run{Takes: takes}
		}, attempts: 4},
		{name: "last receive", queue: engine.Settings{MaxReceives: 2}, handler: func(m *simulation.Message) simulation.Run {
			if m.Attempt < 4 {
				return simulation.Run{Takes: takes, Err: errFailed}
			}
			return simulation.Run{Takes: takes}
		}, attempts: 4},
		{name: "timeout", change: func(s *consumer.Settings) { s.HandlerTimeout = time.Second }, handler: func(*simulation.Message) simulation.Run {
			return simulation.Run{Takes: time.Hour}
		}, attempts: 4, outcome: consumer.OutcomeDeadLetter, dead: 1},
		{name: "longer than its lease", handler: func(*simulation.Message) simulation.Run { return simulation.Run{Takes: 10 * time.Minute} }, attempts: 1},
		{name: "fifo", queue: engine.Settings{FIFO: true}, handler: func(*simulation.Message) simulation.Run {
			return simulation.Run{Takes: takes, Err: errFailed}
		}, attempts: 4, outcome: consumer.OutcomeDeadLetter, dead: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScenario(t, 1, test.queue, func(spec *simulation.Spec) {
				spec.Handler = test.handler
				if test.change != nil {
					test.change(&spec.Settings)
				}
			})
			s.put(1, 1)
			s.runFor(t, time.Hour)
			if len(s.attempts) != 1 || left(s.queue) != 0 || left(s.dead) != test.dead || s.settled[test.outcome] != 1 {
				t.Fatalf("%d origins, %d messages left, %d dead, settled %v; want 1, 0, %d, one %v:\n%s", len(s.attempts), left(s.queue), left(s.dead), s.settled, test.dead, test.outcome, strings.Join(s.story, "\n"))
			}
			for _, attempts := range s.attempts {
				if len(attempts) != test.attempts {
					t.Errorf("%d attempts, want %d:\n%s", len(attempts), test.attempts, strings.Join(s.story, "\n"))
				}
				for i, a := range attempts {
					if a.Attempt != i+1 {
						t.Errorf("attempt %d has the number %d", i+1, a.Attempt)
					}
					if i > 0 && a.Started.Before(attempts[i-1].Due) {
						t.Errorf("attempt %d starts at %v, before it is due at %v", i+1, a.Started, attempts[i-1].Due)
					}
				}
			}
			if test.dead > 0 {
				letter, ok := s.dead.Messages()[0].Payload.(*simulation.DeadLetter)
				if !ok || letter.Payload != 0 || letter.Story.Attempts != test.attempts || letter.Story.Err == nil {
					t.Errorf("the dead letter is %+v, want the payload 0, %d attempts and an error", letter, test.attempts)
				}
			}
		})
	}
}

// TestNothingIsLost checks over seeds that every message ends once, through faults of every kind, and
// that a seed tells the same story each time.
func TestNothingIsLost(t *testing.T) {
	const messages = 300
	for seed := range uint64(18) {
		live := func() *scenario {
			fifo := seed%3 == 2
			s := newScenario(t, seed, engine.Settings{FIFO: fifo}, func(spec *simulation.Spec) {
				spec.Settings.Seed = seed
				if !fifo && seed%2 == 1 {
					spec.Settings.Via = plan.ViaRequeue
				}
				spec.Faults = map[world.Action]world.Faults{"": {LoseRequest: 0.02, LoseReply: 0.02, Throttle: 0.02, Fail: 0.02, FailEntry: 0.02}}
				spec.Handler = func(m *simulation.Message) simulation.Run {
					r := simulation.Run{Takes: 20 * time.Millisecond}
					if fails(m, 40) {
						r.Err = errFailed
					}
					return r
				}
			})
			s.put(messages, 17)
			s.runFor(t, 6*time.Hour)
			return s
		}
		s := live()
		if left(s.queue) != 0 || len(s.attempts) != messages {
			t.Fatalf("seed %d: %d messages are left and %d were tried, want 0 and %d", seed, left(s.queue), len(s.attempts), messages)
		}
		given := make(map[any]bool)
		for _, d := range s.dead.Messages() {
			given[d.Payload.(*simulation.DeadLetter).Payload] = true
		}
		done := 0
		for _, attempts := range s.attempts {
			for _, a := range attempts {
				if a.Err == nil {
					done++
					break
				}
			}
		}
		if done+len(given) < messages {
			t.Fatalf("seed %d: %d messages are done and %d dead-lettered, of %d", seed, done, len(given), messages)
		}
		if again := live(); strings.Join(again.story, "\n") != strings.Join(s.story, "\n") {
			t.Fatalf("seed %d tells two stories", seed)
		}
	}
}

// TestOutageUsesUpNoAttempts checks that the breaker holds messages while the dependency is down, and
// that a probe or a message finds out when it is back.
func TestOutageUsesUpNoAttempts(t *testing.T) {
	for _, probes := range []bool{false, true} {
		t.Run(fmt.Sprintf("probe=%v", probes), func(t *testing.T) {
			const outage = time.Hour
			opened, probed := 0, 0
			back := epoch.Add(outage)
			var s *scenario
			s = newScenario(t, 1, engine.Settings{}, func(spec *simulation.Spec) {
				spec.Handler = func(m *simulation.Message) simulation.Run {
					if m.Now.Before(back) {
						return simulation.Run{Takes: 20 * time.Millisecond, Err: errFailed, Unavailable: true}
					}
					return simulation.Run{Takes: 20 * time.Millisecond}
				}
				if probes {
					spec.Probe = func(string) error {
						probed++
						if s.process.Now().Before(back) {
							return errFailed
						}
						return nil
					}
				}
				spec.Reported = func(r consumer.Report) {
					if o, ok := r.(consumer.Outage); ok && o.State != o.Previous {
						opened++
					}
				}
			})
			s.put(200, 1)
			s.runFor(t, outage+20*time.Minute)
			if left(s.queue) != 0 || left(s.dead) != 0 || opened == 0 || probes != (probed > 0) {
				t.Errorf("%d messages are left, %d are dead, the breaker changed %d times, %d probes", left(s.queue), left(s.dead), opened, probed)
			}
		})
	}
}

// TestStop checks that a stop settles what runs, gives the rest back, and ends once.
func TestStop(t *testing.T) {
	for _, test := range []struct {
		name    string
		takes   time.Duration
		ignores bool
		within  time.Duration
		left    int // messages of which the stop says that they are left
	}{
		{name: "short handlers", takes: 100 * time.Millisecond, within: 21 * time.Second},
		{name: "long handlers heed", takes: time.Hour, within: 23 * time.Second},
		{name: "long handlers ignore", takes: time.Hour, ignores: true, within: 25 * time.Second, left: 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScenario(t, 1, engine.Settings{}, func(spec *simulation.Spec) {
				spec.Handler = func(*simulation.Message) simulation.Run {
					return simulation.Run{Takes: test.takes, Ignores: test.ignores}
				}
			})
			s.put(1000, 1)
			s.runFor(t, time.Second)
			began, took, stops := s.Since(), time.Duration(0), 0
			var last simulation.Left
			s.Stop(func(l simulation.Left) { stops++; last, took = l, s.Since()-began })
			s.runFor(t, time.Minute)
			if stops != 1 || took > test.within || len(last.Abandoned) != test.left || len(last.Unsettled) != 0 {
				t.Errorf("%d stops, after %v, which left %+v; want 1 within %v that leaves %d handlers", stops, took, last, test.within, test.left)
			}
			attempts := len(s.attempts)
			s.runFor(t, time.Minute)
			if len(s.attempts) != attempts || left(s.queue)+s.settled[consumer.OutcomeDelete] != 1000 {
				t.Errorf("%d and %d messages were tried, %d are left and %d deleted of 1000", attempts, len(s.attempts), left(s.queue), s.settled[consumer.OutcomeDelete])
			}
		})
	}
}

// TestPause checks that an operator can pause and resume a consumer.
func TestPause(t *testing.T) {
	s := newScenario(t, 1, engine.Settings{}, nil)
	s.Operate(func(m *consumer.Machine) { m.SetPaused(true) })
	s.put(50, 1)
	s.runFor(t, time.Hour)
	if len(s.attempts) != 0 {
		t.Errorf("%d messages were tried in a pause", len(s.attempts))
	}
	s.Operate(func(m *consumer.Machine) { m.SetPaused(false) })
	s.runFor(t, time.Minute)
	if len(s.attempts) != 50 || left(s.queue) != 0 {
		t.Errorf("%d messages were tried after the pause, %d are left; want 50 and 0", len(s.attempts), left(s.queue))
	}
}

// TestRefusedSpecs checks that what cannot be simulated is refused with a remedy.
func TestRefusedSpecs(t *testing.T) {
	for want, change := range map[string]func(*simulation.Spec){
		"set all four":                func(s *simulation.Spec) { s.Handler = nil },
		"Concurrency is 0":            func(s *simulation.Spec) { s.Settings.Concurrency = 0 },
		"Lease is 1s":                 func(s *simulation.Spec) { s.Settings.Lease = time.Second },
		"LongPoll is 0s":              func(s *simulation.Spec) { s.Settings.LongPoll = 0 },
		"StopBudget is 0s":            func(s *simulation.Spec) { s.Settings.StopBudget = 0 },
		"or BreakerOff":               func(s *simulation.Spec) { s.Settings.Threshold = 0 },
		"or BatchHandler for batches": func(s *simulation.Spec) { s.Settings.Batch.Size = 10 },
		"create it first":             func(s *simulation.Spec) { s.Settings.DeadLetterURL = "nowhere" },
	} {
		l := world.NewLoop(epoch, 1)
		service := l.NewService()
		spec := simulation.Spec{
			Settings: settings(), Process: l.Start("node", 0, 0), Service: service, Queue: service.Create("main", engine.Settings{}),
			Handler: func(*simulation.Message) simulation.Run { return simulation.Run{} },
		}
		change(&spec)
		if _, err := simulation.New(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one that contains %q", err, want)
		}
	}
}
