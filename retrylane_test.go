package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestRetriesDoNotWaitBehindABacklog: with half an hour of fresh messages waiting, what
// fails comes again when it is due, by way of the lane, as the same message with its
// attempts counted. Without a lane it waits its turn.
func TestRetriesDoNotWaitBehindABacklog(t *testing.T) {
	for _, laned := range []bool{false, true} {
		t.Run(fmt.Sprint("lane ", laned), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				main := reprisetest.NewQueue(t, nil)
				lane := main.NewQueue(nil)
				pool := poolOf(t, 2)
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
						return errUnavailable
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
				cfg := reprise.Config{Pool: pool, Retry: retry.Policy{Backoff: retry.Constant(wait), Jitter: retry.None, MaxAttempts: 5}}
				for n := range 3600 {
					if n%100 == 0 {
						main.Send(fmt.Sprint("fails ", n))
					} else {
						main.Send("succeeds")
					}
				}
				lane.Consume(h, cfg)
				if laned {
					cfg.RetryLane = lane.URL()
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
				if laned && longest > 5*time.Second || !laned && longest < time.Minute {
					t.Errorf("the latest retry came %v late", longest)
				}
			})
		})
	}
}

// TestLaneGivesUpInItsQueuesName: what fails for good in the lane is dead-lettered with
// the queue that it came from as its source, its origin, and all of its attempts.
func TestLaneGivesUpInItsQueuesName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		dead, lane := main.NewQueue(nil), main.NewQueue(nil)
		var j journal
		h := j.handler(func(context.Context, *reprise.Message) error { return errUnavailable })
		cfg := reprise.Config{
			Pool: poolOf(t, 4), DeadLetterURL: dead.URL(), Outage: reprise.Outage{Off: true},
			Retry: retry.Policy{Backoff: retry.Exponential{Base: time.Minute}, MaxAttempts: 6},
		}
		lane.Consume(h, cfg)
		cfg.RetryLane = lane.URL()
		c := main.Consume(h, cfg)
		id := main.Send("order")[0]
		main.WaitEmpty(time.Hour)
		lane.WaitEmpty(24 * time.Hour)
		letters := dead.Messages()
		if len(letters) != 1 || len(j.all()) != 6 {
			t.Fatalf("%d letters after %d runs, want 1 after 6", len(letters), len(j.all()))
		}
		if s := storyOf(t, letters[0]); s.Source != main.ARN() || s.Origin != id || s.Attempts != 6 || s.Reason != "attempts" {
			t.Errorf("story %+v, want it of %s", s, main.ARN())
		}
		if n := c.Status().Counts; n.Requeued != 1 || n.Retried != 1 {
			t.Errorf("counts %+v, want one retry, by a copy", n)
		}
	})
}

// TestLaneThatTakesNothing: retries are hidden in their own queue, and that is said.
func TestLaneThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		lane := main.NewQueue(nil)
		var j journal
		h := j.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 3 {
				return errUnavailable
			}
			return nil
		})
		var found findings
		cfg := reprise.Config{Pool: poolOf(t, 4), Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None}}
		lane.Consume(h, cfg)
		cfg.RetryLane, cfg.Observer.Finding = lane.URL(), found.observe
		denied := &spy{Client: main.Direct(), send: func(context.Context, *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
		}}
		main.ConsumeWith(denied, h, cfg)
		main.Send("order")
		main.WaitEmpty(time.Hour)
		if n := len(j.all()); n != 3 {
			t.Errorf("%d runs, want 3", n)
		}
		if found.count("requeue-refused") != 1 {
			t.Error("nothing was said of it")
		}
	})
}

