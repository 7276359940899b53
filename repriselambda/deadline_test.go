package repriselambda_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestDeadlineEndsAttempts with time left to settle them: an attempt that took too
// long has failed, and waits by its policy; what had not started comes back within a
// second, not run.
func TestDeadlineEndsAttempts(t *testing.T) {
	inModes(t, each, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("wait 1", "wait 2", "ok", "ok", "ok")
		var ended error
		var left time.Duration
		ran := 0
		began := time.Now()
		m := in.newMapping(t, q, func(ctx context.Context, m *reprise.Message) error {
			ran++
			err := does(ctx, m)
			if err != nil {
				ended, left = err, functionTimeout-time.Since(began)
			}
			return err
		}, repriselambda.Config{Retry: every40, Concurrency: 1})
		if diff := cmp.Diff([]string{"wait 1", "wait 2", "ok", "ok", "ok"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if !errors.Is(ended, context.DeadlineExceeded) || left != 3*time.Second {
			t.Errorf("the handler ended with %v, %v before the function's time was over", ended, left)
		}
		if hidden := waits(q, time.Now()); hidden["wait 1"] != 40*time.Second || hidden["wait 2"] > time.Second || hidden["ok"] > time.Second || len(q.Messages()) != 5 {
			t.Errorf("hidden for %v, want 40 s for the first and a second at most for the others", hidden)
		}
		if ran != 1 {
			t.Errorf("%d handlers ran, want 1", ran)
		}
	})
}

// TestNothingIsBegunThatWouldNotEnd: by the experience of the invocation there is no
// time for a third message.
func TestNothingIsBegunThatWouldNotEnd(t *testing.T) {
	inModes(t, each, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("ok 1", "ok 2", "ok 3")
		ran := 0
		m := in.newMapping(t, q, func(context.Context, *reprise.Message) error {
			ran++
			time.Sleep(25 * time.Second)
			return nil
		}, repriselambda.Config{Concurrency: 1})
		began := time.Now()
		if diff := cmp.Diff([]string{"ok 3"}, m.invoke()); diff != "" || ran != 2 {
			t.Errorf("failed (-want +got):\n%s, %d handlers ran", diff, ran)
		}
		if took := time.Since(began).Round(time.Second); took != 50*time.Second {
			t.Errorf("replied after %v, want 50 s", took)
		}
		if wait := waits(q, time.Now())["ok 3"]; wait != time.Second {
			t.Errorf("the third is hidden for %v, want 1 s", wait)
		}
	})
}

// TestDeadlineOfShortFunctions, of which a quarter is kept.
func TestDeadlineOfShortFunctions(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("wait")
		m := in.newMapping(t, q, does, repriselambda.Config{Retry: every40})
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		event := m.event(10)
		began := time.Now()
		response, err := m.function(ctx, event)
		if err != nil || len(response.BatchItemFailures) != 1 {
			t.Errorf("replied %+v, %v", response, err)
		}
		if took := time.Since(began); took < 1500*time.Millisecond || took > 1600*time.Millisecond {
			t.Errorf("replied after %v, want 1.5 s", took)
		}
	})
}

// TestHandlerThatDoesNotEnd does not keep the reply: its message is named, the
// others are settled, and nothing is left of the consumer when it ends.
func TestHandlerThatDoesNotEnd(t *testing.T) {
	inModes(t, each, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("endless", "ok", "after")
		release := make(chan struct{})
		m := in.newMapping(t, q, func(ctx context.Context, m *reprise.Message) error {
			if m.Body == "endless" {
				<-release
			}
			return does(ctx, m)
		}, repriselambda.Config{Retry: every40})
		defer close(release)
		began := time.Now()
		if diff := cmp.Diff([]string{"endless", "after"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took < functionTimeout-3*time.Second || took > functionTimeout-500*time.Millisecond {
			t.Errorf("replied after %v", took)
		}
		if diff := cmp.Diff(map[string]time.Duration{"endless": visibility, "after": 100 * time.Second}, waits(q, began)); diff != "" {
			t.Errorf("hidden for (-want +got):\n%s", diff)
		}
	})
}

// TestInvocationsAtOnce, as a process of Lambda Managed Instances has them.
func TestInvocationsAtOnce(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		for range 20 {
			q.Send("ok", "fail")
		}
		var ran atomic.Int32
		m := in.newMapping(t, q, func(ctx context.Context, m *reprise.Message) error {
			ran.Add(1)
			time.Sleep(time.Second)
			return does(ctx, m)
		}, repriselambda.Config{Retry: every40})
		failed := make(chan int)
		for range 4 {
			event := m.event(10)
			go func() { failed <- len(m.invokeWith(event)) }()
		}
		for range 4 {
			if n := <-failed; n != 5 {
				t.Errorf("%d messages failed, want 5", n)
			}
		}
		if ran.Load() != 40 || len(q.Messages()) != 20 {
			t.Errorf("%d handlers ran, %d messages left; want 40 and 20", ran.Load(), len(q.Messages()))
		}
	})
}
