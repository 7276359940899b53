package settling

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
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

// TestNothingButAttemptsExhausts: the queue permits three receives. Forty deploys interrupt a
// message, forty stops give it back unstarted, forty handlers release it: none of these counts as
// an attempt, and none uses the message up. Afterwards it has all of its three attempts.
func TestNothingButAttemptsExhausts(t *testing.T) {
	cfg := reprise.Config{Concurrency: 1, Retry: kit.EveryMinute(3)}
	for _, tt := range []struct {
		name string
		burn func(t *testing.T, q *reprisetest.Queue)
	}{
		{"deploys that interrupt it", func(_ *testing.T, q *reprisetest.Queue) {
			for range 40 {
				c := q.Consume(reprise.HandlerFunc(kit.UntilStopped), cfg)
				time.Sleep(time.Second)
				c.Stop()
			}
		}},
		{"rolling deploys of three consumers", func(_ *testing.T, q *reprisetest.Queue) {
			var fleet []*reprisetest.Consumer
			for range 40 {
				fleet = append(fleet, q.Consume(reprise.HandlerFunc(kit.UntilStopped), cfg))
				time.Sleep(time.Second)
				if len(fleet) > 3 {
					fleet[0].Stop()
					fleet = fleet[1:]
				}
			}
			for _, c := range fleet {
				c.Stop()
			}
		}},
		{"stops before it has started", func(_ *testing.T, q *reprisetest.Queue) {
			for range 40 {
				c := q.Consume(reprise.HandlerFunc(kit.UntilStopped), cfg)
				c.Pause() // what is received is held, and given back
				time.Sleep(time.Second)
				c.Resume()
				time.Sleep(time.Millisecond)
				c.Pause()
				time.Sleep(time.Second)
				c.Stop()
			}
		}},
		{"releases by its handler, in three consumers", func(_ *testing.T, q *reprisetest.Queue) {
			var runs atomic.Int64
			var fleet []*reprisetest.Consumer
			for range 3 {
				fleet = append(fleet, q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					runs.Add(1)
					return reprise.Release(0, kit.ErrUnavailable)
				}), cfg))
			}
			for runs.Load() < 40 {
				time.Sleep(time.Minute)
			}
			for _, c := range fleet {
				c.Stop()
			}
		}},
		{"settlements that are throttled", func(_ *testing.T, q *reprisetest.Queue) {
			for _, action := range []string{"ChangeMessageVisibilityBatch", "SendMessageBatch", "DeleteMessageBatch"} {
				q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: action, Every: 2})
				for range 10 {
					c := q.Consume(reprise.HandlerFunc(kit.UntilStopped), cfg)
					time.Sleep(time.Second)
					c.Stop()
				}
			}
			q.Fault()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(3)
				q.Send("order")
				tt.burn(t, q)
				if len(q.Messages()) != 1 || len(dead.Messages()) != 0 {
					t.Fatalf("%d messages and %d dead letters, want the message", len(q.Messages()), len(dead.Messages()))
				}
				var j kit.Journal
				q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), cfg)
				q.WaitEmpty(time.Hour)
				if n := len(j.All()); n != 3 {
					t.Errorf("%d attempts, want 3", n)
				}
				letters := dead.Messages()
				if len(letters) != 1 || kit.StoryOf(t, letters[0]).Reason != "attempts" {
					t.Errorf("dead letters %+v, want the message, for its attempts", letters)
				}
			})
		})
	}
}

// TestInnocentsAreNotExhaustedByCrashes: a message was received as often as it may be attempted,
// and never run. It is not given up without a run: the consumer that makes the last attempt gives
// it up at once, so a message that is received again has an attempt left.
func TestInnocentsAreNotExhaustedByCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		cfg := reprise.Config{Concurrency: 1, Lease: 10 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(time.Second), MaxAttempts: 2}}
		q.Send("order")
		for range 3 {
			c := q.Consume(reprise.HandlerFunc(kit.UntilStopped), cfg)
			time.Sleep(5 * time.Second)
			c.Crash()
			time.Sleep(time.Minute)
		}
		var j kit.Journal
		q.Consume(j.Handler(kit.Succeed), cfg)
		q.WaitEmpty(10 * time.Minute)
		if len(j.All()) != 1 || len(dead.Messages()) != 0 {
			t.Errorf("%d runs and %d dead letters, want it handled", len(j.All()), len(dead.Messages()))
		}
	})
}

