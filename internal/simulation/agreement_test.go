package simulation_test

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestSimulationAgrees checks that a simulated consumer makes the same attempts as the consumers of users
// do in a bubble of testing/synctest, at the same times but for the rounding to whole seconds, which a
// millisecond of network can decide.
func TestSimulationAgrees(t *testing.T) {
	policy := retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: 5, MaxAge: -1}
	for _, test := range []struct {
		name     string
		receives int
		fifo     bool
		cfg      reprise.Config
	}{
		{name: "hides", receives: 100},
		{name: "copies", receives: 100, cfg: reprise.Config{Via: reprise.ViaRequeue}},
		{name: "copies at the last receive", receives: 3},
		{name: "rate", receives: 100, cfg: reprise.Config{Rate: 7}},
		{name: "short lease", receives: 100, cfg: reprise.Config{Lease: 2 * time.Second}},
		{name: "timeout", receives: 100, cfg: reprise.Config{HandlerTimeout: time.Second}}, // shorter than a run
		{name: "fifo", receives: 100, fifo: true},
		{name: "fifo blocks", receives: 100, fifo: true, cfg: reprise.Config{FIFO: reprise.FIFOBlock}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.Retry = policy
			if made := agree(t, test.name, test.receives, test.fifo, test.cfg); made < 3*agreeing/2 {
				t.Errorf("%d attempts were made, want more: some fail", made)
			}
		})
	}
}

var agreements = flag.Int("agree.seeds", 60, "in how many random configurations TestSimulationAgreesAtRandom compares attempts")

// TestSimulationAgreesAtRandom checks the same in random configurations.
func TestSimulationAgreesAtRandom(t *testing.T) {
	made := 0
	for seed := range uint64(*agreements) { //nolint:gosec // G115: a small number
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: configurations of a test
		fifo, receives := r.IntN(3) == 0, 3+r.IntN(100)
		cfg := reprise.Config{
			Prefetch: r.IntN(40) - 1, Lease: time.Duration(2+r.IntN(90)) * time.Second, LongPoll: time.Duration(1+r.IntN(20)) * time.Second,
			Retry: retry.Policy{
				Backoff: retry.Exponential{Base: time.Duration(1+r.IntN(5000)) * time.Millisecond, Max: time.Duration(10+r.IntN(600)) * time.Second},
				Jitter:  retry.Jitter(r.IntN(5)), MaxAttempts: 1 + r.IntN(8), MaxAge: -1, //nolint:gosec // G115: small numbers
			},
		}
		if fifo {
			cfg.FIFO = reprise.FIFO(r.IntN(3)) //nolint:gosec // G115: a small number
			receives = 1000                    // messages behind others use them up, and how fast depends on the order of replies
		} else {
			cfg.Via = reprise.Via(r.IntN(3)) //nolint:gosec // G115: a small number
		}
		if r.IntN(4) == 0 {
			cfg.HandlerTimeout = time.Second // shorter than a run
		}
		made += agree(t, fmt.Sprintf("seed %d, fifo %v, %d receives, %+v", seed, fifo, receives, cfg), receives, fifo, cfg)
	}
	if least := *agreements * agreeing * 3 / 2; made < least {
		t.Errorf("%d attempts were compared, want at least %d", made, least)
	}
}

// agree checks that the attempts of a consumer and of a simulated one agree, and returns how many they are.
func agree(t *testing.T, name string, receives int, fifo bool, cfg reprise.Config) (made int) {
	t.Helper()
	cfg.Concurrency = agreeing // no message waits for another, but in its group
	ids, real := consumed(t, receives, fifo, cfg)
	simulated := simulate(t, receives, fifo, cfg, ids)
	if len(real) != agreeing || len(simulated) != agreeing {
		t.Fatalf("%s: %d and %d messages were tried, want %d", name, len(real), len(simulated), agreeing)
	}
	if cfg.Rate > 0 { // which message has the next turn is chance
		real, simulated = joined(real), joined(simulated)
	}
	for id, attempts := range real {
		other := simulated[id]
		if made += len(attempts); len(attempts) != len(other) {
			t.Fatalf("%s: message %s is tried %d times by the consumer, and %d times in the simulation", name, id, len(attempts), len(other))
		}
		for i := range attempts {
			if (attempts[i] - other[i]).Abs() > time.Duration(min(i+1, cfg.Retry.MaxAttempts))*roundings {
				t.Fatalf("%s: attempt %d at %s starts at %v, and in the simulation at %v", name, i+1, id, attempts[i], other[i])
			}
		}
	}
	return made
}

