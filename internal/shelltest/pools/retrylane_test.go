package pools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestRetriesDoNotWaitBehindABacklog: with half an hour of new messages waiting, a failed message
// is received again when it is due, through the lane, as the same message with its attempts
// counted. Without a lane it waits behind the backlog.
func TestRetriesDoNotWaitBehindABacklog(t *testing.T) {
	for _, withRetryLane := range []bool{false, true} {
		t.Run(fmt.Sprint("lane ", withRetryLane), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				main := reprisetest.NewQueue(t, nil)
				lane := main.NewQueue(nil)
				const wait = 10 * time.Second
				var mu sync.Mutex
				due := make(map[string]time.Time) // by origin
				runs := make(map[string]int)
				var late []time.Duration
				h := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					time.Sleep(time.Second)
					mu.Lock()
					defer mu.Unlock()
					runs[m.Body]++
					switch {
					case m.Attempt == 1 && strings.HasPrefix(m.Body, "fails"):
						due[m.OriginID] = time.Now().Add(wait)
						return kit.ErrUnavailable
					case m.Attempt == 2:
						by := time.Since(due[m.OriginID]) - time.Second // when it began
						if by < 0 {
							t.Errorf("message %s came %v early", m.OriginID, -by)
						}
						late = append(late, by)
					case m.Attempt > 2:
						t.Errorf("attempt %d of %s", m.Attempt, m.OriginID)
					}
					return nil
				})
				cfg := reprise.Config{Concurrency: 2, Retry: retry.Policy{Backoff: retry.Constant(wait), Jitter: retry.None, MaxAttempts: 5}}
				for n := range 3600 {
					if n%100 == 0 {
						main.Send(fmt.Sprint("fails ", n))
					} else {
						main.Send("succeeds")
					}
				}
				if withRetryLane {
					cfg.RetryLane.URL = lane.URL()
				}
				main.Consume(h, cfg)
				main.WaitEmpty(2 * time.Hour)
				lane.WaitEmpty(time.Hour)
				longest := time.Duration(0)
				for _, by := range late {
					longest = max(longest, by)
				}
				for body, n := range runs {
					if body != "succeeds" && n != 2 {
						t.Errorf("%q was run %d times, want twice", body, n)
					}
				}
				if len(late) != 36 {
					t.Errorf("%d were retried, want 36", len(late))
				}
				if withRetryLane && longest > 5*time.Second || !withRetryLane && longest < time.Minute {
					t.Errorf("the latest retry came %v late", longest)
				}
			})
		})
	}
}

// TestRetryLaneGivesUpInItsQueuesName: a message that is given up in the lane is dead-lettered with
// the queue that it came from as its source, its origin, and all of its attempts.
func TestRetryLaneGivesUpInItsQueuesName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		dead, lane := main.NewQueue(nil), main.NewQueue(nil)
		var j kit.Journal
		h := j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable })
		cfg := reprise.Config{
			RetryLane: reprise.RetryLane{URL: lane.URL()}, DeadLetterURL: dead.URL(), Outage: reprise.Outage{Off: true},
			Retry: retry.Policy{Backoff: retry.Exponential{Base: time.Minute}, MaxAttempts: 6},
		}
		c := main.Consume(h, cfg)
		id := main.Send("order")[0]
		main.WaitEmpty(time.Hour)
		lane.WaitEmpty(24 * time.Hour)
		letters := dead.Messages()
		if len(letters) != 1 || len(j.All()) != 6 {
			t.Fatalf("%d letters after %d runs, want 1 after 6", len(letters), len(j.All()))
		}
		if s := kit.StoryOf(t, letters[0]); s.Source != main.ARN() || s.Origin != id || s.Attempts != 6 || s.Reason != "attempts" {
			t.Errorf("story %+v, want it of %s", s, main.ARN())
		}
		if n := c.Status().Counts; n.Requeued != 1 || n.Retried != 1 {
			t.Errorf("counts %+v, want one retry, by a copy", n)
		}
	})
}

