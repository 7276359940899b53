package batches

import (
	"context"
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
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestBatchTakesAGroupInOrder: a batch has messages of several groups, ten of each, in order.
// Messages that are received behind them wait until they are deleted.
func TestBatchTakesAGroupInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "ab", 25)
		watch := &kit.Spy{Client: q.Direct()}
		watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
			time.Sleep(300 * time.Millisecond)
			return watch.Client.DeleteMessageBatch(ctx, in)
		}
		var l batchLog
		c := q.ConsumeBatchWith(watch, l.handler(func(_ context.Context, ms []*reprise.Message) []error {
			first := make(map[string]string) // of each group
			for _, m := range ms {
				if first[m.GroupID] == "" {
					first[m.GroupID] = m.Body
				}
			}
			for _, m := range q.Messages() {
				if f := first[m.Group]; m.Body < f {
					t.Errorf("%s is still there when %s runs", m.Body, f)
				}
			}
			return nil
		}), reprise.BatchConfig{Size: 10, Linger: -1, Config: reprise.Config{Concurrency: 1}})
		q.WaitEmpty(time.Minute)
		for _, g := range []string{"a", "b"} {
			of := slices.DeleteFunc(l.all(), func(s string) bool { return !strings.HasPrefix(s, g) })
			if !slices.IsSorted(of) || len(of) != 25 {
				t.Errorf("group %s ran as %v", g, of)
			}
		}
		if n := c.Stop(); n.Counts.Batches > 8 || n.Calls.Deletes > 8 {
			t.Errorf("%d batches of %v, %d deletes: want about ten messages to each", n.Counts.Batches, l.sizes(), n.Calls.Deletes)
		}
	})
}

// TestNothingOvertakesAFailureInABatch: the third of six messages of a group fails. The messages
// before it are deleted. Those behind it have succeeded, but run again behind it, and their first
// run counts as no attempt. This holds for every Config.FIFO and every kind of failure.
func TestNothingOvertakesAFailureInABatch(t *testing.T) {
	six := []string{"a01", "a02", "a03", "a04", "a05", "a06"}
	rest := []string{"a03", "a04", "a05", "a06"}
	for name, tt := range map[string]struct {
		fifo   reprise.FIFO
		err    error
		wait   time.Duration // until the second batch, at least
		second []string
		dead   int
	}{
		"hold":      {reprise.FIFOHold, kit.ErrUnavailable, 30 * time.Second, rest, 0},
		"block":     {reprise.FIFOBlock, kit.ErrUnavailable, 30 * time.Second, rest, 0},
		"skip":      {reprise.FIFOSkip, kit.ErrUnavailable, 0, rest[1:], 1},
		"permanent": {reprise.FIFOHold, reprise.Permanent(kit.ErrUnavailable), 0, rest[1:], 1},
		"released":  {reprise.FIFOHold, reprise.Release(2*time.Minute, kit.ErrUnavailable), 2 * time.Minute, rest, 0},
		"later":     {reprise.FIFOHold, reprise.RetryAfter(time.Hour, kit.ErrUnavailable), time.Hour, rest, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, kit.FIFOQueue)
				dead := q.NewDeadLetterQueue(1000)
				kit.Groups(q, "a", 6)
				var l batchLog
				var mu sync.Mutex
				numbers := make(map[string]int) // of the last attempt
				c := q.ConsumeBatch(l.handler(func(_ context.Context, ms []*reprise.Message) []error {
					mu.Lock()
					defer mu.Unlock()
					for _, m := range ms {
						numbers[m.Body] = m.Attempt
					}
					if len(ms) < 6 {
						return nil
					}
					return byBody(ms, map[string]error{"a03": tt.err, "a05": kit.ErrUnavailable})
				}), reprise.BatchConfig{
					Size: 6,
					Config: reprise.Config{
						FIFO:  tt.fifo,
						Retry: retry.Policy{Backoff: retry.Constant(30 * time.Second), Jitter: retry.None},
					},
				})
				q.WaitEmpty(2 * time.Hour)
				n := c.Stop().Counts
				if diff := cmp.Diff(slices.Concat(six, tt.second), l.all()); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				if waited := l.started[1].Sub(l.started[0]); waited < tt.wait || waited > tt.wait+time.Minute {
					t.Errorf("the rest ran after %v, want %v", waited, tt.wait)
				}
				for body, n := range numbers {
					want := 1
					if body == "a03" && tt.second[0] == "a03" && name != "released" {
						want = 2
					}
					if n != want {
						t.Errorf("%s last ran as attempt %d, want %d", body, n, want)
					}
				}
				if n := len(dead.Messages()); n != tt.dead {
					t.Errorf("%d dead letters, want %d", n, tt.dead)
				}
				if n.Deleted != int64(6-tt.dead) || n.DeadLettered != int64(tt.dead) {
					t.Errorf("counts %+v", n)
				}
			})
		})
	}
}