const (
	agreeing    = 60
	agreeingRun = 1500 * time.Millisecond
	agreeingFor = 2 * time.Hour
	roundings   = time.Second + 250*time.Millisecond
)

// joined are the attempts at all messages, as if they were one.
func joined(attempts map[string][]time.Duration) map[string][]time.Duration {
	var all []time.Duration
	for _, times := range attempts {
		all = append(all, times...)
	}
	slices.Sort(all)
	return map[string][]time.Duration{"any": all}
}

// consumed is when a consumer starts its attempts at messages, whose ids are given in the order in which
// they were sent.
func consumed(t *testing.T, receives int, fifo bool, cfg reprise.Config) (ids []string, attempts map[string][]time.Duration) {
	attempts = make(map[string][]time.Duration)
	synctest.Test(t, func(t *testing.T) {
		var attributes map[string]string
		if fifo {
			attributes = map[string]string{"FifoQueue": "true"}
		}
		q := reprisetest.NewQueue(t, attributes)
		q.NewDeadLetterQueue(receives)
		for i := range agreeing {
			e := sqsserver.SendMessageEntry{MessageBody: "m"}
			if fifo {
				e.MessageGroupId, e.MessageDeduplicationId = fmt.Sprint(i%13), fmt.Sprint(i)
			}
			ids = append(ids, q.SendMessage(e))
		}
		var mu sync.Mutex
		began := time.Now()
		cfg.Outage.Off, cfg.Logger = true, slog.New(slog.DiscardHandler)
		q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			mu.Lock()
			attempts[m.OriginID] = append(attempts[m.OriginID], time.Since(began))
			mu.Unlock()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(agreeingRun):
			}
			if fails(&simulation.Message{OriginID: m.OriginID, Attempt: m.Attempt}, 60) {
				return errFailed
			}
			return nil
		}), cfg)
		time.Sleep(agreeingFor)
	})
	return ids, attempts
}

// simulate is the same for a simulated consumer. Its messages have the same ids, since jitter depends on
// them.
func simulate(t *testing.T, receives int, fifo bool, cfg reprise.Config, ids []string) map[string][]time.Duration {
	attempts := make(map[string][]time.Duration)
	s := newScenario(t, 1, engine.Settings{FIFO: fifo, MaxReceives: receives}, func(spec *simulation.Spec) {
		set := &spec.Settings
		set.Retry, set.Concurrency, set.BreakerOff, set.Rate, set.Via, set.FIFO, set.HandlerTimeout = cfg.Retry, cfg.Concurrency, true, cfg.Rate, cfg.Via, consumer.FIFO(cfg.FIFO), cfg.HandlerTimeout
		if cfg.Lease > 0 {
			set.Lease = cfg.Lease
		}
		if cfg.LongPoll > 0 {
			set.LongPoll = cfg.LongPoll
		}
		if cfg.Prefetch != 0 {
			set.Prefetch = max(cfg.Prefetch, 0)
		}
		spec.Attempted, spec.Settled = nil, nil
		spec.Handler = func(m *simulation.Message) simulation.Run {
			attempts[m.OriginID] = append(attempts[m.OriginID], m.Now.Sub(epoch))
			if fails(m, 60) {
				return simulation.Run{Takes: agreeingRun, Err: errFailed}
			}
			return simulation.Run{Takes: agreeingRun}
		}
	})
	for i, id := range ids {
		m := engine.Message{Payload: i, Delay: -1}
		if _, err := hex.Decode(m.ID[:], []byte(strings.ReplaceAll(id, "-", ""))); err != nil {
			t.Fatal(err)
		}
		if fifo {
			m.Group, m.Dedup = fmt.Sprint(i%13), fmt.Sprint(i)
		}
		s.queue.Put(m)
	}
	s.runFor(t, agreeingFor)
	return attempts
}
