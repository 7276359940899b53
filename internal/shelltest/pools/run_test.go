package pools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestPoolRunsAndStopsAll: all consumers stop within one budget, whatever their priorities: running
// handlers end, other messages are given back.
func TestPoolRunsAndStopsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 5), kit.NewStarts()
		if err := pool.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no consumers") {
			t.Errorf("a pool without consumers ran: %v", err)
		}
		var queues []*reprisetest.Queue
		for i := range 4 {
			q := reprisetest.NewQueue(t, nil)
			q.Send(kit.Numbered(100)...)
			cfg := reprise.Config{Logger: slog.New(slog.DiscardHandler)}
			if _, err := pool.Add(q.Direct(), q.URL(), s.Handler(fmt.Sprint(i), 8*time.Second), reprise.Share{Priority: i % 2}, cfg); err != nil {
				t.Fatal(err)
			}
			queues = append(queues, q)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- pool.Run(ctx) }()
		time.Sleep(time.Minute)
		if p := pool.Status(); len(p.Queues) != 4 || p.Queues[0].Share.Priority != 1 || p.Queues[3].Share != (reprise.Share{Weight: 1}) || p.Handlers != 5 {
			t.Errorf("status %+v", p)
		}
		if err := pool.Run(ctx); err == nil || !strings.Contains(err.Error(), "runs already") {
			t.Errorf("a pool ran twice: %v", err)
		}
		stop()
		stopped := time.Now()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(stopped); took > 25*time.Second {
			t.Errorf("the stop took %v, want one budget of 25 s", took)
		}
		for _, q := range queues {
			for _, m := range q.Messages() {
				if m.State == sqsserver.InFlight {
					t.Errorf("message %s of %s was not given back", m.ID, q.Name())
				}
			}
		}
		if p := pool.Status(); len(p.Queues) != 0 || p.Handlers != 0 {
			t.Errorf("after the stop: %+v", p)
		}
	})
}

// TestOneOfAPoolStops: the consumer of the highest priority stops while others go on. Messages that
// it has not started are given back, and the others get its places. A consumer that starts later
// gets its turns.
func TestOneOfAPoolStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 4), kit.NewStarts()
		high, low := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		high.Send(kit.Numbered(1000)...)
		low.Send(kit.Numbered(1000)...)
		low.In(pool, reprise.Share{}).Consume(s.Handler("low", time.Second), reprise.Config{})
		c := high.In(pool, reprise.Share{Priority: 1}).Consume(s.Handler("high", time.Second), reprise.Config{})
		time.Sleep(10500 * time.Millisecond)
		if report := c.Stop(); c.Err() != nil || !report.Drained() || report.Stranded {
			t.Errorf("stop: %v, %v", c.Err(), report)
		}
		from := time.Now()
		time.Sleep(20 * time.Second)
		if n := s.Of("low", from, time.Now()); n != 80 {
			t.Errorf("%d were started in 20 s by the other, want 80", n)
		}
		high.In(pool, reprise.Share{Priority: 1}).Consume(s.Handler("high", time.Second), reprise.Config{})
		time.Sleep(time.Second)
		from = time.Now()
		time.Sleep(20 * time.Second)
		if h, l := s.Of("high", from, time.Now()), s.Of("low", from, time.Now()); h != 80 || l != 0 {
			t.Errorf("%d were started by the one that came, and %d by the other: want 80 and 0", h, l)
		}
	})
}

// TestLowPriorityDrains: a consumer of a low priority stops within its budget although a higher one
// keeps the pool busy, and no message is left hidden.
func TestLowPriorityDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 2), kit.NewStarts()
		high, low := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		low.Send(kit.Numbered(100)...)
		c := low.In(pool, reprise.Share{}).Consume(s.Handler("low", 100*time.Millisecond), reprise.Config{})
		time.Sleep(time.Second)
		high.Send(kit.Numbered(1000)...)
		high.In(pool, reprise.Share{Priority: 1}).Consume(s.Handler("high", time.Second), reprise.Config{})
		time.Sleep(time.Minute)
		if n := c.Status(); n.Waiting == 0 {
			t.Fatal("nothing waits, so that nothing is tested")
		}
		if report := c.Stop(); c.Err() != nil || !report.Drained() || report.Took > 25*time.Second {
			t.Errorf("stop: %v, %v", c.Err(), report)
		}
		for _, m := range low.Messages() {
			if m.State == sqsserver.InFlight {
				t.Errorf("message %s was not given back", m.ID)
			}
		}
	})
}

