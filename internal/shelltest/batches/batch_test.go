package batches

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// batchLog records the batches that a handler gets.
type batchLog struct {
	mu      sync.Mutex
	bodies  [][]string
	started []time.Time
}

// handler records each batch and calls f for the result; nil: success.
func (l *batchLog) handler(f func(ctx context.Context, ms []*reprise.Message) []error) reprise.BatchHandler {
	return reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
		var bodies []string
		for _, m := range ms {
			bodies = append(bodies, m.Body)
		}
		l.mu.Lock()
		l.bodies = append(l.bodies, bodies)
		l.started = append(l.started, time.Now())
		l.mu.Unlock()
		if f == nil {
			return nil
		}
		return f(ctx, ms)
	})
}

// sizes returns the number of messages of each batch.
func (l *batchLog) sizes() (sizes []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, bodies := range l.bodies {
		sizes = append(sizes, len(bodies))
	}
	return sizes
}

// all returns the bodies in the order in which they were run.
func (l *batchLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.bodies...)
}

// TestBatchesShareTheirCalls: for a hundred messages in batches of ten, each of which fails once,
// each kind of request is made ten times for all of them, through the SDK and without it.
func TestBatchesShareTheirCalls(t *testing.T) {
	for name, client := range map[string]func(*reprisetest.Queue) reprise.Client{
		"SDK":    func(q *reprisetest.Queue) reprise.Client { return q.Client() },
		"direct": func(q *reprisetest.Queue) reprise.Client { return q.Direct() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Send(kit.Numbered(100)...)
				var mu sync.Mutex
				calls := make(map[reprise.Operation]int) // empty receives apart
				count := func(_ context.Context, e reprise.Call) {
					mu.Lock()
					defer mu.Unlock()
					if e.Entries > 0 {
						calls[e.Operation]++
					}
				}
				var l batchLog
				c := q.ConsumeBatchWith(client(q), l.handler(func(_ context.Context, ms []*reprise.Message) []error {
					errs := make([]error, len(ms))
					for i, m := range ms {
						if m.Attempt == 1 {
							errs[i] = kit.ErrUnavailable
						}
					}
					return errs
				}), reprise.BatchConfig{
					Config: reprise.Config{
						Retry:    retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None},
						Observer: reprise.Observer{Call: count},
					},
				})
				q.WaitEmpty(2 * time.Minute)
				n := c.Stop().Counts
				if diff := cmp.Diff(slices.Repeat([]int{10}, 20), l.sizes()); diff != "" {
					t.Errorf("sizes of the batches (-want +got):\n%s", diff)
				}
				want := map[reprise.Operation]int{reprise.OpReceive: 20, reprise.OpVisibility: 10, reprise.OpDelete: 10}
				if diff := cmp.Diff(want, calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if n.Batches != 20 || n.Attempts != 200 || n.Retried != 100 || n.Deleted != 100 {
					t.Errorf("counts %+v, want 20 batches, 200 attempts, 100 retried and 100 deleted", n)
				}
			})
		})
	}
}

