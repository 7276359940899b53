package repriselambda_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// sizes notes of how many messages batches are.
type sizes struct {
	mu  sync.Mutex
	had []int
}

func (s *sizes) note(ms []*reprise.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.had = append(s.had, len(ms))
}

// TestBatchOfAnEvent: all of it goes together, at once, unless smaller batches are asked
// for; and what fails is hidden ten to a call.
func TestBatchOfAnEvent(t *testing.T) {
	for name, c := range map[string]struct {
		batch repriselambda.BatchConfig
		sizes []int
	}{
		"by default": {repriselambda.BatchConfig{}, []int{125}},
		"by number":  {repriselambda.BatchConfig{Size: 50}, []int{25, 50, 50}},
		"by bytes":   {repriselambda.BatchConfig{Bytes: 400}, []int{25, 50, 50}}, // eight each
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				want := []string{}
				for i := range 125 {
					body := fmt.Sprintf("ok   %03d", i)
					if i%5 == 0 {
						body = fmt.Sprintf("fail %03d", i)
						want = append(want, body)
					}
					q.Send(body)
				}
				var batches sizes
				c.batch.Retry = every40
				m := newBatchMapping(t, q, func(ctx context.Context, ms []*reprise.Message) []error {
					batches.note(ms)
					time.Sleep(time.Second)
					return inTurn(does)(ctx, ms)
				}, c.batch)
				event := m.event(125)
				began := time.Now()
				failed := m.invokeWith(event)
				slices.Sort(failed)
				if diff := cmp.Diff(want, failed); diff != "" {
					t.Errorf("failed (-want +got):\n%s", diff)
				}
				if took := time.Since(began); took < time.Second || took > time.Second+10*time.Millisecond {
					t.Errorf("replied after %v, want 1 s", took)
				}
				slices.Sort(batches.had)
				if diff := cmp.Diff(c.sizes, batches.had); diff != "" {
					t.Errorf("sizes of the batches (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(calls{Attributes: 1, Visibilities: 3, Hidden: 25}, m.client.calls()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestVerdicts: what a handler may return or do, and what becomes of the messages.
func TestVerdicts(t *testing.T) {
	told := errors.New("as told")
	for name, c := range map[string]struct {
		handler reprise.BatchHandlerFunc
		failed  []string
	}{
		"nil":      {func(context.Context, []*reprise.Message) []error { return nil }, []string{}},
		"all nil":  {func(_ context.Context, ms []*reprise.Message) []error { return make([]error, len(ms)) }, []string{}},
		"the last": {func(context.Context, []*reprise.Message) []error { return []error{nil, nil, told} }, []string{"c"}},
		"all but the last": {func(context.Context, []*reprise.Message) []error {
			return []error{told, told, nil}
		}, []string{"a", "b"}},
		"in another order": {func(_ context.Context, ms []*reprise.Message) []error {
			slices.Reverse(ms)
			return []error{told, nil, nil}
		}, []string{"c"}},
		"too few":          {func(context.Context, []*reprise.Message) []error { return []error{nil, nil} }, []string{"a", "b", "c"}},
		"none":             {func(context.Context, []*reprise.Message) []error { return []error{} }, []string{"a", "b", "c"}},
		"too many":         {func(context.Context, []*reprise.Message) []error { return make([]error, 4) }, []string{"a", "b", "c"}},
		"a panic":          {func(context.Context, []*reprise.Message) []error { panic("as told") }, []string{"a", "b", "c"}},
		"of changed names": {func(_ context.Context, ms []*reprise.Message) []error { ms[0] = ms[1]; return make([]error, 3) }, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Send("a", "b", "c")
				m := newBatchMapping(t, q, c.handler, repriselambda.BatchConfig{Config: repriselambda.Config{Retry: every40}})
				if diff := cmp.Diff(c.failed, m.invoke()); diff != "" {
					t.Errorf("failed (-want +got):\n%s", diff)
				}
				want := calls{Attributes: 1}
				if n := len(c.failed); n > 0 {
					want.Visibilities, want.Hidden = 1, n
				}
				if diff := cmp.Diff(want, m.client.calls()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				for body, wait := range waits(q, time.Now()) {
					if wait != 40*time.Second {
						t.Errorf("%s is hidden for %v, want 40 s", body, wait)
					}
				}
			})
		})
	}
}

// TestGroupsInOneBatch: they go together, in order. What the handler says of messages
// behind a failure of their group is ignored; behind a dead letter they make another
// batch.
func TestGroupsInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		dead := q.NewDeadLetterQueue(10)
		sendTo(q, "a.1", "b.1", "a.2 fail", "a.3", "b.2 permanent", "a.4 permanent", "b.3", "c.1")
		var ran [][]string
		m := newBatchMapping(t, q, func(_ context.Context, ms []*reprise.Message) []error {
			var bodies []string
			errs := make([]error, len(ms))
			for i, m := range ms {
				bodies = append(bodies, m.Body)
				switch {
				case strings.HasSuffix(m.Body, "fail"):
					errs[i] = errors.New("as told")
				case strings.HasSuffix(m.Body, "permanent"):
					errs[i] = reprise.Permanent(errors.New("as told"))
				}
			}
			ran = append(ran, bodies)
			return errs
		}, repriselambda.BatchConfig{Config: repriselambda.Config{Retry: every40}})
		began := time.Now()
		if diff := cmp.Diff([]string{"a.2 fail", "a.3", "a.4 permanent"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("the reply took %v", took)
		}
		want := [][]string{{"a.1", "a.2 fail", "a.3", "a.4 permanent", "b.1", "b.2 permanent", "b.3", "c.1"}, {"b.3"}}
		if diff := cmp.Diff(want, ran); diff != "" {
			t.Errorf("ran (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]time.Duration{"a.2 fail": 40 * time.Second, "a.3": 40 * time.Second, "a.4 permanent": 40 * time.Second}, waits(q, time.Now())); diff != "" {
			t.Errorf("hidden for (-want +got):\n%s", diff)
		}
		if letters := dead.Messages(); len(letters) != 1 || letters[0].Body != "b.2 permanent" {
			t.Errorf("dead letters: %+v", letters)
		}
		if diff := cmp.Diff(calls{Attributes: 2, Visibilities: 2, Hidden: 3, Sends: 1}, m.client.calls()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestDeadlineEndsBatches, and with them the contexts of their messages, with time left
// to settle: what they say has failed waits by its policy; the batch behind comes back
// within a second, not run.
func TestDeadlineEndsBatches(t *testing.T) {
	const left = 3 * time.Second
	type key struct{}
	for name, contextOf := range map[string]func(context.Context, *reprise.Message) context.Context{
		"the batch's":            func(ctx context.Context, _ *reprise.Message) context.Context { return ctx },
		"a message's":            reprise.MessageContext,
		"a message's with claim": idempotency.MessageContext,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				once, err := idempotency.NewBatch(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{})
				if err != nil {
					t.Fatal(err)
				}
				q := reprisetest.NewQueue(t, nil)
				q.Send("wait 1", "ok", "wait 2", "ok 2", "ok 3")
				began := time.Now()
				ran := 0
				handler := once(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
					ran++
					errs := make([]error, len(ms))
					for i, m := range ms {
						its := contextOf(ctx, m)
						if end, ok := its.Deadline(); !ok || end.Sub(began) != functionTimeout-left {
							t.Errorf("the context of %s ends %v after the invocation's begin, %v", m.Body, end.Sub(began), ok)
						}
						if got := its.Value(key{}); name != "the batch's" && got != "started "+m.Body {
							t.Errorf("the context of %s has %v of the observer", m.Body, got)
						}
						errs[i] = does(its, m)
					}
					if took := time.Since(began); took != functionTimeout-left {
						t.Errorf("the handler ended after %v", took)
					}
					return errs
				}))
				m := newBatchMapping(t, q, handler.HandleBatch, repriselambda.BatchConfig{Size: 3, Config: repriselambda.Config{
					Retry:       every40,
					Concurrency: 1,
					Observer: reprise.Observer{Starting: func(ctx context.Context, m *reprise.Message) (context.Context, string) {
						return context.WithValue(ctx, key{}, "started "+m.Body), ""
					}},
				}})
				if diff := cmp.Diff([]string{"wait 1", "wait 2", "ok 2", "ok 3"}, m.invoke()); diff != "" {
					t.Errorf("failed (-want +got):\n%s", diff)
				}
				hidden := waits(q, time.Now())
				if len(hidden) != 4 || hidden["wait 1"] != 40*time.Second || hidden["wait 2"] != 40*time.Second || hidden["ok 2"] > time.Second || hidden["ok 3"] > time.Second {
					t.Errorf("hidden for %v, want 40 s for those that waited and a second at most for the others", hidden)
				}
				if ran != 1 {
					t.Errorf("%d batches ran, want 1", ran)
				}
			})
		})
	}
}