// TestGroupOfABatchGoesOnWhenAllIsDeleted: the delete of one of three messages that succeeded is
// refused for long. The messages behind them do not start before it is deleted.
func TestGroupOfABatchGoesOnWhenAllIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 4)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Limit: 5})
		var l batchLog
		q.ConsumeBatch(l.handler(func(_ context.Context, ms []*reprise.Message) []error {
			if ms[0].Body == "a01" {
				return byBody(ms, map[string]error{"a03": kit.ErrUnavailable})
			}
			for _, m := range q.Messages() {
				if m.Body < "a03" {
					t.Errorf("%s is still there when %s runs", m.Body, ms[0].Body)
				}
			}
			return nil
		}), reprise.BatchConfig{Size: 3, Config: reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Millisecond), Jitter: retry.None}}})
		q.WaitEmpty(time.Minute)
		if got := l.all(); !slices.Equal(got, []string{"a01", "a02", "a03", "a03", "a04"}) {
			t.Errorf("ran as %v", got)
		}
	})
}

// TestGroupFillsABatchAtOnce: messages that wait behind the head of their group go into its batch,
// so they count when it is decided whether the batch is full.
func TestGroupFillsABatchAtOnce(t *testing.T) {
	for name, batch := range map[string]reprise.BatchConfig{
		"by number": {Size: 5, Linger: time.Hour},
		"by bytes":  {Size: 100, Linger: time.Hour, Bytes: 15},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, kit.FIFOQueue)
				kit.Groups(q, "a", 10)
				var l batchLog
				q.ConsumeBatch(l.handler(nil), batch)
				q.WaitEmpty(time.Minute)
				if got := l.sizes(); !slices.Equal(got, []int{5, 5}) {
					t.Errorf("batches of %v, want two of five", got)
				}
			})
		})
	}
}

// TestLeaseLostInsideAGroup: SQS ends the lease of one of three messages of a group while the batch
// runs. The messages behind it run again behind it, although their work succeeded; the failed
// message before it is retried by itself.
func TestLeaseLostInsideAGroup(t *testing.T) {
	for name, tt := range map[string]struct {
		lost  string
		fails string
		want  []string // run again
	}{
		"the first":                     {lost: "a01", want: []string{"a02", "a03"}}, // it is only deleted
		"the second":                    {lost: "a02", want: []string{"a03"}},
		"behind one that failed":        {lost: "a02", fails: "a01", want: []string{"a01", "a02", "a03"}},
		"and it is one that has failed": {lost: "a02", fails: "a02", want: []string{"a02", "a03"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, kit.FIFOQueue)
				kit.Groups(q, "a", 3)
				watch := &kit.Spy{Client: q.Direct()}
				var receives atomic.Int64
				watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
					if receives.Add(1) == 2 {
						time.Sleep(40 * time.Second) // until then nothing comes again
					}
					return watch.Client.ReceiveMessage(ctx, in)
				}
				var l batchLog
				first := true
				c := q.ConsumeBatchWith(watch, l.handler(func(_ context.Context, ms []*reprise.Message) []error {
					if !first {
						for _, m := range ms {
							if m.Body == tt.lost && m.Receives < 2 {
								t.Errorf("%s runs again without a lease", m.Body)
							}
						}
						return nil
					}
					first = false
					time.Sleep(2 * time.Second)
					for _, m := range ms {
						if m.Body == tt.lost {
							q.Release(m.ID)
						}
					}
					time.Sleep(15 * time.Second) // the heartbeat is refused
					return byBody(ms, map[string]error{tt.fails: kit.ErrUnavailable})
				}), reprise.BatchConfig{Config: reprise.Config{Lease: 20 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None}}})
				q.WaitEmpty(5 * time.Minute)
				n := c.Stop().Counts
				again := l.all()[3:]
				if !slices.IsSorted(again) || !slices.Equal(slices.Compact(again), tt.want) {
					t.Errorf("ran again as %v, want %v", again, tt.want)
				}
				if n.Lost != 1 {
					t.Errorf("counts %+v, want one lost", n)
				}
			})
		})
	}
}