// TestAbandonedHandlersKeepTheirPlaces: handlers keep their places until they return, even if that
// is after their consumer has stopped.
func TestAbandonedHandlersKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 4), kit.NewStarts()
		stuck, other := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		stuck.Send("1", "2", "3")
		release := make(chan struct{})
		c := stuck.In(pool, reprise.Share{}).Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			<-release
			return nil
		}), reprise.Config{StopBudget: time.Second})
		time.Sleep(time.Second)
		if report := c.Stop(); !errors.Is(c.Err(), reprise.ErrDrainTimeout) || len(report.Abandoned) != 3 {
			t.Errorf("stop: %v, %v", c.Err(), report)
		}
		other.Send(kit.Numbered(1000)...)
		other.In(pool, reprise.Share{}).Consume(s.Handler("other", time.Second), reprise.Config{})
		time.Sleep(10500 * time.Millisecond)
		if p := pool.Status(); p.Handlers != 4 || s.Peak("other") != 1 {
			t.Errorf("%d handlers, %d of the other at once: want 4, and 1", p.Handlers, s.Peak("other"))
		}
		close(release)
		time.Sleep(10 * time.Second)
		if p := pool.Status(); len(p.Queues) != 1 || s.Peak("other") != 4 {
			t.Errorf("%d queues, %d at once: want the other's only, with all places", len(p.Queues), s.Peak("other"))
		}
	})
}

// TestPanicsFreeTheirPlaces: handlers that panic, or end their goroutine, cost no place
// of the pool.
func TestPanicsFreeTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 2), kit.NewStarts()
		bad, good := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		bad.Send(kit.Numbered(50)...)
		good.Send(kit.Numbered(50)...)
		bad.In(pool, reprise.Share{}).Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			switch {
			case m.Attempt > 1:
				return nil
			case len(m.Body) == 1:
				runtime.Goexit()
			}
			panic("bad")
		}), reprise.Config{Logger: slog.New(slog.DiscardHandler), Retry: retry.Policy{Backoff: retry.Constant(time.Second)}})
		good.In(pool, reprise.Share{}).Consume(s.Handler("good", time.Second), reprise.Config{})
		bad.WaitEmpty(5 * time.Minute)
		good.WaitEmpty(5 * time.Minute)
	})
}

// TestBatchesInAPool: a batch takes one place and one turn, whatever its size, and needs no place
// while it lingers.
func TestBatchesInAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 2), kit.NewStarts()
		single, batched := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		single.Send(kit.Numbered(200)...)
		batched.Send(kit.Numbered(2000)...)
		one := s.Handler("single", time.Second)
		many := s.Handler("batched", time.Second)
		single.In(pool, reprise.Share{}).Consume(one, reprise.Config{Prefetch: 40})
		c := batched.In(pool, reprise.Share{}).ConsumeBatch(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			if err := many.Handle(ctx, ms[0]); err != nil {
				return slices.Repeat([]error{err}, len(ms))
			}
			return nil
		}), reprise.BatchConfig{Size: 20, Linger: 10 * time.Second, Config: reprise.Config{Prefetch: 100}})
		time.Sleep(20500 * time.Millisecond)
		from := time.Now()
		time.Sleep(40 * time.Second)
		if o, m := s.Of("single", from, time.Now()), s.Of("batched", from, time.Now()); o != 40 || m != 40 {
			t.Errorf("%d single messages and %d batches were started in 40 s, want 40 each", o, m)
		}
		single.WaitEmpty(5 * time.Minute)
		batched.WaitEmpty(5 * time.Minute)
		if n := c.Status().Counts; n.Batches < 100 || n.Batches > 102 || n.Attempts != 2000 {
			t.Errorf("counts %+v, want 100 batches of 20", n)
		}
	})
}

