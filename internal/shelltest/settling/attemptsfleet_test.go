package settling

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestFleetRunsEachAttemptOnce: in calm, whatever the settings, run n of a message is attempt n, and
// a message that always fails is run MaxAttempts times, by a fleet of which no process sees all of
// its receives, and with ViaRequeue by processes that are stopped all the time too.
func TestFleetRunsEachAttemptOnce(t *testing.T) {
	for seed := range uint64(race.Fewer(60, 2)) {
		f := drawFleet(seed)
		t.Run(f.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f.runEachAttemptOnce(t) })
		})
	}
}

// calmFleet is a fleet of consumers of one queue, without faults.
type calmFleet struct {
	seed                uint64
	processes, receives int // receives: the queue's maxReceiveCount
	attempts, messages  int
	concurrency         int
	base, takes         time.Duration
	doubling, jitter    bool
	lane                bool
	via                 reprise.Via
	restarts            time.Duration // how long processes run until others replace them; 0: for ever
}

func drawFleet(seed uint64) calmFleet {
	random := rand.New(rand.NewPCG(seed, 1))
	duration := func(from, to time.Duration) time.Duration {
		return from + time.Duration(random.Int64N(int64(to-from)))
	}
	bases := []time.Duration{8 * time.Second, duration(time.Second, time.Minute), duration(time.Minute, 20*time.Minute), duration(12*time.Hour, 20*time.Hour)}
	f := calmFleet{
		seed:        seed,
		processes:   1 + random.IntN(4),
		receives:    []int{2, 3, 4, 10, 1000}[random.IntN(5)],
		attempts:    1 + random.IntN(9),
		messages:    40,
		concurrency: 1 + random.IntN(40),
		base:        bases[random.IntN(len(bases))],
		takes:       duration(1, 2*time.Second),
		doubling:    random.IntN(2) == 0,
		jitter:      random.IntN(3) == 0,
		lane:        random.IntN(3) == 0,
		via:         []reprise.Via{reprise.ViaAuto, reprise.ViaRequeue}[random.IntN(2)],
	}
	if f.via == reprise.ViaRequeue && random.IntN(2) == 0 {
		f.restarts = duration(5*time.Second, 2*time.Minute)
	}
	return f
}

func (f calmFleet) String() string {
	return fmt.Sprintf("%d: %d processes of %d places, %d receives, %d attempts, base %v doubling=%v jitter=%v, runs of %v, lane=%v, via=%v, restarts after %v",
		f.seed, f.processes, f.concurrency, f.receives, f.attempts, f.base, f.doubling, f.jitter, f.takes, f.lane, f.via, f.restarts)
}

func (f calmFleet) runEachAttemptOnce(t *testing.T) {
	q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": strconv.Itoa(14 * 24 * 3600)})
	dead := q.NewDeadLetterQueue(f.receives)
	cfg := reprise.Config{
		Concurrency: f.concurrency,
		Via:         f.via,
		Retry:       retry.Policy{Backoff: retry.Constant(f.base), Jitter: retry.None, MaxAttempts: f.attempts, MaxAge: -1},
		Logger:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if f.doubling {
		cfg.Retry.Backoff = retry.Exponential{Base: f.base, Max: 30 * time.Hour}
	}
	if f.jitter {
		cfg.Retry.Jitter = retry.Full
	}
	if f.lane {
		cfg.DeadLetterURL = dead.URL()
		cfg.RetryLane = reprise.RetryLane{URL: q.NewQueue(map[string]string{"MessageRetentionPeriod": strconv.Itoa(14 * 24 * 3600)}).URL()}
	}
	random := rand.New(rand.NewPCG(f.seed, 2))
	var mu sync.Mutex
	runs := make(map[string][]int)
	handler := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		mu.Lock()
		runs[m.Body] = append(runs[m.Body], m.Attempt)
		took := time.Duration(random.Int64N(int64(f.takes)))
		mu.Unlock()
		time.Sleep(took)
		return kit.ErrUnavailable
	})
	for i := range f.messages {
		q.Send(fmt.Sprint(i))
	}
	if f.restarts > 0 {
		for range 20 {
			var deployed []*reprisetest.Consumer
			for range f.processes {
				deployed = append(deployed, q.Consume(handler, cfg))
			}
			time.Sleep(f.restarts)
			for _, c := range deployed {
				c.Stop()
			}
		}
	}
	for range f.processes {
		q.Consume(handler, cfg)
	}
	for wait := time.Hour; wait < 20*24*time.Hour && len(dead.Messages()) < f.messages; wait *= 2 {
		time.Sleep(wait)
	}
	if n := len(dead.Messages()); n != f.messages {
		t.Errorf("%d dead letters, want %d", n, f.messages)
	}
	mu.Lock()
	defer mu.Unlock()
	var want []int
	for n := range f.attempts {
		want = append(want, n+1)
	}
	wrong := 0
	for body, made := range runs {
		if !slices.Equal(made, want) {
			if wrong++; wrong <= 2 {
				t.Errorf("message %s was run as the attempts %v", body, made)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d messages were not run as the attempts 1 to %d", wrong, f.messages, f.attempts)
	}
}
