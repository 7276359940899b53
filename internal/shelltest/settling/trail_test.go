package settling

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// walk records the trails that an observer and a handler see.
type walk struct {
	node string

	mu   *sync.Mutex
	seen *[]string
}

type walkKey struct{}

func (w walk) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*w.seen = append(*w.seen, w.node+" "+fmt.Sprintf(format, args...))
}

// observer leaves the trail "node/attempt", and puts it into the context of the run.
func (w walk) observer() reprise.Observer {
	return reprise.Observer{
		Starting: func(ctx context.Context, m *reprise.Message) (context.Context, string) {
			left := fmt.Sprintf("%s/%d", w.node, m.Attempt)
			w.note("starts %d after %q", m.Attempt, m.Trail)
			return context.WithValue(ctx, walkKey{}, left), left
		},
		Attempt: func(ctx context.Context, e reprise.Attempt) {
			w.note("ended %d with %v, trail %q, context %v, %v", e.Message.Attempt, e.Outcome, e.Message.Trail, ctx.Value(walkKey{}), ctx.Err())
		},
		Settled: func(_ context.Context, e reprise.Settled) { w.note("settled %v, trail %q", e.Outcome, e.Message.Trail) },
	}
}

// fails has the handler fail before its attempt number n.
func (w walk) fails(n int) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		w.note("runs in the context of %v, after %q", ctx.Value(walkKey{}), m.Trail)
		if m.Attempt < n {
			return kit.ErrUnavailable
		}
		return nil
	})
}

// TestTrailFromAttemptToAttempt: the trail of an attempt reaches the next one, in this process
// after a wait by visibility, and in another one by a copy. Handlers run in the context that the
// observer returns.
func TestTrailFromAttemptToAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		var seen []string
		a, b := walk{"a", &mu, &seen}, walk{"b", &mu, &seen}
		policy := kit.EveryMinute(9)
		first := q.Consume(a.fails(9), reprise.Config{Retry: policy, Observer: a.observer()})
		q.Send("order")
		time.Sleep(90 * time.Second)
		first.Stop()
		last := q.Consume(a.fails(9), reprise.Config{Retry: policy, Via: reprise.ViaRequeue, Observer: a.observer()})
		time.Sleep(time.Minute)
		last.Stop()
		q.Consume(b.fails(4), reprise.Config{Retry: policy, Observer: b.observer()})
		q.WaitEmpty(time.Hour)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := []string{
			`a starts 1 after ""`,
			`a runs in the context of a/1, after ""`,
			`a ended 1 with retry, trail "a/1", context a/1, <nil>`,
			`a settled retry, trail "a/1"`,
			`a starts 2 after "a/1"`,
			`a runs in the context of a/2, after "a/1"`,
			`a ended 2 with retry, trail "a/2", context a/2, <nil>`,
			`a settled retry, trail "a/2"`,
			`a starts 3 after ""`, // another process, and nothing to tell it
			`a runs in the context of a/3, after ""`,
			`a ended 3 with retry, trail "a/3", context a/3, <nil>`,
			`a settled retry, trail "a/3"`,
			`b starts 4 after "a/3"`,
			`b runs in the context of b/4, after "a/3"`,
			`b ended 4 with delete, trail "b/4", context b/4, <nil>`,
			`b settled delete, trail "b/4"`,
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("what was seen (-want +got):\n%s", diff)
		}
	})
}

// TestTrailOfMessagesThatAreHeld: a FIFO message that is held, and one that is held
// for an outage, see the trail of the attempt before as well.
func TestTrailOfMessagesThatAreHeld(t *testing.T) {
	for name, attributes := range map[string]map[string]string{
		"FIFO":   {"FifoQueue": "true", "ContentBasedDeduplication": "true"},
		"outage": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, attributes)
				var mu sync.Mutex
				var runs int
				var trails []string
				q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					mu.Lock()
					defer mu.Unlock()
					trails = append(trails, m.Trail)
					if len(trails) < 4 {
						return reprise.Unavailable(kit.ErrUnavailable)
					}
					return nil
				}), reprise.Config{
					Concurrency: 1,
					Retry:       retry.Policy{Backoff: retry.Constant(10 * time.Second), Jitter: retry.None, MaxAttempts: 9},
					Outage:      reprise.Outage{Threshold: 1},
					Observer: reprise.Observer{Starting: func(ctx context.Context, _ *reprise.Message) (context.Context, string) {
						runs++
						return ctx, fmt.Sprintf("run-%d", runs)
					}},
				})
				q.Send("order")
				q.WaitEmpty(time.Hour)
				if diff := cmp.Diff([]string{"", "run-1", "run-2", "run-3"}, trails); diff != "" {
					t.Errorf("trails (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestTrailThatIsNone: an observer that returns no context, panics, or leaves a trail that is too
// long does no harm; the trail before it stays.
func TestTrailThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		starts := []func(context.Context) (context.Context, string){
			func(ctx context.Context) (context.Context, string) { return ctx, "good" },
			func(context.Context) (context.Context, string) { return nil, "" },
			func(ctx context.Context) (context.Context, string) { return ctx, strings.Repeat("x", 129) },
			func(ctx context.Context) (context.Context, string) { return ctx, "two words" },
			func(context.Context) (context.Context, string) { panic("starting") },
			func(ctx context.Context) (context.Context, string) { return ctx, strings.Repeat("x", 128) },
			func(ctx context.Context) (context.Context, string) { return ctx, "" },
		}
		var trails []string
		q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			trails = append(trails, m.Trail)
			if len(trails) < len(starts) {
				return kit.ErrUnavailable
			}
			return ctx.Err()
		}), reprise.Config{Retry: kit.EveryMinute(9), Observer: reprise.Observer{
			Starting: func(ctx context.Context, m *reprise.Message) (context.Context, string) {
				return starts[m.Attempt-1](ctx)
			},
		}})
		q.Send("order")
		q.WaitEmpty(time.Hour)
		want := []string{"", "good", "good", "good", "good", "good", strings.Repeat("x", 128)}
		if diff := cmp.Diff(want, trails); diff != "" {
			t.Errorf("trails (-want +got):\n%s", diff)
		}
	})
}

// TestTraceHeaderReachesTheHandler: the X-Ray header that the sender set.
func TestTraceHeaderReachesTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
		q := reprisetest.NewQueue(t, nil)
		sender, err := reprise.NewSender(q.Client(), q.URL(), reprise.SenderConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sender.Send(t.Context(), reprise.Outgoing{Body: "order", TraceHeader: header}); err != nil {
			t.Fatal(err)
		}
		if _, err := sender.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got string
		q.ConsumeWith(q.Client(), reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			got = m.TraceHeader
			return nil
		}), reprise.Config{})
		q.WaitEmpty(time.Minute)
		if got != header {
			t.Errorf("the handler saw the trace header %q, want %q", got, header)
		}
	})
}