// TestBatchThatWouldNotEnd is not begun, by the longest before it that had a success. One
// that had none proves nothing.
func TestBatchThatWouldNotEnd(t *testing.T) {
	for word, want := range map[string][]string{"ok": {"fail 2", "last"}, "fail": {"fail 1", "fail 2"}} {
		t.Run(word, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Send(word+" 1", "fail 2", "last")
				m := newBatchMapping(t, q, func(ctx context.Context, ms []*reprise.Message) []error {
					if ms[0].Body == "last" {
						return nil
					}
					time.Sleep(functionTimeout / 2)
					return inTurn(does)(ctx, ms)
				}, repriselambda.BatchConfig{Size: 2, Config: repriselambda.Config{Retry: every40, Concurrency: 1}})
				if diff := cmp.Diff(want, m.invoke()); diff != "" {
					t.Errorf("failed (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBatchThatDoesNotEnd does not keep the reply. All of its messages are named and come
// again after the queue's timeout; another batch is settled.
func TestBatchThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("endless", "ok 1", "ok 2", "after")
		release := make(chan struct{})
		defer close(release)
		m := newBatchMapping(t, q, func(ctx context.Context, ms []*reprise.Message) []error {
			if ms[0].Body == "endless" {
				<-release
			}
			return inTurn(does)(ctx, ms)
		}, repriselambda.BatchConfig{Size: 2})
		began := time.Now()
		if diff := cmp.Diff([]string{"endless", "ok 1", "after"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took < functionTimeout-3*time.Second || took > functionTimeout-500*time.Millisecond {
			t.Errorf("replied after %v", took)
		}
		if diff := cmp.Diff(map[string]time.Duration{"endless": visibility, "ok 1": visibility, "after": 100 * time.Second}, waits(q, began)); diff != "" {
			t.Errorf("hidden for (-want +got):\n%s", diff)
		}
	})
}
