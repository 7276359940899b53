package settling

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestHistoryThatDoesNotCount: a message that is redriven, sent again or forged
// starts anew, under its own id, and its handler sees no history. That is a
// finding, once.
func TestHistoryThatDoesNotCount(t *testing.T) {
	const year = 366 * 24 * 3600_000
	for name, spoil := range map[string]func(*kit.History){
		"written three minutes ago":   func(h *kit.History) { h.SentAt -= 180_000; h.First, h.Sent = h.SentAt, h.SentAt },
		"written in three minutes":    func(h *kit.History) { h.SentAt += 180_000 },
		"never written":               func(h *kit.History) { h.SentAt = 0 },
		"of another queue":            func(h *kit.History) { h.Queue = "another" },
		"no origin":                   func(h *kit.History) { h.Origin = "" },
		"an origin too long":          func(h *kit.History) { h.Origin = strings.Repeat("x", 129) },
		"an origin of two lines":      func(h *kit.History) { h.Origin = "a\nb" },
		"fewer attempts than none":    func(h *kit.History) { h.Attempt = -1 },
		"more attempts than a few":    func(h *kit.History) { h.Attempt = 1_000_001 },
		"a generation below zero":     func(h *kit.History) { h.Generation = -1 },
		"releases below zero":         func(h *kit.History) { h.Releases = -1 },
		"a mark that does not exist":  func(h *kit.History) { h.Alone = 2 },
		"a trail too long":            func(h *kit.History) { h.Trail = strings.Repeat("x", 129) },
		"a trail with a space":        func(h *kit.History) { h.Trail = "a trail" },
		"received before it was sent": func(h *kit.History) { h.First = h.Sent - 1 },
		"received after this copy":    func(h *kit.History) { h.First = h.SentAt + 1 },
		"sent more than a year ago":   func(h *kit.History) { h.Sent = h.SentAt - year - 1 },
		"due in more than a year":     func(h *kit.History) { h.NotBefore = h.SentAt + year + 1 },
		"due before time began":       func(h *kit.History) { h.NotBefore = -1 },
		"as large as a message":       func(h *kit.History) { h.Error = strings.Repeat("x", 2048) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				h := kit.Plausible(q)
				spoil(&h)
				checkStartsAnew(t, q, h.Text(t))
			})
		})
	}
	for _, text := range []string{"x", "null", "[]", `"history"`, "{}", `{"attempt":"3"}`, `{"attempt":3.5}`} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkStartsAnew(t, reprisetest.NewQueue(t, nil), text) })
		})
	}
	t.Run("and something behind it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			checkStartsAnew(t, q, kit.Plausible(q).Text(t)+"{}")
		})
	})
	t.Run("on a FIFO queue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, kit.FIFOQueue)
			var seen []reprise.Message
			q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
				seen = append(seen, *m)
				return nil
			}), reprise.Config{})
			q.SendMessage(sqsserver.SendMessageEntry{
				MessageBody: "order", MessageGroupId: "g", MessageDeduplicationId: "d",
				MessageAttributes: []sqsserver.MessageAttribute{{Name: reprise.HistoryAttribute, DataType: "String", StringValue: kit.Plausible(q).Text(t)}},
			})
			q.WaitEmpty(time.Minute)
			if len(seen) != 1 || seen[0].Attempt != 1 || seen[0].OriginID != seen[0].ID || seen[0].Attributes != nil {
				t.Errorf("runs %+v, want a message without a history", seen)
			}
		})
	})
}

func checkStartsAnew(t *testing.T, q *reprisetest.Queue, text string) {
	t.Helper()
	var mu sync.Mutex
	var seen []reprise.Message
	var codes []string
	c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, *m)
		return nil
	}), reprise.Config{Observer: reprise.Observer{Finding: func(_ context.Context, f plan.Finding) {
		mu.Lock()
		defer mu.Unlock()
		if f.Code == "history-ignored" {
			codes = append(codes, f.Code)
		}
	}}})
	ids := []string{kit.Forged(q, "order", text), kit.Forged(q, "order", text)}
	q.WaitEmpty(time.Minute)
	c.Stop()
	if len(seen) != 2 || len(codes) != 1 {
		t.Fatalf("%d runs and %d findings, want 2 and 1", len(seen), len(codes))
	}
	for _, m := range seen {
		if m.Attempt != 1 || m.OriginID != m.ID || m.ID != ids[0] && m.ID != ids[1] || m.Attributes != nil || time.Since(m.Sent) > time.Minute {
			t.Errorf("run with %+v, want the first attempt at a message without a history", m)
		}
	}
}

// TestWaitsAndAgesBeyondAYear: times beyond a year in a copy's history are not accepted from
// any sender. The consumer itself writes no such times: a message with a longer wait, for example
// by a Retry-After, does not run again at once, again and again, and an older message keeps its
// history.
func TestWaitsAndAgesBeyondAYear(t *testing.T) {
	const year = 366 * 24 * time.Hour
	for name, wait := range map[string]func(time.Duration, error) error{"release": reprise.Release, "retry after": reprise.RetryAfter} {
		for _, d := range []time.Duration{math.MaxInt64, 2 * year}[:race.Fewer(2, 1)] {
			t.Run(fmt.Sprint(name, " ", d), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := reprisetest.NewQueue(t, nil)
					var j kit.Journal
					c := q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return wait(d, kit.ErrUnavailable) }), reprise.Config{Retry: kit.EveryMinute(-1)})
					q.Send("order")
					time.Sleep(24 * time.Hour)
					if n := len(j.All()); n != 1 {
						t.Errorf("%d runs in a day, want 1; counts %+v", n, c.Status().Counts)
					}
				})
			})
		}
	}
	t.Run("age", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			var j kit.Journal
			q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), reprise.Config{
				Via:   reprise.ViaRequeue,
				Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: -1, MaxAge: -1},
			})
			h := kit.Plausible(q)
			h.Sent, h.First = h.SentAt-year.Milliseconds()+1000, h.SentAt-year.Milliseconds()+1000
			kit.Forged(q, "order", h.Text(t))
			time.Sleep(150 * time.Minute)
			var attempts []int
			for _, r := range j.All() {
				attempts = append(attempts, r.Attempt)
			}
			if diff := cmp.Diff([]int{5, 6, 7}, attempts); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	})
}

