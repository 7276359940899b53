package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// beside returns a client of the API of a process with the consumer c of q.
func beside(t *testing.T, q *reprisetest.Queue, c *reprisetest.Consumer) *admin.Client {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	return admin.New(admin.Config{
		Version: "v1", Events: new(admin.Events), Logger: logger, Pages: pages(t, logger),
		Consumers: func() []admin.Running { return []admin.Running{{URL: q.URL(), Consumer: c.Consumer}} },
	}).Inside("test")
}

// TestActionsOfOneKey: wake and probe with a key leave the messages of other keys alone, which would all go to a
// dependency that is still down.
func TestActionsOfOneKey(t *testing.T) {
	keyOf := func(m *reprise.Message) string { key, _, _ := strings.Cut(m.Body, " "); return key }
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return errors.New("broken") }), reprise.Config{
			Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None}, Outage: reprise.Outage{Key: keyOf}, Logger: slog.New(slog.DiscardHandler),
		})
		client := beside(t, q, c)
		q.Send("acme 1", "acme 2", "bolt 1", "bolt 2", "bolt 3", "cora 1")
		time.Sleep(time.Minute)
		for _, test := range []struct {
			keys []string
			want int
		}{{[]string{"acme"}, 2}, {[]string{"none"}, 0}, {[]string{"bolt", "cora"}, 4}} {
			done, err := client.Act(t.Context(), q.Name(), "wake", admin.Wake{Keys: admin.Keys{Keys: test.keys}})
			if err != nil || done.Woken != test.want {
				t.Errorf("wake %q: woke %d, %v; want %d", test.keys, done.Woken, err, test.want)
			}
			time.Sleep(time.Minute)
		}
		done, err := client.Act(t.Context(), q.Name(), "wake", admin.Wake{})
		if err != nil || done.Woken != 6 {
			t.Errorf("wake: woke %d, %v; want all 6", done.Woken, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Unavailable(errors.New("down")) }), reprise.Config{
			Concurrency: 50, Outage: reprise.Outage{Key: keyOf, Threshold: 5, Probe: func(ctx context.Context, _ string) error { return errors.New("down") }}, Logger: slog.New(slog.DiscardHandler),
		})
		client := beside(t, q, c)
		for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
			q.Send("acme "+n, "bolt "+n)
		}
		opened := func() (open int) {
			for _, b := range c.Status().Breakers {
				if b.State == reprise.BreakerOpen {
					open++
				}
			}
			return open
		}
		for range 600 {
			if opened() == 2 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		for _, test := range []struct {
			keys []string
			want int
		}{{[]string{"acme"}, 1}, {[]string{"none"}, 0}, {nil, 2}} {
			done, err := client.Act(t.Context(), q.Name(), "probe", admin.Keys{Keys: test.keys})
			if err != nil || done.Probing != test.want {
				t.Errorf("probe %q: %d breakers probe, %v; want %d", test.keys, done.Probing, err, test.want)
			}
			time.Sleep(10 * time.Millisecond) // the probe fails
		}
	})
}

// TestCountsHaveTheirNames: each count of a consumer is shown under its own name. Each outcome comes another number
// of times, so that none can be taken for another.
func TestCountsHaveTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil) // without a dead-letter queue: what is given up is kept
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			switch m.Body {
			case "retry":
				return reprise.RetryAfter(2*time.Hour, errors.New("not yet"))
			case "release":
				return reprise.Release(2*time.Hour, errors.New("not here"))
			case "keep":
				return reprise.Permanent(errors.New("never"))
			}
			return nil
		}), reprise.Config{Logger: slog.New(slog.DiscardHandler)})
		for body, n := range map[string]int{"done": 9, "retry": 5, "release": 3, "keep": 2} {
			for range n {
				q.Send(body)
			}
		}
		time.Sleep(time.Minute)
		of, err := beside(t, q, c).Consumer(t.Context(), q.Name())
		if err != nil {
			t.Fatal(err)
		}
		want := reflect.ValueOf(c.Status().Counts)
		got := reflect.ValueOf(of.Counts)
		for field := range got.Type().Fields() {
			if g, w := got.FieldByIndex(field.Index).Int(), want.FieldByName(field.Name).Int(); g != w {
				t.Errorf("%s is %d, want %d", field.Name, g, w)
			}
		}
		if n := of.Counts; n.Received != 19 || n.Deleted != 9 || n.Retried != 5 || n.Released != 3 || n.Kept != 2 || n.Lost != 0 {
			t.Errorf("%+v", n)
		}
	})
}
