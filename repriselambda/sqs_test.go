package repriselambda_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// does is a handler that does what the message's body says.
func does(ctx context.Context, m *reprise.Message) error {
	switch word, _, _ := strings.Cut(m.Body, " "); word {
	case "ok":
		return nil
	case "panic":
		panic("as told")
	case "permanent":
		return reprise.Permanent(errors.New("as told"))
	case "after":
		return reprise.RetryAfter(100*time.Second, errors.New("as told"))
	case "release":
		return reprise.Release(50*time.Second, errors.New("as told"))
	case "wait":
		<-ctx.Done()
		return fmt.Errorf("waiting: %w", ctx.Err())
	}
	return errors.New("as told")
}

// every40 retries after 40 seconds.
var every40 = retry.Policy{Backoff: retry.Constant(40 * time.Second), Jitter: retry.None}

// waits returns, by body, for how long the messages of q are hidden.
func waits(q *reprisetest.Queue, now time.Time) map[string]time.Duration {
	found := make(map[string]time.Duration)
	for _, m := range q.Messages() {
		found[m.Body] = 0
		if !m.Due.IsZero() {
			found[m.Body] = m.Due.Sub(now).Round(time.Second)
		}
	}
	return found
}

// TestPartialBatch: who failed is named and comes again when its policy says, who
// succeeded is not, and what that takes of calls.
func TestPartialBatch(t *testing.T) {
	ten := func(word string) (bodies []string) {
		for i := range 10 {
			bodies = append(bodies, fmt.Sprintf("%s %d", word, i))
		}
		return bodies
	}
	all := func(wait time.Duration, bodies ...string) map[string]time.Duration {
		found := make(map[string]time.Duration)
		for _, b := range bodies {
			found[b] = wait
		}
		return found
	}
	for name, c := range map[string]struct {
		in           []mode
		send, failed []string
		left         map[string]time.Duration
		dead         int
		calls        calls
	}{
		"all succeed":   {in: modes, send: ten("ok"), failed: []string{}, left: all(0), calls: calls{Attributes: 2}},
		"one succeeds":  {in: modes, send: []string{"ok"}, failed: []string{}, left: all(0), calls: calls{Attributes: 2}},
		"one of two":    {in: modes, send: []string{"ok", "fail"}, failed: []string{"fail"}, left: all(40*time.Second, "fail"), calls: calls{Attributes: 2, Visibilities: 1, Hidden: 1}},
		"all fail":      {in: modes, send: ten("fail"), failed: ten("fail"), left: all(40*time.Second, ten("fail")...), calls: calls{Attributes: 2, Visibilities: 1, Hidden: 10}},
		"a panic":       {in: each, send: []string{"panic", "ok"}, failed: []string{"panic"}, left: all(40*time.Second, "panic"), calls: calls{Attributes: 2, Visibilities: 1, Hidden: 1}},
		"its own times": {in: modes, send: []string{"after", "release"}, failed: []string{"after", "release"}, left: map[string]time.Duration{"after": 100 * time.Second, "release": 50 * time.Second}, calls: calls{Attributes: 2, Visibilities: 1, Hidden: 2}},
		"permanent":     {in: modes, send: []string{"permanent 1", "ok", "permanent 2"}, failed: []string{}, left: all(0), dead: 2, calls: calls{Attributes: 2, Sends: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inModes(t, c.in, func(t *testing.T, in mode) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(10)
				q.Send(c.send...)
				m := in.newMapping(t, q, does, repriselambda.Config{Retry: every40})
				failed := m.invoke()
				if diff := cmp.Diff(c.failed, failed); diff != "" {
					t.Errorf("failed (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(c.left, waits(q, time.Now())); diff != "" {
					t.Errorf("hidden for (-want +got):\n%s", diff)
				}
				if n := len(dead.Messages()); n != c.dead {
					t.Errorf("%d dead letters, want %d", n, c.dead)
				}
				if diff := cmp.Diff(c.calls, m.client.calls()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestReplyComesAtOnce: nobody pays for the time in which batches are gathered.
func TestReplyComesAtOnce(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("ok", "fail 1", "fail 2")
		m := in.newMapping(t, q, does, repriselambda.Config{Retry: every40})
		began := time.Now()
		m.invoke()
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("the reply took %v", took)
		}
	})
}

// TestLargeBatch: a mapping of a standard queue may send 10,000 messages at once, and
// no more handlers run than permitted.
func TestLargeBatch(t *testing.T) {
	inModes(t, each, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		want := []string{}
		for i := range 125 {
			body := fmt.Sprintf("ok %d", i)
			if i%5 == 0 {
				body = fmt.Sprintf("fail %d", i)
				want = append(want, body)
			}
			q.Send(body)
		}
		var running, most atomic.Int32
		m := in.newMapping(t, q, func(ctx context.Context, m *reprise.Message) error {
			n := running.Add(1)
			defer running.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(time.Second)
			return does(ctx, m)
		}, repriselambda.Config{Retry: every40, Concurrency: 7})
		failed := m.invokeWith(m.event(1000))
		slices.Sort(want)
		slices.Sort(failed)
		if diff := cmp.Diff(want, failed); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if most.Load() != 7 {
			t.Errorf("%d handlers ran at once, want 7", most.Load())
		}
		if got := m.client.calls(); got.Hidden != 25 || len(q.Messages()) != 25 {
			t.Errorf("%+v, %d messages left; want 25 hidden and left", got, len(q.Messages()))
		}
	})
}

// TestAttemptsAreCountedAcrossInvocations, each a consumer that knows nothing of the
// one before; the last is dead-lettered with its story.
func TestAttemptsAreCountedAcrossInvocations(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(10)
		policy := every40
		policy.MaxAttempts = 4
		var attempts []int
		m := in.newMapping(t, q, func(_ context.Context, m *reprise.Message) error {
			attempts = append(attempts, m.Attempt)
			return errors.New("as told")
		}, repriselambda.Config{Retry: policy, Name: "shipping"})
		q.Send("order")
		for range 5 {
			m.invoke()
			time.Sleep(41 * time.Second)
		}
		if diff := cmp.Diff([]int{1, 2, 3, 4}, attempts); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if n := len(q.Messages()); n != 0 {
			t.Errorf("%d messages are left", n)
		}
		letters := dead.Messages()
		if len(letters) != 1 || len(letters[0].Attributes) != 1 {
			t.Fatalf("dead letters: %+v", letters)
		}
		for _, part := range []string{`"reason":"attempts"`, `"attempts":4`, `"error":"as told"`, `"consumer":"shipping"`, q.ARN()} {
			if story := letters[0].Attributes[0].StringValue; !strings.Contains(story, part) {
				t.Errorf("the story %s lacks %s", story, part)
			}
		}
		if diff := cmp.Diff(calls{Attributes: 2, Visibilities: 3, Hidden: 3, Sends: 1}, m.client.calls()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestReleasesAddUpToOneAttempt: an invocation cannot know what became of a message's receives before.
// Its first release may count as an attempt; further ones leave a copy, whose history says that they
// were none. So a message that is released again and again still has its attempts, but one.
func TestReleasesAddUpToOneAttempt(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(10)
		policy := every40
		policy.MaxAttempts = 3
		var attempts []int
		m := in.newMapping(t, q, func(_ context.Context, m *reprise.Message) error {
			attempts = append(attempts, m.Attempt)
			if len(attempts) <= 6 {
				return reprise.Release(50*time.Second, errors.New("not now"))
			}
			return errors.New("as told")
		}, repriselambda.Config{Retry: policy})
		q.Send("order")
		for range 20 {
			m.invoke()
			time.Sleep(60 * time.Second)
		}
		if diff := cmp.Diff([]int{1, 2, 2, 2, 2, 2, 2, 3}, attempts); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if n := len(dead.Messages()); n != 1 {
			t.Errorf("%d dead letters, want the message", n)
		}
	})
}

// TestTwelveHoursCountFromTheReceive of Lambda, which gathered the batch for minutes
// before it invoked the function.
func TestTwelveHoursCountFromTheReceive(t *testing.T) {
	for name, c := range map[string]struct {
		receives int
		wait     time.Duration // between them
		gathered time.Duration
		want     time.Duration
	}{
		"the first receive, at once":             {1, 0, 0, 43195 * time.Second},
		"the first receive, after 5 min":         {1, 0, 300 * time.Second, 42895 * time.Second},
		"the first receive, kept longer":         {1, 0, 340 * time.Second, 42855 * time.Second},
		"the second receive, soon":               {2, time.Minute, 0, 43134 * time.Second},
		"the second receive, much later":         {2, time.Hour, 0, 42875 * time.Second},
		"the second receive, later, after 5 min": {2, time.Hour, 300 * time.Second, 42875 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Send("order")
				m := newMapping(t, q, func(_ context.Context, m *reprise.Message) error {
					if m.Receives < c.receives {
						return reprise.RetryAfter(c.wait, errors.New("as told"))
					}
					return reprise.RetryAfter(12*time.Hour, errors.New("as told"))
				}, repriselambda.Config{Retry: retry.Policy{MaxAge: -1}})
				for range c.receives - 1 {
					m.invoke()
					time.Sleep(c.wait + time.Second)
				}
				event := m.event(10)
				time.Sleep(c.gathered)
				if diff := cmp.Diff([]string{"order"}, m.invokeWith(event)); diff != "" {
					t.Errorf("failed (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(map[string]time.Duration{"order": c.want}, waits(q, time.Now())); diff != "" {
					t.Errorf("hidden for (-want +got):\n%s", diff)
				}
				if got := m.client.calls().Visibilities; got != c.receives {
					t.Errorf("%d changes of visibility, want %d: SQS has refused one", got, c.receives)
				}
			})
		})
	}
}

// TestWaitsBeyondTwelveHours are carried on by a copy that knows when it is due: its
// early receives run no handler.
func TestWaitsBeyondTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": "1209600"})
		q.Send("order")
		var ran []time.Time
		m := newMapping(t, q, func(_ context.Context, m *reprise.Message) error {
			ran = append(ran, time.Now())
			if m.Attempt == 1 {
				return reprise.RetryAfter(30*time.Hour, errors.New("as told"))
			}
			return nil
		}, repriselambda.Config{Retry: retry.Policy{MaxAge: -1}})
		for range 40 * 60 {
			m.invoke()
			time.Sleep(time.Minute)
		}
		if len(ran) != 2 || len(q.Messages()) != 0 {
			t.Fatalf("ran at %v, %d messages left", ran, len(q.Messages()))
		}
		if waited := ran[1].Sub(ran[0]); waited < 30*time.Hour || waited > 30*time.Hour+2*time.Minute {
			t.Errorf("the second attempt came after %v, want 30 h", waited)
		}
	})
}