// TestLaneIsChecked before anything is sent there.
func TestLaneIsChecked(t *testing.T) {
	q, fifo := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, fifoQueue)
	lane := q.NewQueue(nil)
	h := reprise.HandlerFunc(succeed)
	for _, tt := range []struct {
		name string
		q    *reprisetest.Queue
		cfg  reprise.Config
		want string
	}{
		{"no pool", q, reprise.Config{RetryLane: lane.URL()}, "set Config.Pool"},
		{"no URL", q, reprise.Config{RetryLane: "lane", Pool: poolOf(t, 1)}, "not an http or https URL"},
		{"the queue itself", q, reprise.Config{RetryLane: q.URL() + "/", Pool: poolOf(t, 1)}, "is the queue itself"},
		{"of a FIFO queue", fifo, reprise.Config{RetryLane: lane.URL(), Pool: poolOf(t, 1)}, "out of turn"},
		{"a FIFO queue", q, reprise.Config{RetryLane: fifo.URL(), Pool: poolOf(t, 1)}, "out of turn"},
		{"the dead-letter queue", q, reprise.Config{RetryLane: lane.URL(), DeadLetterURL: lane.URL(), Pool: poolOf(t, 1)}, "what is given up would be run again"},
		{"hiding only", q, reprise.Config{RetryLane: lane.URL(), Pool: poolOf(t, 1), Via: reprise.ViaVisibility}, "set Config.Via to ViaAuto"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := reprise.New(tt.q.Direct(), tt.q.URL(), h, tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v does not say %q", err, tt.want)
			}
		})
	}
	ended, end := context.WithCancel(t.Context())
	end() // so that Run returns, whatever it thinks of the lane
	pool := poolOf(t, 1)
	cfg := reprise.Config{Pool: pool, RetryLane: lane.URL(), Logger: slog.New(slog.DiscardHandler)}
	if _, err := reprise.New(q.Direct(), q.URL(), h, cfg); err != nil {
		t.Fatal(err)
	}
	if err := pool.Run(ended); err == nil || !strings.Contains(err.Error(), "no consumer of the pool is of the retry lane") {
		t.Errorf("a lane without a consumer: %v", err)
	}
	other := q.NewQueue(nil)
	if _, err := reprise.New(other.Direct(), other.URL(), h, cfg); err != nil {
		t.Fatal(err)
	}
	if err := pool.Run(ended); err == nil || !strings.Contains(err.Error(), "of both") {
		t.Errorf("a lane of two queues: %v", err)
	}
}

// TestLaneOutlivesItsQueuesConsumer: what it gives up when that has stopped has come from
// that queue all the same.
func TestLaneOutlivesItsQueuesConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		dead, lane := main.NewQueue(nil), main.NewQueue(nil)
		h := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return errUnavailable })
		cfg := reprise.Config{
			Pool: poolOf(t, 4), DeadLetterURL: dead.URL(), Outage: reprise.Outage{Off: true},
			Retry: retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: 2},
		}
		lane.Consume(h, cfg)
		cfg.RetryLane = lane.URL()
		c := main.Consume(h, cfg)
		main.Send("order")
		main.WaitEmpty(time.Hour)
		c.Stop()
		lane.WaitEmpty(time.Hour)
		if s := storyOf(t, dead.Messages()[0]); s.Source != main.ARN() {
			t.Errorf("story %+v, want it of %s", s, main.ARN())
		}
	})
}

// TestLaneOfOneThatIsStuck is its successor's: a consumer has stopped but for a handler
// that does not return, and its queue gets another.
func TestLaneOfOneThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main := reprisetest.NewQueue(t, nil)
		lane := main.NewQueue(nil)
		release := make(chan struct{})
		defer close(release)
		h := reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			<-release
			return nil
		})
		cfg := reprise.Config{Pool: poolOf(t, 4), StopBudget: time.Second, Logger: slog.New(slog.DiscardHandler)}
		lane.Consume(h, cfg)
		cfg.RetryLane = lane.URL()
		c := main.Consume(h, cfg)
		main.Send("order")
		time.Sleep(time.Second)
		if c.Stop(); !errors.Is(c.Err(), reprise.ErrDrainTimeout) {
			t.Fatalf("stop: %v", c.Err())
		}
		again, err := reprise.New(main.Direct(), main.URL(), h, cfg)
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

// TestLaneStopsAtOnce: of a pool that is run with a context that has ended, a consumer
// may have stopped before the other begins.
func TestLaneStopsAtOnce(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	h := reprise.HandlerFunc(succeed)
	for range 100 {
		q := reprisetest.NewQueue(t, nil)
		lane := q.NewQueue(nil)
		cfg := reprise.Config{Pool: poolOf(t, 1), Logger: slog.New(slog.DiscardHandler)}
		_, err := reprise.New(lane.Direct(), lane.URL(), h, cfg)
		cfg.RetryLane = lane.URL()
		_, mainErr := reprise.New(q.Direct(), q.URL(), h, cfg)
		if err := errors.Join(err, mainErr); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Pool.Run(ended); err != nil {
			t.Fatal(err)
		}
	}
}
