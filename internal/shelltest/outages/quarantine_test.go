package outages

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestPoisonThatKillsTheProcess: a poisonous message among two hundred innocent ones, in three
// consumers that are started again each time, is run alone and dead-lettered as a crash. The
// innocent messages, which were received with it again and again, are handled, and none is given
// up.
func TestPoisonThatKillsTheProcess(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy retry.Policy
		batch  int // messages of a batch; zero: no batches
	}{
		{"waits of minutes", retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 5}, 0},
		{"waits of a second, that fit between two deaths", retry.Policy{Backoff: retry.Constant(time.Second), MaxAttempts: 5}, 0},
		{"in batches", retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 5}, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(50)
				f := &kit.Mortals{
					Queue:  q,
					Config: reprise.BatchConfig{Size: tt.batch, Config: reprise.Config{Concurrency: 5, Retry: tt.policy}},
				}
				bodies := kit.Numbered(200)
				q.Send(bodies[:100]...)
				poison := q.Send("poison")[0]
				q.Send(bodies[100:]...)
				f.Live(3, 2*time.Hour)

				letters := dead.Messages()
				if len(letters) != 1 || letters[0].Body != "poison" {
					t.Fatalf("dead letters %+v, want the poison", letters)
				}
				if s := kit.StoryOf(t, letters[0]); s.Reason != "crash" || s.Origin != poison || !strings.Contains(s.Error, "crashes the worker") {
					t.Errorf("story %+v, want it named", s)
				}
				for _, body := range bodies {
					if f.Handled[body] == 0 {
						t.Errorf("message %s was not handled", body)
					}
				}
				if len(q.Messages()) != 0 {
					t.Errorf("left: %+v", q.Messages())
				}
				if f.Alone < 2 || f.Deaths > 12 {
					t.Errorf("%d deaths, %d of them alone; want two alone, and few in all", f.Deaths, f.Alone)
				}
				t.Logf("%d deaths, %d of them alone", f.Deaths, f.Alone)
			})
		})
	}
}

// TestPoisonWithoutCopies: if no copy can be sent the suspect still runs alone, and the queue's own
// limit ends it.
func TestPoisonWithoutCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(9)
		f := &kit.Mortals{
			Queue:  q,
			Config: reprise.BatchConfig{Config: reprise.Config{Via: reprise.ViaVisibility, Concurrency: 5, Retry: retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 5}}},
		}
		q.Send("poison")
		q.Send(kit.Numbered(20)...)
		f.Live(2, 2*time.Hour)
		if letters := dead.Messages(); len(letters) != 1 || letters[0].Body != "poison" {
			t.Errorf("dead letters %+v, want the poison", letters)
		}
		if len(f.Handled) != 20 || f.Deaths != 9 || f.Alone < 3 {
			t.Errorf("%d handled, %d deaths, %d alone; want 20, and a death for each permitted receive, alone at last", len(f.Handled), f.Deaths, f.Alone)
		}
	})
}

// TestSuspectThatIsInnocent: an innocent suspect loses the mark at the end of its run, and is
// retried like others.
func TestSuspectThatIsInnocent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(50)
		cfg := reprise.Config{Concurrency: 3, Lease: 10 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 4}}
		q.Send("order")
		for range 4 {
			c := q.Consume(reprise.HandlerFunc(kit.UntilStopped), cfg)
			time.Sleep(time.Second)
			c.Crash()
			time.Sleep(20 * time.Second)
		}
		var j kit.Journal
		q.Consume(j.Handler(func(context.Context, *reprise.Message) error {
			for _, m := range q.Messages() {
				if h := kit.HistoryOf(t, m); (h.Alone == 1) != (len(j.All()) == 1) {
					t.Errorf("run %d has the history %+v", len(j.All()), h)
				}
			}
			return kit.ErrUnavailable
		}), cfg)
		q.WaitEmpty(2 * time.Hour)
		// Four runs or, since deaths may have been attempts, fewer.
		if n := len(j.All()); n < 2 || n > 4 {
			t.Errorf("%d runs, want 2 to 4", n)
		}
		if letters := dead.Messages(); len(letters) != 1 || kit.StoryOf(t, letters[0]).Reason != "attempts" {
			t.Errorf("dead letters %+v, want it given up for its attempts", letters)
		}
	})
}

// TestRunsAlone: a marked message starts when the running ones have ended, and no other starts
// while it runs. If a running one takes long, the others do not wait for ever.
func TestRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		running := make(map[string]int)
		var ran []string
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			mu.Lock()
			running[m.Body]++
			ran = append(ran, m.Body)
			if running["alone"] > 0 && len(running) > 1 {
				t.Errorf("%v run together", running)
			}
			mu.Unlock()
			wait := time.Second
			if m.Body == "long" {
				wait = 20 * time.Minute
			}
			time.Sleep(wait)
			mu.Lock()
			defer mu.Unlock()
			if running[m.Body]--; running[m.Body] == 0 {
				delete(running, m.Body)
			}
			return nil
		}), reprise.Config{Concurrency: 4})
		q.Send("long")
		time.Sleep(time.Second)
		h := kit.Plausible(q)
		h.Attempt, h.Alone = 0, 1
		kit.Forged(q, "alone", h.Text(t))
		for range 10 * 60 {
			q.Send("short")
			time.Sleep(time.Second)
		}
		mu.Lock()
		short := 0
		for _, body := range ran {
			if body == "alone" {
				t.Error("it ran beside a long one")
			}
			if body == "short" {
				short++
			}
		}
		mu.Unlock()
		if short < 400 {
			t.Errorf("%d of 600 others ran in the meantime", short)
		}
		q.WaitEmpty(time.Hour)
		if n := c.Status().Counts; n.Lost != 0 || n.Deleted != 602 {
			t.Errorf("counts %+v, want all handled and no lease lost", n)
		}
	})
}

// TestLostLeasesAreNoCrashes: a live process whose heartbeats fail loses the lease of a message
// again and again while its handler runs. It knows that these receives were its own: nothing has
// crashed, and the message is run like any other.
func TestLostLeasesAreNoCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const losses = 8
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(50)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch"})
		var j kit.Journal
		c := q.Consume(j.Handler(func(ctx context.Context, m *reprise.Message) error {
			if m.Receives > losses {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}), reprise.Config{Lease: 30 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 5}})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		if letters := dead.Messages(); len(letters) != 0 {
			t.Errorf("dead letters %+v, want none", letters)
		}
		runs := j.All()
		if n := c.Status().Counts; len(runs) != losses+1 || n.Lost != losses || n.Requeued != 0 {
			t.Errorf("%d runs, counts %+v: want %d leases lost, one run more, and no copy sent to be run alone", len(runs), n, losses)
		}
	})
}

// TestAloneAtOnce: a message that must run alone starts when the running ones are settled, not
// after others have waited for a minute.
func TestAloneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "before" {
				time.Sleep(5 * time.Second)
			}
			return nil
		}), reprise.Config{Concurrency: 4})
		q.Send("before")
		time.Sleep(time.Second)
		h := kit.Plausible(q)
		h.Attempt, h.Alone = 0, 1
		kit.Forged(q, "alone", h.Text(t))
		sent := time.Now()
		q.WaitEmpty(time.Hour)
		runs := j.Of("alone")
		if len(runs) != 1 {
			t.Fatalf("%d runs, want 1", len(runs))
		}
		if waited := runs[0].Started.Sub(sent); waited < 4*time.Second || waited > 10*time.Second {
			t.Errorf("it ran after %v, want as soon as the other was settled, after four seconds and a bit", waited)
		}
	})
}
