package reprise_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// forged sends a message with a history that its sender has written.
func forged(q *reprisetest.Queue, body, text string) string {
	return q.SendMessage(sqsserver.SendMessageEntry{
		MessageBody:       body,
		MessageAttributes: []sqsserver.MessageAttribute{{Name: reprise.HistoryAttribute, DataType: "String", StringValue: text}},
	})
}

// text returns h as it is sent, with the names of its members.
func (h history) text(t *testing.T) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"queue": h.Queue, "origin": h.Origin, "error": h.Error, "generation": h.Generation, "attempt": h.Attempt, "releases": h.Releases,
		"sent": h.Sent, "first": h.First, "notBefore": h.NotBefore, "sentAt": h.SentAt, "alone": h.Alone, "trail": h.Trail,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// plausible is a history that counts if it is sent now.
func plausible(q *reprisetest.Queue) history {
	now := time.Now().UnixMilli()
	return history{Queue: q.Name(), Origin: "5fea7756-0ea4-451a-a703-a558b933e274", Attempt: 4, Sent: now - 90_000, First: now - 60_000, SentAt: now}
}

// TestHistoryThatDoesNotCount: a message that is redriven, sent again or forged
// starts anew, under its own id, and its handler sees no history. That is a
// finding, once.
func TestHistoryThatDoesNotCount(t *testing.T) {
	const year = 366 * 24 * 3600_000
	for name, spoil := range map[string]func(*history){
		"written three minutes ago":   func(h *history) { h.SentAt -= 180_000; h.First, h.Sent = h.SentAt, h.SentAt },
		"written in three minutes":    func(h *history) { h.SentAt += 180_000 },
		"never written":               func(h *history) { h.SentAt = 0 },
		"of another queue":            func(h *history) { h.Queue = "another" },
		"no origin":                   func(h *history) { h.Origin = "" },
		"an origin too long":          func(h *history) { h.Origin = strings.Repeat("x", 129) },
		"an origin of two lines":      func(h *history) { h.Origin = "a\nb" },
		"fewer attempts than none":    func(h *history) { h.Attempt = -1 },
		"more attempts than a few":    func(h *history) { h.Attempt = 1_000_001 },
		"a generation below zero":     func(h *history) { h.Generation = -1 },
		"releases below zero":         func(h *history) { h.Releases = -1 },
		"a mark that does not exist":  func(h *history) { h.Alone = 2 },
		"a trail too long":            func(h *history) { h.Trail = strings.Repeat("x", 129) },
		"a trail with a space":        func(h *history) { h.Trail = "a trail" },
		"received before it was sent": func(h *history) { h.First = h.Sent - 1 },
		"received after this copy":    func(h *history) { h.First = h.SentAt + 1 },
		"sent more than a year ago":   func(h *history) { h.Sent = h.SentAt - year - 1 },
		"due in more than a year":     func(h *history) { h.NotBefore = h.SentAt + year + 1 },
		"due before time began":       func(h *history) { h.NotBefore = -1 },
		"as large as a message":       func(h *history) { h.Error = strings.Repeat("x", 2048) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				h := plausible(q)
				spoil(&h)
				checkStartsAnew(t, q, h.text(t))
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
			checkStartsAnew(t, q, plausible(q).text(t)+"{}")
		})
	})
	t.Run("on a FIFO queue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, fifoQueue)
			var seen []reprise.Message
			q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
				seen = append(seen, *m)
				return nil
			}), reprise.Config{})
			q.SendMessage(sqsserver.SendMessageEntry{
				MessageBody: "order", MessageGroupId: "g", MessageDeduplicationId: "d",
				MessageAttributes: []sqsserver.MessageAttribute{{Name: reprise.HistoryAttribute, DataType: "String", StringValue: plausible(q).text(t)}},
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
	ids := []string{forged(q, "order", text), forged(q, "order", text)}
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
		for _, d := range []time.Duration{2 * year, math.MaxInt64} {
			t.Run(fmt.Sprint(name, " ", d), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := reprisetest.NewQueue(t, nil)
					var j journal
					c := q.Consume(j.handler(func(context.Context, *reprise.Message) error { return wait(d, errUnavailable) }), reprise.Config{Retry: everyMinute(-1)})
					q.Send("order")
					time.Sleep(24 * time.Hour)
					if n := len(j.all()); n != 1 {
						t.Errorf("%d runs in a day, want 1; counts %+v", n, c.Status().Counts)
					}
				})
			})
		}
	}
	t.Run("age", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			var j journal
			q.Consume(j.handler(func(context.Context, *reprise.Message) error { return errUnavailable }), reprise.Config{
				Via:   reprise.ViaRequeue,
				Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: -1, MaxAge: -1},
			})
			h := plausible(q)
			h.Sent, h.First = h.SentAt-year.Milliseconds()+1000, h.SentAt-year.Milliseconds()+1000
			forged(q, "order", h.text(t))
			time.Sleep(150 * time.Minute)
			var attempts []int
			for _, r := range j.all() {
				attempts = append(attempts, r.attempt)
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
		var j journal
		q.Consume(j.handler(succeed), reprise.Config{Retry: retry.Policy{MaxAge: -1}})
		used, later := plausible(q), plausible(q)
		used.Attempt = 1_000_000
		later.NotBefore = later.SentAt + int64(40*time.Hour/time.Millisecond)
		forged(q, "used up", used.text(t))
		forged(q, "later", later.text(t))
		for range 50 {
			alone := plausible(q)
			alone.Alone, alone.Attempt = 1, 0
			forged(q, "alone", alone.text(t))
		}
		q.Send(numbered(200)...)
		time.Sleep(10 * time.Minute)
		if n := len(j.all()) - len(j.of("alone")); n != 200 {
			t.Errorf("%d of the 200 others ran within ten minutes", n)
		}
		time.Sleep(40*time.Hour - 11*time.Minute)
		if n := len(j.of("later")); n != 0 {
			t.Error("the message that is due later has run")
		}
		q.WaitEmpty(time.Hour)
		if n := len(j.of("alone")); n != 50 {
			t.Errorf("%d of the 50 that are to run alone ran", n)
		}
		letters := dead.Messages()
		if len(letters) != 1 || letters[0].Body != "used up" || storyOf(t, letters[0]).Reason != "attempts" {
			t.Errorf("dead letters %+v, want the one that is used up", letters)
		}
	})
}

