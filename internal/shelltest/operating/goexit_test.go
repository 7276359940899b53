package operating

import (
	"context"
	"runtime"
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

// TestCodeThatEndsItsGoroutine: user code may end its goroutine, as t.FailNow does, wherever the
// consumer calls it. Its message or call is tried again, and no place, worker or message is lost.
func TestCodeThatEndsItsGoroutine(t *testing.T) {
	const messages = 60
	for _, tt := range []struct {
		name string
		cfg  func(exit func()) reprise.Config
		err  func(exit func()) error // of first attempts
	}{
		{name: "Observer.Received", cfg: func(exit func()) reprise.Config {
			return reprise.Config{Observer: reprise.Observer{Received: func(context.Context, reprise.Received) { exit() }}}
		}},
		{name: "Observer.Starting", cfg: func(exit func()) reprise.Config {
			return reprise.Config{Observer: reprise.Observer{Starting: func(ctx context.Context, _ *reprise.Message) (context.Context, string) {
				exit()
				return ctx, "left"
			}}}
		}},
		{name: "Observer.Attempt", cfg: func(exit func()) reprise.Config {
			return reprise.Config{Observer: reprise.Observer{Attempt: func(context.Context, reprise.Attempt) { exit() }}}
		}},
		{name: "Observer.Settled", cfg: func(exit func()) reprise.Config {
			return reprise.Config{Observer: reprise.Observer{Settled: func(context.Context, reprise.Settled) { exit() }}}
		}},
		{name: "Observer.Call", cfg: func(exit func()) reprise.Config {
			return reprise.Config{Observer: reprise.Observer{Call: func(_ context.Context, e reprise.Call) {
				if e.Operation != reprise.OpAttributes { // asked for by the goroutine that calls Run
					exit()
				}
			}}}
		}},
		{name: "Outage.Key", cfg: func(exit func()) reprise.Config {
			return reprise.Config{Outage: reprise.Outage{Key: func(*reprise.Message) string { exit(); return "" }}}
		}},
		{name: "Outage.Unavailable", cfg: func(exit func()) reprise.Config {
			return reprise.Config{Outage: reprise.Outage{Unavailable: func(error) bool { exit(); return false }}}
		}},
		{name: "Match of a rule", cfg: func(exit func()) reprise.Config {
			return reprise.Config{Retry: retry.Policy{Rules: []retry.Rule{{Match: func(error) bool { exit(); return false }}}}}
		}},
		{name: "a method of the error", err: func(exit func()) error { return &trap{message: exit} }},
	} {
		inBatches := func(t *testing.T, batches bool) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var calls atomic.Int64
				exit := func() {
					if n := calls.Add(1); n%3 == 0 && n < 3*messages {
						runtime.Goexit()
					}
				}
				cfg, err := reprise.Config{}, kit.ErrUnavailable
				if tt.cfg != nil {
					cfg = tt.cfg(exit)
				}
				if tt.err != nil {
					err = tt.err(exit)
				}
				var succeeded sync.Map // by body
				handler := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
					err := kit.FailsFirst(err).Handle(ctx, m)
					if err == nil {
						succeeded.Store(m.Body, true)
					}
					return err
				})
				var c *reprisetest.Consumer
				if batches {
					c = q.ConsumeBatch(kit.Together(handler), reprise.BatchConfig{Config: cfg})
				} else {
					c = q.Consume(handler, cfg)
				}
				q.Send(kit.Numbered(messages)...)
				q.WaitEmpty(24 * time.Hour)
				if calls.Load() < 3 {
					t.Error("it has ended no goroutine")
				}
				for _, body := range kit.Numbered(messages) {
					if _, ok := succeeded.Load(body); !ok {
						t.Errorf("message %s is gone, and no attempt at it has succeeded", body)
					}
				}
				goesOn(t, q, c)
			})
		}
		t.Run(tt.name, func(t *testing.T) { inBatches(t, false) })
		t.Run(tt.name+", in batches", func(t *testing.T) { inBatches(t, true) })
	}
}

// TestLoopIsRestartedWhole: an observer that ends its goroutine, as t.FailNow does, ends the poller
// that calls it. The poller is started again.
func TestLoopIsRestartedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var told int
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{Observer: reprise.Observer{Received: func(context.Context, reprise.Received) {
			if told++; told <= 3 {
				runtime.Goexit()
			}
		}}})
		for _, body := range kit.Numbered(5) {
			q.Send(body)
			q.WaitEmpty(time.Minute)
		}
		if told != 5 {
			t.Errorf("%d messages told, want 5", told)
		}
		goesOn(t, q, c)
	})
}