// TestForgedHistoryHarmsItselfOnly: a forged history can delay its own message or have it given up.
// Other messages are not affected.
func TestForgedHistoryHarmsItselfOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		var j kit.Journal
		q.Consume(j.Handler(kit.Succeed), reprise.Config{Retry: retry.Policy{MaxAge: -1}})
		used, later := kit.Plausible(q), kit.Plausible(q)
		used.Attempt = 1_000_000
		later.NotBefore = later.SentAt + int64(40*time.Hour/time.Millisecond)
		kit.Forged(q, "used up", used.Text(t))
		kit.Forged(q, "later", later.Text(t))
		for range 50 {
			alone := kit.Plausible(q)
			alone.Alone, alone.Attempt = 1, 0
			kit.Forged(q, "alone", alone.Text(t))
		}
		q.Send(kit.Numbered(200)...)
		time.Sleep(10 * time.Minute)
		if n := len(j.All()) - len(j.Of("alone")); n != 200 {
			t.Errorf("%d of the 200 others ran within ten minutes", n)
		}
		time.Sleep(40*time.Hour - 11*time.Minute)
		if n := len(j.Of("later")); n != 0 {
			t.Error("the message that is due later has run")
		}
		q.WaitEmpty(time.Hour)
		if n := len(j.Of("alone")); n != 50 {
			t.Errorf("%d of the 50 that are to run alone ran", n)
		}
		letters := dead.Messages()
		if len(letters) != 1 || letters[0].Body != "used up" || kit.StoryOf(t, letters[0]).Reason != "attempts" {
			t.Errorf("dead letters %+v, want the one that is used up", letters)
		}
	})
}

// TestRedriveDrawsAnew: a copy of another generation has other jitter.
func TestRedriveDrawsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		policy := retry.Policy{Backoff: retry.Constant(10 * time.Minute)}
		var j kit.Journal
		q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Retry: policy})
		for generation, seed := range map[int]string{0: "origin", 1: "origin#1", 7: "origin#7"} {
			h := kit.Plausible(q)
			h.Origin, h.Attempt, h.Generation = "origin", 0, generation
			kit.Forged(q, seed, h.Text(t))
		}
		q.WaitEmpty(time.Hour)
		for _, seed := range []string{"origin", "origin#1", "origin#7"} {
			runs := j.Of(seed)
			if len(runs) != 2 {
				t.Fatalf("runs %+v of %s, want two", runs, seed)
			}
			want := policy.Wait(seed, 1)
			if waited := runs[1].Started.Sub(runs[0].Started); waited < want || waited > want+2*time.Second {
				t.Errorf("%s waited %v, want %v", seed, waited, want)
			}
		}
	})
}

// TestRedriveIsCarriedOn: after a redrive a message draws new jitter, and its copies draw the same.
func TestRedriveIsCarriedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		policy := retry.Policy{Backoff: retry.Constant(10 * time.Minute)}
		var j kit.Journal
		q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 4 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Retry: policy, Via: reprise.ViaRequeue})
		h := kit.Plausible(q)
		h.Origin, h.Attempt, h.Generation = "origin", 0, 3
		kit.Forged(q, "order", h.Text(t))
		q.WaitEmpty(time.Hour)
		runs := j.All()
		if len(runs) != 4 {
			t.Fatalf("runs %+v, want four", runs)
		}
		for i := 1; i < len(runs); i++ {
			want := policy.Wait("origin#3", i)
			if waited := runs[i].Started.Sub(runs[i-1].Started); waited < want || waited > want+2*time.Second {
				t.Errorf("%v before attempt %d, want %v", waited, i+1, want)
			}
		}
	})
}

// TestCopiesKeepTheServersTime: this machine's clock is three hours behind. The times in a copy
// count nevertheless, and are correct.
func TestCopiesKeepTheServersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		if err := q.Server().Advance(3 * time.Hour); err != nil {
			t.Fatal(err)
		}
		const wait = 40 * time.Minute // more than SQS delays
		var j kit.Journal
		q.ConsumeWith(q.Client(), j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 3 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(wait), Jitter: retry.None}, Via: reprise.ViaRequeue})
		q.Send("order")
		q.WaitEmpty(4 * time.Hour)
		runs := j.All()
		if len(runs) != 3 {
			t.Fatalf("runs %+v, want three", runs)
		}
		for i := 1; i < len(runs); i++ {
			if waited := runs[i].Started.Sub(runs[i-1].Started); waited < wait || waited > wait+5*time.Second || runs[i].Attempt != i+1 {
				t.Errorf("attempt %d came after %v, want attempt %d after %v", runs[i].Attempt, waited, i+1, wait)
			}
		}
	})
}
