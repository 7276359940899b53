package attacks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// These tests attack as a producer, who may send to the queue, and nothing else. It writes the
// history that only consumers write, with the mark of a message that seems to kill its process:
// such a message runs alone.

// sendAlone sends a message with a forged history that asks for a run alone.
func sendAlone(t *testing.T, q *reprisetest.Queue, body string) {
	t.Helper()
	h := kit.Plausible(q)
	h.Attempt, h.Alone = 0, 1
	kit.Forged(q, body, h.Text(t))
}

// pass waits for d, unless the context ends before.
func pass(ctx context.Context, takes time.Duration) error {
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gaps returns the longest time without a start of a message with the body, and the sum
// of those longer than two seconds.
func gaps(j *kit.Journal, body string, from, until time.Time) (longest, all time.Duration) {
	for _, r := range append(j.Of(body), kit.Run{Started: until}) {
		gap := r.Started.Sub(from)
		longest = max(longest, gap)
		if gap > 2*time.Second {
			all += gap
		}
		from = r.Started
	}
	return longest, all
}

// TestAttackForgedAloneStopsOthersForAMinute: the handler of a message with a forged mark takes two
// hours. Other messages are started again after a minute, in consumers, in batches and in both
// queues of a pool.
func TestAttackForgedAloneStopsOthersForAMinute(t *testing.T) {
	for _, kind := range []string{"consumer", "batches", "pool"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, beside := reprisetest.NewQueue(t, nil), reprisetest.NewQueue(t, nil)
				var j kit.Journal
				h := j.Handler(func(ctx context.Context, m *reprise.Message) error {
					if m.Body == "forged" {
						return pass(ctx, 2*time.Hour)
					}
					return nil
				})
				switch kind {
				case "consumer":
					q.Consume(h, reprise.Config{Concurrency: 4})
				case "batches":
					q.ConsumeBatch(kit.Together(h), reprise.BatchConfig{Size: 3, Config: reprise.Config{Concurrency: 4}})
				case "pool":
					pool := kit.PoolOf(t, 4)
					q.In(pool, reprise.Share{}).Consume(h, reprise.Config{})
					beside.In(pool, reprise.Share{}).Consume(h, reprise.Config{})
				}
				time.Sleep(time.Second)
				sendAlone(t, q, "forged")
				time.Sleep(time.Second)
				if len(j.Of("forged")) != 1 {
					t.Fatal("the forged message does not run yet")
				}
				sent := time.Now()
				for range 200 {
					q.Send("other")
					if kind == "pool" {
						beside.Send("other")
					}
					time.Sleep(time.Second)
				}
				others := j.Of("other")
				if len(others) < 190 {
					t.Errorf("%d of 200 others ran within 200 seconds", len(others))
				}
				if gap, _ := gaps(&j, "other", sent, time.Now()); gap > time.Minute {
					t.Errorf("no other was started for %v, want a minute at most", gap)
				} else if gap < 50*time.Second {
					t.Errorf("the longest gap between others was %v: a suspect is to have nearly a minute alone", gap)
				}
			})
		})
	}
}

// TestAttackForgedAloneInARow: ten messages with a forged mark each run for half a minute or for an
// hour, with another such message beside each. The other messages get nine tenths of the time, and
// never wait for longer than two minutes.
func TestAttackForgedAloneInARow(t *testing.T) {
	all := []time.Duration{61 * time.Second, 5 * time.Second, 30 * time.Second, time.Hour}
	for _, takes := range all[:race.Fewer(len(all), 1)] {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var j kit.Journal
				q.Consume(j.Handler(func(ctx context.Context, m *reprise.Message) error {
					switch m.Body {
					case "forged":
						return pass(ctx, takes)
					case "long":
						return pass(ctx, 10*time.Minute)
					}
					return nil
				}), reprise.Config{Concurrency: 30})
				time.Sleep(time.Second)
				began := time.Now()
				for i := range race.Fewer(3, 2) * 3600 {
					if i < race.Fewer(10, 5)*60 && i%60 == 0 {
						sendAlone(t, q, "forged")
						q.Send("long")
					}
					q.Send("other")
					time.Sleep(time.Second)
				}
				runs := j.Of("forged")
				last := runs[len(runs)-1].Started.Add(time.Minute)
				longest, stopped := gaps(&j, "other", began, last)
				if longest > 2*time.Minute+2*time.Second {
					t.Errorf("no other was started for %v, want two minutes at most", longest)
				}
				if most := last.Sub(began)/10 + 2*time.Minute; stopped > most {
					t.Errorf("of %v until the last of them had run, others were not started for %v, want %v at most", last.Sub(began), stopped, most)
				}
				t.Logf("%d forged ran in %v; the others were kept from starting for %v at once, for %v in all", len(runs), last.Sub(began), longest, stopped)
			})
		})
	}
}

// TestAttackForgedMarkIsNobodysWithKeys: with signing keys the mark of a producer does not count:
// the message runs beside the others.
func TestAttackForgedMarkIsNobodysWithKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := reprise.ParseSigningKeys("1:" + strings.Repeat("k", 44))
		if err != nil {
			t.Fatal(err)
		}
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		q.Consume(j.Handler(func(ctx context.Context, _ *reprise.Message) error { return pass(ctx, 30*time.Second) }), reprise.Config{SigningKeys: keys})
		time.Sleep(time.Second)
		sendAlone(t, q, "forged")
		time.Sleep(time.Second)
		q.Send("other")
		time.Sleep(5 * time.Second)
		if f, o := len(j.Of("forged")), len(j.Of("other")); f != 1 || o != 1 {
			t.Errorf("the forged one runs %d times and the other %d times, want both to run", f, o)
		}
	})
}

// TestAttackLateKillerIsFound: a message kills its process after three minutes, when others run
// beside it again. It is dead-lettered after two crashes in processes that ran it alone at first,
// and no other message is given up, although others ran at each crash.
func TestAttackLateKillerIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(50)
		f := &kit.Mortals{
			Queue: q, Fuse: 3 * time.Minute, Takes: 5 * time.Second,
			Config: reprise.BatchConfig{Config: reprise.Config{Concurrency: 5, Retry: retry.Policy{Backoff: retry.Constant(10 * time.Minute), Jitter: retry.None, MaxAttempts: 5}}},
		}
		q.Send("poison")
		done := make(chan struct{})
		others := race.Fewer(4, 2) * 3600
		go func() {
			defer close(done)
			for i := range others {
				q.Send(fmt.Sprint("other-", i))
				time.Sleep(time.Second)
			}
		}()
		f.Live(2, time.Duration(others)*time.Second+time.Hour)
		<-done
		letters := dead.Messages()
		if len(letters) != 1 || letters[0].Body != "poison" || kit.StoryOf(t, letters[0]).Reason != "crash" {
			t.Errorf("dead letters %+v, want the killer alone, by its crashes", letters)
		}
		if len(f.Handled) != others || len(q.Messages()) != 0 {
			t.Errorf("%d of %d others were handled, %d are left", len(f.Handled), others, len(q.Messages()))
		}
		if f.Deaths > 7 || f.Alone > 1 {
			t.Errorf("%d deaths, %d with nothing beside; want few, with others beside", f.Deaths, f.Alone)
		}
	})
}
