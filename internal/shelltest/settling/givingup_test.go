package settling

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

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestGivingUpByTheMany: if a handler refuses all messages, the health, the log and the observer
// show it, once at the beginning and once at the end, with a dead-letter queue or without, for
// messages and for batches.
func TestGivingUpByTheMany(t *testing.T) {
	for name, test := range map[string]struct{ deadLetters, batch, quiet bool }{
		"dead-letter queue": {deadLetters: true},
		"none":              {},
		"batches":           {deadLetters: true, batch: true},
		"until all is gone": {deadLetters: true, quiet: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				if test.deadLetters {
					q.NewDeadLetterQueue(1000)
				}
				var mended atomic.Bool
				work := func(context.Context, *reprise.Message) error {
					if mended.Load() {
						return nil
					}
					return reprise.Permanent(errors.New("the token has expired"))
				}
				log := kit.NewLogged(slog.LevelInfo)
				var mu sync.Mutex
				var events []reprise.GivingUp
				cfg := reprise.Config{Logger: slog.New(log), Observer: reprise.Observer{GivingUp: func(_ context.Context, e reprise.GivingUp) {
					mu.Lock()
					defer mu.Unlock()
					events = append(events, e)
				}}}
				told := func() []reprise.GivingUp {
					mu.Lock()
					defer mu.Unlock()
					return slices.Clone(events)
				}
				q.Send(kit.Numbered(500)...)
				c := consumeAs(q, test.batch, work, cfg)
				time.Sleep(time.Minute)

				s := c.Status()
				if s.Health != reprise.HealthDegraded || s.GivingUp == nil || s.GivingUp.Reason != retry.ReasonPermanent || s.GivingUp.Total != 500 {
					t.Errorf("health %v (%q), giving up %+v: want it degraded by 500 messages", s.Health, s.Problem, s.GivingUp)
				}
				for _, part := range []string{"hardly one succeeds", "50 of the last 50", "500 since", "a minute", "permanent", "the token has expired"} {
					if !strings.Contains(s.Problem, part) {
						t.Errorf("the problem %q does not say %q", s.Problem, part)
					}
				}
				if e := told(); len(e) != 1 || e[0].Over || e[0].GivenUp < 20 {
					t.Errorf("told %+v, want that it has begun", e)
				}

				mended.Store(true)
				if !test.quiet {
					q.Send(kit.Numbered(30)...)
				}
				time.Sleep(10 * time.Minute)
				if s := c.Status(); s.GivingUp != nil || strings.Contains(s.Problem, "hardly") || test.deadLetters && s.Health != reprise.HealthOK {
					t.Errorf("health %v (%q) after the end", s.Health, s.Problem)
				}
				if e := told(); len(e) != 2 || !e[1].Over || e[1].Total != 500 || !e[1].Since.Equal(e[0].Since) {
					t.Errorf("told %+v, want that it has ended", e)
				}
				c.Stop()
				for text, n := range map[string]int{"level=WARN msg=\"many messages are given up": 1, "level=INFO msg=\"messages are no longer given up": 1} {
					if got := log.Count(text); got != n {
						t.Errorf("%d lines of %q, want %d", got, text, n)
					}
				}
			})
		})
	}
}

func consumeAs(q *reprisetest.Queue, batch bool, work reprise.HandlerFunc, cfg reprise.Config) *reprisetest.Consumer {
	if !batch {
		return q.Consume(work, cfg)
	}
	return q.ConsumeBatch(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
		errs := make([]error, len(ms))
		for i, m := range ms {
			errs[i] = work(ctx, m)
		}
		return errs
	}), reprise.BatchConfig{Config: cfg})
}