// TestRetriesOverThirtyDays: the queue keeps messages for four days and permits three receives,
// waits last from an hour to eleven days, and consumers are stopped, killed and started again all
// the time. Every attempt is made, with its own number, and not before its time.
func TestRetriesOverThirtyDays(t *testing.T) {
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(3)
		waits := retry.List{time.Hour, 11 * time.Hour, 13 * time.Hour, 3 * day, 5*day + time.Minute, 11 * day, 10 * day}
		waits = waits[:race.Fewer(len(waits), 3)]
		policy := retry.Policy{Backoff: waits, Jitter: retry.None, MaxAttempts: -1, MaxAge: -1}
		var j kit.Journal
		var copies atomic.Int64
		start := func() *reprisetest.Consumer {
			return q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
				if m.Attempt <= len(waits) {
					return kit.ErrUnavailable
				}
				return nil
			}), reprise.Config{Retry: policy, Observer: reprise.Observer{Settled: func(_ context.Context, e reprise.Settled) {
				if e.Requeued {
					copies.Add(1)
				}
			}, Expiring: func(_ context.Context, e reprise.Expiring) {
				t.Errorf("announced to expire, though a copy will carry it on: %+v", e)
			}}})
		}
		fleet := []*reprisetest.Consumer{start(), start()}
		q.Send("a", "b", "c")
		for n := range race.Fewer(31, 2) {
			for range 24 {
				time.Sleep(time.Hour)
				// An endless chain of copies would be one a second, and keep the bubble busy for ever.
				if made := copies.Load(); made > 300 {
					t.Fatalf("%d copies of three messages by day %d", made, n)
				}
			}
			i := n % len(fleet)
			if n%3 == 0 {
				fleet[i].Crash()
			} else {
				fleet[i].Stop()
			}
			fleet[i] = start()
		}
		q.WaitEmpty(2 * day)
		for _, body := range []string{"a", "b", "c"} {
			runs := j.Of(body)
			if len(runs) != len(waits)+1 {
				t.Fatalf("%d attempts at %s, want %d", len(runs), body, len(waits)+1)
			}
			for i, r := range runs {
				if r.Attempt != i+1 {
					t.Errorf("run %d of %s is called attempt %d", i+1, body, r.Attempt)
				}
				if i == 0 {
					continue
				}
				want := waits[i-1]
				waited := r.Started.Sub(runs[i-1].Started)
				if least := want - want/100; waited < least || waited > want+time.Minute {
					t.Errorf("attempt %d at %s came after %v, want %v", r.Attempt, body, waited, want)
				}
			}
		}
		if n := len(dead.Messages()); n != 0 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// TestViaRequeueCountsExactly: each retry is a copy, so that attempts at the
// shortest of waits are exact in a fleet whose members come and go.
func TestViaRequeueCountsExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(3)
		cfg := reprise.Config{Via: reprise.ViaRequeue, Retry: retry.Policy{Backoff: retry.Constant(20 * time.Second), MaxAttempts: 12, MaxAge: -1}}
		var j kit.Journal
		handler := j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable })
		bodies := kit.Numbered(20)
		q.Send(bodies...)
		for range 15 {
			one, other := q.Consume(handler, cfg), q.Consume(handler, cfg)
			time.Sleep(10 * time.Second)
			one.Stop()
			other.Stop()
		}
		q.Consume(handler, cfg)
		q.WaitEmpty(time.Hour)
		for _, body := range bodies {
			var attempts []int
			for _, r := range j.Of(body) {
				attempts = append(attempts, r.Attempt)
			}
			if !slices.Equal(attempts, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) {
				t.Errorf("attempts %v at %s, want 1 to 12", attempts, body)
			}
		}
		for _, m := range dead.Messages() {
			if s := kit.StoryOf(t, m); s.Attempts != 12 || s.Reason != "attempts" {
				t.Errorf("story %+v", s)
			}
		}
	})
}

// TestNearTheEndOfRetentionACopyIsSent: a message that has been in the queue for most of its
// retention fails, and is not hidden beyond the end of its retention.
func TestNearTheEndOfRetentionACopyIsSent(t *testing.T) {
	for _, retention := range []time.Duration{time.Minute, time.Hour, 96 * time.Hour} {
		t.Run(retention.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": fmt.Sprint(int(retention.Seconds()))})
				q.Send("order")
				time.Sleep(retention - retention/16)
				var j kit.Journal
				q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
					if m.Attempt == 1 {
						return kit.ErrUnavailable
					}
					return nil
				}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(retention / 8), Jitter: retry.None}})
				q.WaitEmpty(retention)
				if runs := j.All(); len(runs) != 2 || runs[1].Attempt != 2 {
					t.Errorf("runs %+v, want two attempts", runs)
				}
			})
		})
	}
}