// TestRetryLaneHasItsQueuesDeadLetters: a lane without a RedrivePolicy sends dead letters to where its queue's points,
// one with a policy of its own to where that points; also if attributes cannot be read at first.
func TestRetryLaneHasItsQueuesDeadLetters(t *testing.T) {
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprint("its own: ", own), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				main := reprisetest.NewQueue(t, nil)
				dead, lane := main.NewDeadLetterQueue(1000), main.NewQueue(nil)
				want, other := dead, (*reprisetest.Queue)(nil)
				if own {
					want, other = lane.NewDeadLetterQueue(1000), dead
				}
				cfg := reprise.Config{
					RetryLane: reprise.RetryLane{URL: lane.URL()}, Outage: reprise.Outage{Off: true},
					Retry: retry.Policy{Backoff: retry.Exponential{Base: time.Minute}, MaxAttempts: 3},
				}
				main.Fault(sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "GetQueueAttributes", Skip: 2, Limit: 20})
				main.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), cfg)
				main.Send("order")
				time.Sleep(24 * time.Hour)
				if n := len(lane.Messages()) + len(main.Messages()); n != 0 || len(want.Messages()) != 1 {
					t.Errorf("%d left and %d dead letters, want 0 and 1", n, len(want.Messages()))
				}
				if other != nil && len(other.Messages()) != 0 {
					t.Error("the queue's dead-letter queue has a letter of the lane")
				}
			})
		})
	}
}

// TestRetryLaneThatTakesNothing: retries are hidden in their own queue, and this is reported.
func TestRetryLaneThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		lane := main.NewQueue(nil)
		var j kit.Journal
		h := j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 3 {
				return kit.ErrUnavailable
			}
			return nil
		})
		var found kit.Findings
		cfg := reprise.Config{
			RetryLane: reprise.RetryLane{URL: lane.URL()}, Observer: reprise.Observer{Finding: found.Observe},
			Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None},
		}
		denied := &kit.Spy{Client: main.Direct(), Send: func(context.Context, *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
		}}
		main.ConsumeWith(denied, h, cfg)
		main.Send("order")
		main.WaitEmpty(time.Hour)
		if n := len(j.All()); n != 3 {
			t.Errorf("%d runs, want 3", n)
		}
		if found.Count("requeue-refused") != 1 {
			t.Error("nothing was said of it")
		}
	})
}

// TestRetryLaneIsChecked: the lane is checked before any message is sent to it.
func TestRetryLaneIsChecked(t *testing.T) {
	q, fifo := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, kit.FIFOQueue)
	lane := q.NewQueue(nil)
	h := reprise.HandlerFunc(kit.Succeed)
	at := func(url string) reprise.Config { return reprise.Config{RetryLane: reprise.RetryLane{URL: url}} }
	hiding, dead := at(lane.URL()), at(lane.URL())
	hiding.Via, dead.DeadLetterURL = reprise.ViaVisibility, lane.URL()
	heavy := reprise.Config{RetryLane: reprise.RetryLane{URL: lane.URL(), Share: reprise.Share{Weight: 1001}}}
	nowhere := reprise.Config{RetryLane: reprise.RetryLane{Share: reprise.Share{Weight: 3}}}
	idle := at(lane.URL())
	idle.Concurrency = -1
	for _, tt := range []struct {
		name string
		q    *reprisetest.Queue
		cfg  reprise.Config
		want string
	}{
		{"no URL", q, at("lane"), "Config.RetryLane.URL: queue URL \"lane\" is not an http or https URL"},
		{"a share of none", q, nowhere, "Config.RetryLane.URL: the queue URL is empty"},
		{"the queue itself", q, at(q.URL() + "/"), "is the queue itself"},
		{"of a FIFO queue", fifo, at(lane.URL()), "out of turn"},
		{"a FIFO queue", q, at(fifo.URL()), "out of turn"},
		{"the dead-letter queue", q, dead, "messages that are given up would be run again"},
		{"hiding only", q, hiding, "set Config.Via to ViaAuto"},
		{"too heavy", q, heavy, "Config.RetryLane.Share.Weight is 1001: set 1 to 1000"},
		{"no concurrency", q, idle, "Config.Concurrency is -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := reprise.New(tt.q.Direct(), tt.q.URL(), h, tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v does not say %q", err, tt.want)
			}
		})
	}
	pool, other := kit.PoolOf(t, 1), q.NewQueue(nil)
	for i, q := range []*reprisetest.Queue{q, q, other} { // two processes' worth of one queue are fine
		_, err := pool.Add(q.Direct(), q.URL(), h, reprise.Share{}, at(lane.URL()))
		if want := q == other; (err != nil) != want || want && !strings.Contains(err.Error(), "of both") {
			t.Errorf("consumer %d with this lane: %v", i, err)
		}
	}
	if n := len(pool.Status().Queues); n != 4 {
		t.Errorf("the pool has %d consumers, want those of two queues and two lanes", n)
	}
}

