package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
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

// sameNames compares each field of got with the field of want that has its name, or is left out.
func sameNames(t *testing.T, what string, got, want any, leftOut ...string) {
	t.Helper()
	is, should := reflect.ValueOf(got), reflect.ValueOf(want)
	for field := range is.Type().Fields() {
		if slices.Contains(leftOut, field.Name) {
			continue
		}
		g, w := is.FieldByIndex(field.Index).Interface(), should.FieldByName(field.Name).Interface()
		same := g == w
		switch w := w.(type) {
		case time.Time:
			same = g.(time.Time).Equal(w)
		case retry.Reason:
			same = w == 0 && g == "" || g == w.String()
		case fmt.Stringer:
			same = g == w.String()
		}
		if !same {
			t.Errorf("%s: %s is %v, want %v", what, field.Name, g, w)
		}
	}
}

// TestConsumerHasItsNames: what a consumer does, and each of its breakers, is shown under its own names. Of no two that
// are counted there are equally many.
func TestConsumerHasItsNames(t *testing.T) {
	keyOf := func(m *reprise.Message) string { key, _, _ := strings.Cut(m.Body, " "); return key }
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		goOn := make(chan struct{})
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			switch keyOf(m) {
			case "later":
				return reprise.RetryAfter(2*time.Hour, errors.New("not yet"))
			case "down":
				return reprise.Unavailable(errors.New("is down"))
			}
			<-goOn
			return nil
		}), reprise.Config{
			Concurrency: 3, Outage: reprise.Outage{Key: keyOf, Threshold: 5, Probe: func(context.Context, string) error { return errors.New("is down") }}, Logger: slog.New(slog.DiscardHandler),
		})
		defer close(goOn)
		client := beside(t, q, c)
		if err := c.SetRate(1000); err != nil {
			t.Fatal(err)
		}
		send := func(n int, key string) {
			for i := range n {
				q.Send(fmt.Sprint(key, " ", i))
			}
			time.Sleep(17 * time.Second) // in which no long poll ends
		}
		send(9, "later")
		send(12, "down")
		send(3, "runs")
		send(2, "waits")
		if err := c.PauseKey("paused"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // so that nothing changes between the two looks
		got, err := client.Consumer(t.Context(), q.Name())
		if err != nil {
			t.Fatal(err)
		}
		want := c.Status()
		sameNames(t, "the consumer", got, want, "Queue", "URL", "Policy", "Target", "Breakers", "GivingUp", "Counts", "Calls", "RetryLane")
		if len(got.Breakers) != 2 || len(want.Breakers) != 2 {
			t.Fatalf("%d breakers of %d, want one that is open and one of a paused key", len(got.Breakers), len(want.Breakers))
		}
		for i := range got.Breakers {
			sameNames(t, "breaker "+got.Breakers[i].Key, got.Breakers[i], want.Breakers[i])
		}
		if got.Running != 3 || got.InBackoff <= 3 || got.Waiting == 0 || got.Waiting == got.Running || got.LastReceive.Equal(got.LastSettle) || got.Calls != want.Calls.Total() {
			t.Errorf("%+v: the test shows little", got)
		}
	})
}

// TestBusy: only an outage of all messages holds all of them back. The breaker of a key says nothing about those of
// others, and one that ramps lets messages through.
func TestBusy(t *testing.T) {
	since := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	next := since.Add(time.Minute)
	for name, test := range map[string]struct {
		breakers []admin.Breaker
		outage   bool
	}{
		"none":                    {nil, false},
		"open":                    {[]admin.Breaker{{State: "open", Since: since, NextProbe: next, Problem: "down"}}, true},
		"half-open":               {[]admin.Breaker{{State: "half-open", Since: since, NextProbe: next, Problem: "down"}}, true},
		"ramping":                 {[]admin.Breaker{{State: "ramping", Since: since, Problem: "down"}}, false},
		"of a key":                {[]admin.Breaker{{Key: "acme", State: "open", Since: since, NextProbe: next, Problem: "down"}}, false},
		"of all, and one of keys": {[]admin.Breaker{{State: "open", Since: since, NextProbe: next, Problem: "down"}, {Key: "acme", State: "open", Problem: "refused"}}, true},
	} {
		c := admin.Consumer{Paused: true, Running: 1, Concurrency: 2, Rate: 3, Breakers: test.breakers}
		want := operate.Busy{Paused: true, Running: 1, Concurrency: 2, Rate: 3}
		if test.outage {
			want.Outage, want.OutageSince, want.NextProbe = "down", since, next
		}
		if got := c.Busy(); *got != want {
			t.Errorf("%s: %+v, want %+v", name, *got, want)
		}
	}
}