// TestWhenABatchGoes: messages that are sent at the start and every second afterwards, and the
// resulting batches, with the seconds in which they begin.
func TestWhenABatchGoes(t *testing.T) {
	type batch struct {
		Second, Messages int
	}
	kilobyte := strings.Repeat("x", 1023) // and a full stop
	for _, tt := range []struct {
		name          string
		batch         reprise.BatchConfig
		first, second int // messages, at the start and each second after
		body          string
		want          []batch
	}{
		{"full, at once", reprise.BatchConfig{Size: 5, Linger: time.Minute}, 10, 0, "", []batch{{0, 5}, {0, 5}}},
		{"full, as they come", reprise.BatchConfig{Size: 5, Linger: time.Minute}, 2, 1, "", []batch{{3, 5}, {8, 5}}},
		{"when the first has waited", reprise.BatchConfig{Size: 100, Linger: 4500 * time.Millisecond}, 1, 1, "", []batch{{4, 5}, {9, 5}}},
		{"after a second by default", reprise.BatchConfig{Size: 100}, 1, 0, "", []batch{{1, 1}}},
		{"without a linger", reprise.BatchConfig{Size: 100, Linger: -1}, 1, 1, "", []batch{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}, {9, 1}}},
		{"at so many bytes", reprise.BatchConfig{Size: 100, Linger: time.Minute, Bytes: 3 * 1024}, 2, 1, kilobyte, []batch{{1, 3}, {4, 3}, {7, 3}}},
		{"before more would pass the bytes", reprise.BatchConfig{Size: 100, Linger: time.Minute, Bytes: 3*1024 - 1}, 2, 1, kilobyte, []batch{{1, 2}, {3, 2}, {5, 2}, {7, 2}, {9, 2}}},
		{"alone if it is larger", reprise.BatchConfig{Size: 100, Linger: time.Minute, Bytes: 10}, 2, 0, kilobyte, []batch{{0, 1}, {0, 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				begun := time.Now()
				q.Send(slices.Repeat([]string{tt.body + "."}, tt.first)...)
				var l batchLog
				tt.batch.Concurrency = 2
				q.ConsumeBatch(l.handler(nil), tt.batch)
				for range 9 {
					time.Sleep(time.Second)
					q.Send(slices.Repeat([]string{tt.body + "."}, tt.second)...)
				}
				time.Sleep(900 * time.Millisecond)
				var got []batch
				l.mu.Lock()
				defer l.mu.Unlock()
				for i, started := range l.started {
					got = append(got, batch{int(started.Sub(begun) / time.Second), len(l.bodies[i])})
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("batches (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBatchOfTenThousandKeepsItsLeases: ten thousand messages arrive within five minutes, and the
// handler takes ten more minutes. No lease is lost to another consumer, and renewals share
// requests.
func TestBatchOfTenThousandKeepsItsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		size := race.Fewer(10_000, 1000)
		q := reprisetest.NewQueue(t, nil)
		var l batchLog
		c := q.ConsumeBatch(l.handler(func(ctx context.Context, _ []*reprise.Message) []error {
			select {
			case <-time.After(10 * time.Minute):
			case <-ctx.Done():
				t.Errorf("the context ended: %v", context.Cause(ctx))
			}
			return nil
		}), reprise.BatchConfig{Size: size, Linger: 5 * time.Minute, Config: reprise.Config{Concurrency: 1}})
		for range size/100 - 1 {
			q.Send(kit.Numbered(100)...)
			time.Sleep(5 * time.Minute * 100 / time.Duration(size)) // all within the linger
		}
		if n := c.Status(); n.Waiting != size-100 || n.Running != 0 {
			t.Fatalf("%d waiting, %d running: want all waiting for the linger", n.Waiting, n.Running)
		}
		q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			t.Errorf("%s has been taken away", m.Body)
			return nil
		}), reprise.Config{Prefetch: -1, Concurrency: 1})
		q.WaitEmpty(time.Hour)
		n := c.Stop()
		if got := l.sizes(); !slices.Equal(got, []int{size - 100}) {
			t.Errorf("batches of %d, want one of %d", got, size-100)
		}
		if n.Counts.Deleted != int64(size-100) || n.Counts.Lost != 0 || n.Counts.Duplicates != 0 {
			t.Errorf("counts %+v", n.Counts)
		}
		// In 15 minutes a message is renewed about six times, ever more rarely.
		if beats := n.Calls.Heartbeats; beats < int64(3*size/10) || beats > int64(8*size/10) {
			t.Errorf("%d heartbeats for %d messages: want about 6 for each, ten to a request", beats, size)
		}
		if n.Calls.Deletes > int64(size/10+5) {
			t.Errorf("%d deletes", n.Calls.Deletes)
		}
	})
}

// TestBatchMemoryIsBoundedByBytes: with a backlog of large messages, handlers that are stuck and
// places for thousands, receiving stops at the bytes of all batches and one more, and goes on when
// batches are done.
func TestBatchMemoryIsBoundedByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, messages = 100 << 10, 200
		q := reprisetest.NewQueue(t, nil)
		q.Send(slices.Repeat([]string{strings.Repeat("x", size)}, messages)...)
		stuck := make(chan struct{})
		var l batchLog
		c := q.ConsumeBatch(l.handler(func(context.Context, []*reprise.Message) []error {
			<-stuck
			return nil
		}), reprise.BatchConfig{Size: 1000, Linger: time.Minute, Bytes: 10 * size, Config: reprise.Config{Concurrency: 2}})
		time.Sleep(10 * time.Minute)
		s := c.Status()
		if s.Running != 20 || s.Waiting != 10 || s.Counts.Received != 30 {
			t.Errorf("%d running, %d waiting, %d received: want two batches of ten, and one more waiting", s.Running, s.Waiting, s.Counts.Received)
		}
		close(stuck)
		q.WaitEmpty(10 * time.Minute)
		for _, n := range l.sizes() {
			if n > 10 {
				t.Errorf("a batch of %d messages, more than its bytes allow", n)
			}
		}
	})
}