// TestPoolSparesTheOthersASuspect: a message that kills the process runs alone in the whole pool,
// and is dead-lettered as a crash. The messages of other queues whose runs it has ended are not.
func TestPoolSparesTheOthersASuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
		deadBad, deadGood := bad.NewDeadLetterQueue(50), good.NewDeadLetterQueue(50)
		bad.Send(kit.Numbered(50)...)
		bad.Send("poison")
		good.Send(kit.Numbered(3000)...) // more than there is time for
		var mu sync.Mutex
		var beside []int // handlers, at each death
		policy := retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 5}
		for end := time.Now().Add(2 * time.Hour); time.Now().Before(end); time.Sleep(2 * time.Second) {
			pool, s := kit.PoolOf(t, 5), kit.NewStarts()
			died := make(chan struct{})
			var all []*reprisetest.Consumer
			h := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
				n, _ := strconv.Atoi(m.Body)
				return s.Handler("any", time.Duration(15+n%10)*time.Second).Handle(ctx, m)
			})
			cfg := reprise.Config{Retry: policy, Logger: slog.New(slog.DiscardHandler)}
			started := make(chan struct{})
			all = append(all, good.In(pool, reprise.Share{}).Consume(h, cfg))
			time.Sleep(5 * time.Second) // by when it has the places
			all = append(all, bad.In(pool, reprise.Share{}).Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
				<-started
				if m.Body != "poison" {
					return h.Handle(ctx, m)
				}
				time.Sleep(100 * time.Millisecond) // others may have started with it
				mu.Lock()
				s.Mu.Lock()
				beside = append(beside, s.Running[""])
				s.Mu.Unlock()
				mu.Unlock()
				for _, c := range all {
					c.Crash()
				}
				close(died)
				<-ctx.Done()
				return ctx.Err()
			}), cfg))
			close(started)
			select {
			case <-died:
			case <-time.After(time.Until(end)):
			}
			for _, c := range all {
				c.Stop()
			}
		}
		letters := deadBad.Messages()
		if len(letters) != 1 || letters[0].Body != "poison" || kit.StoryOf(t, letters[0]).Reason != "crash" {
			t.Fatalf("dead letters %+v, want the poison, for what it does", letters)
		}
		if n := len(deadGood.Messages()); n != 0 {
			t.Errorf("%d innocent dead letters", n)
		}
		if left := len(bad.Messages()); left != 0 {
			t.Errorf("%d messages are left beside the poison", left)
		}
		if n := len(beside); n < 3 || n > 8 || beside[0] == 0 || beside[n-2] != 0 || beside[n-1] != 0 {
			t.Errorf("so many ran beside it at its deaths: %v, want none at the last two", beside)
		}
	})
}

// TestPoolOfAFleet: processes, each with a pool over a standard queue, a FIFO queue and a queue
// processed in batches, half of them with a retry lane, are stopped and crash at random while
// handlers fail and are slow. No message is lost, the order of groups holds, no more handlers run
// than there are places, and at the end no goroutine is left, or the bubble would not end.
func TestPoolOfAFleet(t *testing.T) {
	for seed := range uint64(race.Fewer(20, 4)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { poolFleet(t, rand.New(rand.NewPCG(seed, 1)), seed%2 == 0) })
		})
	}
}