// TestRetryLaneRunsWithItsQueue: the lane runs only with its queue. Its consumer can be inspected
// and operated by itself, and a pause applies to both.
func TestRetryLaneRunsWithItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		lane := main.NewQueue(nil)
		var j kit.Journal
		h := j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable })
		cfg := reprise.Config{
			Concurrency: 4, RetryLane: reprise.RetryLane{URL: lane.URL()}, Outage: reprise.Outage{Off: true, Key: kit.Tenant},
			Retry: retry.Policy{Backoff: retry.Constant(10 * time.Second), Jitter: retry.None, MaxAttempts: -1},
		}
		c := main.Consume(h, cfg)
		of := c.RetryLane()
		if err := of.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "is the retry lane of") {
			t.Errorf("the lane by itself ran: %v", err)
		}
		main.Send("order")
		time.Sleep(15 * time.Second)
		if n := of.Status().Counts; n.Attempts != 1 {
			t.Errorf("the lane has made %d attempts, want 1", n.Attempts)
		}
		for name, operate := range map[string]func(on bool){
			"the consumer": func(on bool) {
				if on {
					c.Resume()
				} else {
					c.Pause()
				}
			},
			"its key": func(on bool) {
				change := c.PauseKey
				if on {
					change = c.ResumeKey
				}
				if err := change("order"); err != nil {
					t.Error(err)
				}
			},
		} {
			operate(false)
			time.Sleep(time.Minute)
			before := len(j.All())
			time.Sleep(10 * time.Minute)
			if n := len(j.All()); n != before {
				t.Errorf("%d attempts while %s was paused", n-before, name)
			}
			operate(true)
			time.Sleep(10 * time.Minute)
			if n := len(j.All()); n == before {
				t.Errorf("no attempt after %s was resumed", name)
			}
		}
		if err := c.SetConcurrency(7); err != nil {
			t.Fatal(err)
		}
		if n, l := c.Status().Concurrency, of.Status().Concurrency; n != 7 || l != 7 {
			t.Errorf("concurrency %d and %d of the lane, want 7 that they share", n, l)
		}
		c.Stop()
		if c.Err() != nil || of.Status().Health != reprise.HealthStopped {
			t.Errorf("stopped with %v, the lane is %v", c.Err(), of.Status().Health)
		}
	})
}

// TestWakeReachesTheRetryLane: a wake also reaches the retry lane, where retries wait.
func TestWakeReachesTheRetryLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		lane := main.NewQueue(nil)
		var j kit.Journal
		c := main.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{
			RetryLane: reprise.RetryLane{URL: lane.URL()}, Outage: reprise.Outage{Off: true},
			Retry: retry.Policy{Backoff: retry.Constant(6 * time.Hour), Jitter: retry.None, MaxAttempts: 5},
		})
		main.Send(kit.Numbered(20)...)
		time.Sleep(10 * time.Minute)
		if n := c.RetryLane().Status().InBackoff; n != 20 {
			t.Fatalf("%d wait in the lane, want 20", n)
		}
		if n := c.Wake(); n != 20 {
			t.Errorf("%d are woken, want 20", n)
		}
		lane.WaitEmpty(time.Minute)
		if n := len(j.All()); n != 40 {
			t.Errorf("%d runs, want 40", n)
		}
	})
}