// TestStopWhileAGroupStalls: the consumer is stopped when a message is due again, but the delete of
// the one before it in its group takes long. The message is given back, and not run.
func TestStopWhileAGroupStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 2)
		watch := &kit.Spy{Client: q.Direct()}
		watch.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
			time.Sleep(10 * time.Second)
			return watch.Client.DeleteMessageBatch(ctx, in)
		}
		watch.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			time.Sleep(10 * time.Second)
			return watch.Client.ChangeMessageVisibilityBatch(ctx, in)
		}
		var l batchLog
		c := q.ConsumeBatchWith(watch, l.handler(func(_ context.Context, ms []*reprise.Message) []error {
			return byBody(ms, map[string]error{"a02": kit.ErrUnavailable})
		}), reprise.BatchConfig{Config: reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Second), Jitter: retry.None}}})
		time.Sleep(5 * time.Second)
		if got := l.all(); !slices.Equal(got, []string{"a01", "a02"}) {
			t.Errorf("ran as %v: a02 started while a01 was there", got)
		}
		n := c.Stop()
		if n.Counts.Attempts != 2 || n.Counts.Deleted != 1 || n.Counts.Released == 0 || n.Counts.Retried != 0 || !n.Drained() {
			t.Errorf("report %v", n)
		}
		if s := c.Status(); s.Waiting != 0 || s.Settling != 0 || s.Processing != 0 {
			t.Errorf("%d waiting, %d settling at the end", s.Waiting, s.Settling)
		}
	})
}

// TestBatchKeepsOrderThroughFailures: messages of a group succeed in order, through failures of
// every kind, refused settlements, lost leases and a restart.
func TestBatchKeepsOrderThroughFailures(t *testing.T) {
	for name, faults := range map[string][]sqsserver.Fault{
		"no faults":        nil,
		"entries fail":     {{Kind: sqsserver.FaultFailEntry, Every: 3}},
		"leases are lost":  {{Kind: sqsserver.FaultLoseLease, Every: 7, Limit: 20}},
		"requests fail":    {{Kind: sqsserver.FaultServerError, Every: 4}},
		"replies are lost": {{Kind: sqsserver.FaultLoseReply, Action: "DeleteMessageBatch", Every: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, kit.FIFOQueue)
				q.Fault(faults...)
				var mu sync.Mutex
				succeeded := make(map[string][]string)
				running := make(map[string]bool)
				tries := 0
				h := reprise.BatchHandlerFunc(func(_ context.Context, ms []*reprise.Message) []error {
					mu.Lock()
					groups := make(map[string]bool)
					for _, m := range ms {
						groups[m.GroupID] = true
					}
					for g := range groups {
						if running[g] {
							t.Errorf("group %s is in two batches at once", g)
						}
						running[g] = true
					}
					mu.Unlock()
					time.Sleep(50 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					for g := range groups {
						running[g] = false
					}
					if tries++; tries%9 == 0 {
						panic("burst")
					}
					errs := make([]error, len(ms))
					failed := make(map[string]bool)
					for i, m := range ms {
						tries++
						switch {
						case failed[m.GroupID]: // not looked at: success, as far as the verdict goes
						case tries%7 == 0:
							failed[m.GroupID] = true
							errs[i] = kit.ErrUnavailable
						default:
							succeeded[m.GroupID] = append(succeeded[m.GroupID], m.Body)
						}
					}
					return errs
				})
				cfg := reprise.BatchConfig{Size: 7, Linger: 200 * time.Millisecond, Config: reprise.Config{
					Concurrency: 3, Lease: 10 * time.Second,
					Retry: retry.Policy{Backoff: retry.Exponential{Base: time.Second}, MaxAttempts: -1},
				}}
				c := q.ConsumeBatch(h, cfg)
				kit.Groups(q, "abc", 30)
				time.Sleep(2 * time.Second)
				c.Stop()
				q.ConsumeBatch(h, cfg)
				q.WaitEmpty(24 * time.Hour)
				for g, bodies := range succeeded {
					if !inOrderButReplays(bodies) {
						t.Errorf("group %s succeeded as %v", g, bodies)
					}
				}
			})
		})
	}
}

// inOrderButReplays checks that each body comes for the first time in order, and that after a
// refused delete the group is replayed from there, without a gap.
func inOrderButReplays(bodies []string) bool {
	first := slices.Clone(bodies[:0])
	for i, b := range bodies {
		at := slices.Index(first, b)
		if at < 0 {
			first = append(first, b)
			continue
		}
		if i+1 < len(bodies) {
			next := bodies[i+1]
			if later := slices.Index(first, next); later > at+1 {
				return false
			}
		}
	}
	return slices.IsSorted(first) && len(first) == 30
}