// TestRedriveDrawsAnew: a copy of another generation has other jitter.
func TestRedriveDrawsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		policy := retry.Policy{Backoff: retry.Constant(10 * time.Minute)}
		var j journal
		q.Consume(j.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt == 1 {
				return errUnavailable
			}
			return nil
		}), reprise.Config{Retry: policy})
		for generation, seed := range map[int]string{0: "origin", 1: "origin#1", 7: "origin#7"} {
			h := plausible(q)
			h.Origin, h.Attempt, h.Generation = "origin", 0, generation
			forged(q, seed, h.text(t))
		}
		q.WaitEmpty(time.Hour)
		for _, seed := range []string{"origin", "origin#1", "origin#7"} {
			runs := j.of(seed)
			if len(runs) != 2 {
				t.Fatalf("runs %+v of %s, want two", runs, seed)
			}
			want := policy.Wait(seed, 1)
			if waited := runs[1].started.Sub(runs[0].started); waited < want || waited > want+2*time.Second {
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
		var j journal
		q.Consume(j.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 4 {
				return errUnavailable
			}
			return nil
		}), reprise.Config{Retry: policy, Via: reprise.ViaRequeue})
		h := plausible(q)
		h.Origin, h.Attempt, h.Generation = "origin", 0, 3
		forged(q, "order", h.text(t))
		q.WaitEmpty(time.Hour)
		runs := j.all()
		if len(runs) != 4 {
			t.Fatalf("runs %+v, want four", runs)
		}
		for i := 1; i < len(runs); i++ {
			want := policy.Wait("origin#3", i)
			if waited := runs[i].started.Sub(runs[i-1].started); waited < want || waited > want+2*time.Second {
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
		var j journal
		q.ConsumeWith(q.Client(), j.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 3 {
				return errUnavailable
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(wait), Jitter: retry.None}, Via: reprise.ViaRequeue})
		q.Send("order")
		q.WaitEmpty(4 * time.Hour)
		runs := j.all()
		if len(runs) != 3 {
			t.Fatalf("runs %+v, want three", runs)
		}
		for i := 1; i < len(runs); i++ {
			if waited := runs[i].started.Sub(runs[i-1].started); waited < wait || waited > wait+5*time.Second || runs[i].attempt != i+1 {
				t.Errorf("attempt %d came after %v, want attempt %d after %v", runs[i].attempt, waited, i+1, wait)
			}
		}
	})
}
