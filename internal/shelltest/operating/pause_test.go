package operating

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestPauseHolds: while a consumer is paused no handler starts and no receive is
// made; the messages of the receive under way are held, for hours, without another receive.
func TestPauseHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(kit.Succeed), reprise.Config{})
		time.Sleep(time.Second) // the first receive is under way
		c.Pause()
		q.Send(kit.Numbered(30)...)
		time.Sleep(10 * time.Hour)
		s := c.Status()
		if n := len(j.All()); n != 0 || s.Counts.Received != 1 || s.Waiting != 1 || !s.Paused {
			t.Errorf("%d runs, status %+v; want the message held that the receive under way has brought", n, s)
		}
		c.Resume()
		q.WaitEmpty(time.Minute)
		for _, r := range j.All() {
			if r.Attempt != 1 {
				t.Errorf("run %+v, want every message's first attempt", r)
			}
		}
		if s := c.Status(); s.Counts.Received != 30 || s.Counts.Released != 0 || s.Paused {
			t.Errorf("status %+v, want each message received once", s)
		}
	})
}

// TestPauseForDays: a message that is held for nearly twelve hours is given back, because SQS would
// give it to another consumer.
func TestPauseForDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(kit.Succeed), reprise.Config{})
		time.Sleep(time.Second)
		c.Pause()
		q.Send("order")
		time.Sleep(20 * time.Hour)
		if s := c.Status(); s.Counts.Released != 1 || s.Counts.Lost != 0 || s.Waiting != 0 {
			t.Errorf("status %+v, want the message given back", s)
		}
		c.Resume()
		q.WaitEmpty(time.Minute)
		for _, r := range j.All() {
			if r.Attempt != 1 {
				t.Errorf("run %+v, want every message's first attempt", r)
			}
		}
	})
}

// TestPauseAtAnyTime: before Run, twice, while stopping, and after.
func TestPauseAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send(kit.Numbered(100)...)
		var j kit.Journal
		consumer, err := reprise.New(q.Direct(), q.URL(), j.Handler(kit.Succeed), reprise.Config{})
		if err != nil {
			t.Fatal(err)
		}
		consumer.Pause()
		consumer.Wake()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		done := make(chan error, 1)
		go func() { done <- consumer.Run(ctx) }()
		time.Sleep(time.Hour)
		if s := consumer.Status(); s.Counts.Received != 0 {
			t.Errorf("status %+v, want nothing received", s)
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for n := range 200 {
					switch (n + i) % 8 {
					case 0:
						consumer.Pause()
					case 1:
						if err := consumer.SetConcurrency(1 + n%20); err != nil {
							t.Error(err)
						}
					case 2:
						consumer.Wake("")
					case 3:
						consumer.Status()
					default:
						consumer.Resume()
					}
					time.Sleep(time.Duration(i) * time.Millisecond)
					if n == 150 {
						stop()
					}
				}
			})
		}
		all.Wait()
		if err := <-done; err != nil {
			t.Error(err)
		}
		consumer.Resume()
		consumer.Pause()
		if s := consumer.Status(); s.Running+s.Waiting+s.Settling+s.Pollers != 0 {
			t.Errorf("after the stop: %+v", s)
		}
	})
}

// TestDrainWhilePaused: a stop of a paused consumer gives back held messages.
func TestDrainWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(kit.Succeed), reprise.Config{})
		q.Send("first")
		q.WaitEmpty(time.Minute) // so that how long a handler takes is known
		c.Pause()
		q.Send("second")
		time.Sleep(time.Minute)
		if report := c.Stop(); !report.Drained() || report.Counts.Released != 1 || len(j.All()) != 1 {
			t.Errorf("report %v, %d runs; want 1 released", report, len(j.All()))
		}
	})
}

// TestPauseKey: messages of one key wait, all others go on; messages without room are hidden, and
// woken by hand.
func TestPauseKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(kit.Succeed), reprise.Config{Outage: reprise.Outage{Key: kit.Tenant}})
		if err := c.PauseKey("acme"); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			q.Send("acme:"+strconv.Itoa(i), "bolt:"+strconv.Itoa(i))
		}
		time.Sleep(30 * time.Minute)
		for _, r := range j.All() {
			if strings.HasPrefix(r.Body, "acme") {
				t.Fatalf("run %+v of the key that is paused", r)
			}
		}
		s := c.Status()
		if n := len(j.All()); n != 100 || len(s.Breakers) != 1 || !s.Breakers[0].Paused || s.Breakers[0].Held != 10 || s.Health != reprise.HealthOK {
			t.Errorf("%d runs, status %+v; want 100 and half of the 20 places held", n, s)
		}
		if err := c.ResumeKey("acme"); err != nil {
			t.Fatal(err)
		}
		if n := c.Wake("acme"); n < 50 || n > 90 {
			t.Errorf("%d messages to be woken, want most of the 90 that were hidden", n)
		}
		q.WaitEmpty(13 * time.Minute) // a copy that was on its way is not woken
		for _, r := range j.All() {
			if r.Attempt != 1 {
				t.Errorf("run %+v, want every message's first attempt", r)
			}
		}
		if s := c.Status(); len(s.Breakers) != 0 {
			t.Errorf("breakers %+v, want none", s.Breakers)
		}
	})
}

// TestPauseIsNoAttempt: a message that was held for as long as SQS permits, and then given back,
// has not run.
func TestPauseIsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(kit.Succeed), reprise.Config{Via: reprise.ViaVisibility})
		time.Sleep(time.Second) // a receive is under way
		c.Pause()
		q.Send("order")
		time.Sleep(13 * time.Hour)
		c.Resume()
		q.WaitEmpty(time.Hour)
		runs := j.All()
		if len(runs) != 1 || runs[0].Receives < 2 || runs[0].Attempt != 1 {
			t.Errorf("runs %+v, want the first attempt, of a second receive", runs)
		}
	})
}

// TestPauseKeyHoldsWhatIsReady: messages that wait for a worker when their key is paused are held
// like those that arrive later.
func TestPauseKeyHoldsWhatIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if kit.Tenant(m) == "bolt" {
				time.Sleep(time.Minute) // it has the only worker
			}
			return nil
		}), reprise.Config{Concurrency: 1, Outage: reprise.Outage{Key: kit.Tenant}})
		q.Send("bolt:1")
		time.Sleep(time.Second)
		q.Send("acme:1", "acme:2")
		time.Sleep(10 * time.Second)
		if s := c.Status(); s.Processing != 3 {
			t.Fatalf("%d messages are here, want all three: the test shows nothing", s.Processing)
		}
		if err := c.PauseKey("acme"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if got := j.Bodies(); !slices.Equal(got, []string{"bolt:1"}) {
			t.Errorf("runs %v while acme was paused, want bolt's alone", got)
		}
		if err := c.ResumeKey("acme"); err != nil {
			t.Fatal(err)
		}
		q.WaitEmpty(time.Minute)
	})
}