// poolFleet runs the fleet of one seed.
func poolFleet(t *testing.T, chance *rand.Rand, withRetryLane bool) {
	standard, fifo, batched := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, kit.FIFOQueue), reprisetest.NewQueue(t, nil)
	lane := standard.NewQueue(nil)
	var mu sync.Mutex
	done := make(map[string]bool)
	last := make(map[string]string)                   // of the FIFO groups
	luck := rand.New(rand.NewPCG(chance.Uint64(), 0)) // of the handlers
	work := func(s *kit.Starts, queue string, most int) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			s.Count(queue, 1)
			defer s.Count(queue, -1)
			s.Mu.Lock()
			if s.Running[""] > most {
				t.Errorf("%d handlers run, of %d places", s.Running[""], most)
			}
			s.Mu.Unlock()
			mu.Lock()
			took, fails := time.Duration(luck.Int64N(int64(3*time.Second))), luck.IntN(5) == 0
			mu.Unlock()
			select {
			case <-time.After(took):
			case <-ctx.Done():
				return ctx.Err()
			}
			if fails {
				return kit.ErrUnavailable
			}
			mu.Lock()
			defer mu.Unlock()
			if m.GroupID != "" && m.Body > last[m.GroupID] {
				last[m.GroupID] = m.Body
			} else if m.GroupID != "" && !done[queue+m.Body] {
				t.Errorf("%s succeeded for the first time after %s", m.Body, last[m.GroupID])
			}
			done[queue+m.Body] = true
			return nil
		})
	}
	start := func() (all []*reprisetest.Consumer) {
		n := 1 + chance.IntN(12)
		pool, s := kit.PoolOf(t, n), kit.NewStarts()
		share := func() reprise.Share { return reprise.Share{Priority: chance.IntN(2), Weight: chance.IntN(4)} }
		cfg := func() reprise.Config {
			return reprise.Config{
				Prefetch: chance.IntN(12) - 1, Lease: 20 * time.Second,
				Retry: retry.Policy{Backoff: retry.Constant(5 * time.Second), MaxAttempts: -1}, Logger: slog.New(slog.DiscardHandler),
			}
		}
		plain := cfg()
		if withRetryLane {
			plain.RetryLane = reprise.RetryLane{URL: lane.URL(), Share: share()}
		}
		all = append(all, standard.In(pool, share()).Consume(work(s, "standard", n), plain), fifo.In(pool, share()).Consume(work(s, "fifo", n), cfg()))
		inBatches := reprise.BatchConfig{Size: 1 + chance.IntN(20), Linger: time.Duration(chance.Int64N(int64(5 * time.Second))), Config: cfg()}
		one := work(s, "batched", n)
		return append(all, batched.In(pool, share()).ConsumeBatch(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			errs := make([]error, len(ms))
			for i, m := range ms {
				errs[i] = one.Handle(reprise.MessageContext(ctx, m), m)
			}
			return errs
		}), inBatches))
	}
	processes := [][]*reprisetest.Consumer{start(), start()}
	for round := range 20 {
		for i := range 20 {
			standard.Send(fmt.Sprintf("s%02d-%02d", round, i))
			batched.Send(fmt.Sprintf("b%02d-%02d", round, i))
		}
		for i := range 10 {
			body := fmt.Sprintf("f%02d-%02d", round, i)
			fifo.SendMessage(sqsserver.SendMessageEntry{MessageBody: body, MessageGroupId: string('a' + rune(i%3)), MessageDeduplicationId: body})
		}
		time.Sleep(time.Duration(chance.Int64N(int64(time.Minute))))
		i, crash, alone := chance.IntN(2), chance.IntN(2) == 0, chance.IntN(3)
		switch {
		case crash:
			for _, c := range processes[i] {
				c.Crash()
			}
		default:
			processes[i][alone].Stop() // the others go on for a while
			time.Sleep(time.Duration(chance.Int64N(int64(10 * time.Second))))
		}
		for _, c := range processes[i] {
			c.Stop()
		}
		processes[i] = start()
	}
	for _, q := range []*reprisetest.Queue{standard, lane, fifo, batched} {
		q.WaitEmpty(2 * time.Hour)
	}
	if n := len(done); n != 20*(20+20+10) {
		t.Errorf("%d messages were done, want %d", n, 20*50)
	}
}