// TestBatchRefused: each bad setting is reported with its name, the problem and the remedy.
func TestBatchRefused(t *testing.T) {
	q := reprisetest.NewQueue(t, nil)
	h := (&batchLog{}).handler(nil)
	for _, tt := range []struct {
		name string
		h    reprise.BatchHandler
		cfg  reprise.BatchConfig
		want []string
	}{
		{"no handler", nil, reprise.BatchConfig{}, []string{"handler is nil", "BatchHandlerFunc"}},
		{"no function of JSON batches", reprise.JSONBatch[int](nil), reprise.BatchConfig{}, []string{"handler is nil"}},
		{"size", h, reprise.BatchConfig{Size: -1}, []string{"BatchConfig.Size is -1", "1 to 10000"}},
		{"linger", h, reprise.BatchConfig{Linger: 2 * time.Hour}, []string{"BatchConfig.Linger is 2h0m0s", "at most 1h0m0s"}},
		{"bytes", h, reprise.BatchConfig{Bytes: -1}, []string{"BatchConfig.Bytes is -1", "positive"}},
		{"too many together", h, reprise.BatchConfig{Size: 10_000, Config: reprise.Config{Concurrency: 11}}, []string{"Config.Concurrency is 11", "BatchConfig.Size 10000", "100000 messages"}},
		{"what New refuses", h, reprise.BatchConfig{Config: reprise.Config{Concurrency: -1, Lease: 1}}, []string{"Config.Concurrency is -1", "Config.Lease"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := reprise.NewBatchConsumer(q.Direct(), q.URL(), tt.h, tt.cfg)
			if err == nil || c != nil {
				t.Fatal("accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
	c, err := reprise.NewBatchConsumer(q.Direct(), q.URL(), h, reprise.BatchConfig{Size: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetConcurrency(11); err == nil || !strings.Contains(err.Error(), "1 to 10 handlers") {
		t.Errorf("SetConcurrency(11) with batches of 10,000: %v", err)
	}
}

// TestStopWithAHalfBatch: messages that linger when a stop begins are given back if the usual time
// of handlers is not known, and run if there is time for them.
func TestStopWithAHalfBatch(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var l batchLog
				c := q.ConsumeBatch(l.handler(func(context.Context, []*reprise.Message) []error {
					time.Sleep(100 * time.Millisecond)
					return nil
				}), reprise.BatchConfig{Size: 20, Linger: time.Minute})
				if known {
					q.Send(kit.Numbered(20)...)
					time.Sleep(time.Second)
				}
				q.Send(kit.Numbered(5)...)
				time.Sleep(time.Second)
				n := c.Stop().Counts
				switch {
				case known && (n.Deleted != 25 || n.Batches != 2 || n.Released != 0):
					t.Errorf("counts %+v: want the half batch run too", n)
				case !known && (n.Attempts != 0 || n.Released != n.Received-n.Duplicates): // some were received again
					t.Errorf("counts %+v: want all released, and none run", n)
				}
				for _, m := range q.Messages() {
					if time.Until(m.Due) > 5*time.Second {
						t.Errorf("%+v was left behind under its lease", m)
					}
				}
			})
		})
	}
}

// TestEndOfALargeBatchIsPaced: ten thousand messages that end together do not start a thousand
// requests at once.
func TestEndOfALargeBatchIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		for range 40 {
			q.Send(kit.Numbered(100)...)
		}
		watch := &kit.Spy{Client: q.Direct()}
		var now, peak atomic.Int64
		watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
			if n := now.Add(1); n > peak.Load() {
				peak.Store(n)
			}
			time.Sleep(50 * time.Millisecond)
			now.Add(-1)
			return watch.Client.DeleteMessageBatch(ctx, in)
		}
		var l batchLog
		c := q.ConsumeBatchWith(watch, l.handler(nil), reprise.BatchConfig{Size: 4000, Linger: time.Minute, Config: reprise.Config{Concurrency: 1}})
		q.WaitEmpty(time.Hour)
		if n := c.Stop(); n.Calls.Deletes != 400 || peak.Load() != 256 {
			t.Errorf("%d deletes, %d at once: want 400, and no more at once than Tuned keeps connections", n.Calls.Deletes, peak.Load())
		}
	})
}