// TestSomeGivenUpIsNoAlarm: half of the messages are given up, and the health is ok.
func TestSomeGivenUpIsNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(1000)
		q.Send(kit.Numbered(1000)...)
		var told atomic.Int32
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Body[len(m.Body)-1]%2 == 0 {
				return reprise.Permanent(errors.New("bad"))
			}
			return nil
		}), reprise.Config{Logger: slog.New(slog.DiscardHandler), Observer: reprise.Observer{
			GivingUp: func(context.Context, reprise.GivingUp) { told.Add(1) },
		}})
		q.WaitEmpty(time.Hour)
		if s := c.Status(); s.Health != reprise.HealthOK || s.Counts.DeadLettered != 500 || told.Load() != 0 {
			t.Errorf("health %v (%q) after %d dead letters, told %d times", s.Health, s.Problem, s.Counts.DeadLettered, told.Load())
		}
	})
}

// TestDeadLettersAreLogged: a few dead letters have a line each; of many, the others are counted,
// also when the consumer is stopped meanwhile.
func TestDeadLettersAreLogged(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprint("stopped ", stopped), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.NewDeadLetterQueue(1000)
				log := kit.NewLogged(slog.LevelInfo)
				c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					return reprise.Permanent(errors.New("no such account"))
				}), reprise.Config{Logger: slog.New(log), LongPoll: time.Second}) // so that a stop takes less than an interval
				const line, rest = "level=WARN msg=\"message dead-lettered\"", "more messages dead-lettered, not logged one by one"
				for range 7 { // one after the other: each has its line
					q.Send("order")
					time.Sleep(5 * time.Second)
				}
				if n := log.Count(line, "message.id=", "message.attempt=1", "reason=permanent", "no such account"); n != 7 {
					t.Errorf("%d lines for 7 dead letters", n)
				}
				time.Sleep(time.Minute)
				q.Send(kit.Numbered(500)...)
				time.Sleep(3 * time.Second)
				if !stopped {
					time.Sleep(time.Minute)
				}
				c.Stop()
				if n, left := log.Count(line), log.Count(rest, "count=490"); n != 17 || left != 1 || log.Count(rest) != 1 {
					t.Errorf("%d lines and %d of the 490 left out, want 17 and 1", n, left)
				}
			})
		})
	}
}

// TestFailedAttemptsAreLoggedAtDebug: failed attempts are logged at level debug, successes not at
// all, the start and the stop at level info.
func TestFailedAttemptsAreLoggedAtDebug(t *testing.T) {
	for _, batch := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			log := kit.NewLogged(slog.LevelDebug)
			c := consumeAs(q, batch, func(_ context.Context, m *reprise.Message) error {
				if m.Attempt < 4 {
					return errors.New("no answer")
				}
				return nil
			}, reprise.Config{Logger: slog.New(log)})
			q.Send("order")
			q.WaitEmpty(time.Hour)
			c.Stop()
			if n := log.Count("level=DEBUG", "attempt failed", "no answer", "outcome=retry", "due="); n != 3 {
				t.Errorf("batch %v: %d lines at debug, want 3", batch, n)
			}
			for _, text := range []string{"msg=consuming", "msg=stopping", "msg=stopped"} {
				if n := log.Count("level=INFO", text); n != 1 {
					t.Errorf("batch %v: %d lines with %q", batch, n, text)
				}
			}
			if strings.Contains(log.String(), "body") {
				t.Error("the log shows a body")
			}
		})
	}
}

// TestGivingUpIsOneSentence: the event of giving up is one sentence for an operator.
func TestGivingUpIsOneSentence(t *testing.T) {
	g := reprise.GivingUp{
		Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), GivenUp: 49, Succeeded: 1, Total: 100,
		PerMinute: 60, Reason: retry.ReasonPermanent, Problem: "error 99",
	}
	const text = "messages are given up and hardly one succeeds: 49 of the last 50, 60 a minute, 100 since 2026-01-01T00:00:00Z, mostly for the reason permanent: error 99"
	if g.String() != text {
		t.Errorf("it says %q\nwant    %q", g.String(), text)
	}
}