// TestRetryLaneSharesTheQueuesPlaces: without a pool the two have Config.Concurrency together,
// in turns by their weights.
func TestRetryLaneSharesTheQueuesPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		lane := main.NewQueue(nil)
		s := kit.NewStarts()
		h := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			return s.Handler(m.Body, time.Second).Handle(ctx, m)
		})
		main.Send(slices.Repeat([]string{"fresh"}, 2000)...)
		lane.Send(slices.Repeat([]string{"again"}, 2000)...)
		main.Consume(h, reprise.Config{
			Concurrency: 4, Prefetch: 40, StopBudget: time.Second,
			RetryLane: reprise.RetryLane{URL: lane.URL(), Share: reprise.Share{Weight: 3}},
		})
		time.Sleep(20500 * time.Millisecond)
		from := time.Now()
		time.Sleep(100 * time.Second)
		if f, a := s.Of("fresh", from, time.Now()), s.Of("again", from, time.Now()); f+a != 400 || a < 298 || a > 302 {
			t.Errorf("%d and %d of the lane were started, want 400 together, three quarters of them the lane's", f, a)
		}
		if s.Peak("") != 4 {
			t.Errorf("%d ran at once, want 4", s.Peak(""))
		}
	})
}

// TestRetryLaneOutlivesItsQueuesConsumer: messages that the lane gives up after its queue's
// consumer has stopped still name that queue as their source.
func TestRetryLaneOutlivesItsQueuesConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		dead, lane := main.NewQueue(nil), main.NewQueue(nil)
		var health atomic.Value // of the queue's consumer, when its lane gives up
		var c *reprisetest.Consumer
		h := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 2 {
				time.Sleep(30 * time.Second) // is still at work when its queue's consumer has nothing left
				health.Store(c.Status().Health)
			}
			return kit.ErrUnavailable
		})
		c = main.Consume(h, reprise.Config{
			RetryLane: reprise.RetryLane{URL: lane.URL()}, DeadLetterURL: dead.URL(), Outage: reprise.Outage{Off: true},
			Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 2}, StopBudget: time.Minute,
		})
		main.Send("order")
		time.Sleep(time.Minute + 5*time.Second)
		c.Stop()
		if health.Load() != reprise.HealthStopped {
			t.Fatalf("the queue's consumer is %v when its lane gives up, so that nothing is tested", health.Load())
		}
		if s := kit.StoryOf(t, dead.Messages()[0]); s.Source != main.ARN() {
			t.Errorf("story %+v, want it of %s", s, main.ARN())
		}
	})
}

// TestRetryLaneOfOneThatIsStuck: a consumer has stopped except for a handler that does not return,
// and its lane becomes that of another queue.
func TestRetryLaneOfOneThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		lane, other := main.NewQueue(nil), main.NewQueue(nil)
		release := make(chan struct{})
		defer close(release)
		h := reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			<-release
			return nil
		})
		pool := kit.PoolOf(t, 4)
		cfg := reprise.Config{RetryLane: reprise.RetryLane{URL: lane.URL()}, StopBudget: time.Second, Logger: slog.New(slog.DiscardHandler)}
		c := main.In(pool, reprise.Share{}).Consume(h, cfg)
		main.Send("order")
		time.Sleep(time.Second)
		if _, err := pool.Add(other.Direct(), other.URL(), h, reprise.Share{}, cfg); err == nil || !strings.Contains(err.Error(), "of both") {
			t.Errorf("a lane of two queues: %v", err)
		}
		if c.Stop(); !errors.Is(c.Err(), reprise.ErrDrainTimeout) {
			t.Fatalf("stop: %v", c.Err())
		}
		again, err := pool.Add(other.Direct(), other.URL(), h, reprise.Share{}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		if err := again.Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestRetryLaneStopsAtOnce: two consumers are run with a context that has ended. One may have
// stopped before the other begins.
func TestRetryLaneStopsAtOnce(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	h := reprise.HandlerFunc(kit.Succeed)
	for range 100 {
		q := reprisetest.NewQueue(t, nil)
		lane := q.NewQueue(nil)
		cfg := reprise.Config{RetryLane: reprise.RetryLane{URL: lane.URL()}, Logger: slog.New(slog.DiscardHandler)}
		c, err := reprise.New(q.Direct(), q.URL(), h, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(ended); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(ended); err == nil || !strings.Contains(err.Error(), "Run was called twice") {
			t.Fatalf("a second Run: %v", err)
		}
	}
}
