package attacks

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// The attacker of these tests is a producer that may send to the queue and has no other permission.
// It knows messages on which the handler hangs for ever. No library can end such a handler, but the
// consumer reports that it keeps a place.

// TestAttackHandlersThatIgnoreTheirEnd: the health is degraded from the first handler that ignores
// the end of its context, and failing when such handlers take all places, so that the platform
// restarts the process. It is ok again when they have ended.
func TestAttackHandlersThatIgnoreTheirEnd(t *testing.T) {
	for _, kind := range []string{"consumer", "batches", "pool"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				over := make(chan struct{})
				cfg := reprise.Config{Concurrency: 3, HandlerTimeout: 30 * time.Second, Lease: 10 * time.Minute}
				h := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					if m.Body == "hangs" {
						<-over
					}
					return nil
				})
				var c *reprisetest.Consumer
				switch kind {
				case "consumer":
					c = q.Consume(h, cfg)
				case "batches":
					c = q.ConsumeBatch(kit.Together(h), reprise.BatchConfig{Size: 1, Config: cfg})
				case "pool":
					cfg.Concurrency = 0
					c = q.In(kit.PoolOf(t, 3), reprise.Share{}).Consume(h, cfg)
				}
				health := func(want reprise.Health, problem string) {
					t.Helper()
					if s := c.Status(); s.Health != want || !strings.Contains(s.Problem, problem) {
						t.Errorf("health %v, problem %q; want %v, %q", s.Health, s.Problem, want, problem)
					}
				}
				q.Send("hangs")
				time.Sleep(89 * time.Second)
				health(reprise.HealthOK, "")
				time.Sleep(3 * time.Second)
				health(reprise.HealthDegraded, "1 handler has ignored the end of the context")
				q.Send("hangs", "hangs", "waits")
				time.Sleep(2 * time.Minute)
				health(reprise.HealthFailing, "all places are taken, since 3 handlers have ignored the end of the context")
				close(over)
				q.WaitEmpty(time.Minute)
				health(reprise.HealthOK, "")
			})
		})
	}
}

// TestAttackHandlersThatHangWithoutTimeout: without a timeout, the health is degraded when all
// places have been taken for long and no handler has ended.
func TestAttackHandlersThatHangWithoutTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			takes := time.Second
			if m.Body == "hangs" {
				takes = 12 * time.Hour
			}
			return pass(ctx, takes)
		}), reprise.Config{Concurrency: 3})
		q.Send(kit.Numbered(10)...)
		q.WaitEmpty(time.Minute)
		for range 3 {
			q.Send("hangs")
			time.Sleep(time.Hour)
			if s := c.Status(); s.Running < 3 && s.Health != reprise.HealthOK {
				t.Errorf("health %v: %s, with places that are free", s.Health, s.Problem)
			}
		}
		if s := c.Status(); s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, "no handler has ended for 1h0m0s") {
			t.Errorf("health %v: %q", s.Health, s.Problem)
		}
		time.Sleep(12 * time.Hour)
		if s := c.Status(); strings.Contains(s.Problem, "no handler has ended") && s.Running < 3 {
			t.Errorf("health %v: %q", s.Health, s.Problem)
		}
	})
}

// TestLongHandlersAreNotSaidToHang: handlers that take 40 minutes each, and end, are not reported
// though they take all places.
func TestLongHandlersAreNotSaidToHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error { return pass(ctx, 40*time.Minute) }), reprise.Config{Concurrency: 2})
		q.Send(kit.Numbered(20)...)
		for range 39 {
			time.Sleep(10 * time.Minute)
			if s := c.Status(); s.Health != reprise.HealthOK {
				t.Fatalf("health %v: %s", s.Health, s.Problem)
			}
		}
	})
}

// TestAttackHungHandlerHoldsUpNoSuspect: a message with a forged mark hangs for ever. An innocent
// message that becomes a suspect later runs soon after the hanging handler is reported, in a
// consumer and in a pool.
func TestAttackHungHandlerHoldsUpNoSuspect(t *testing.T) {
	for _, kind := range []string{"consumer", "pool"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				over := make(chan struct{})
				defer close(over)
				var j kit.Journal
				h := j.Handler(func(_ context.Context, m *reprise.Message) error {
					if m.Body == "hangs" {
						<-over
					}
					return nil
				})
				cfg := reprise.Config{HandlerTimeout: 30 * time.Second}
				if kind == "pool" {
					q.In(kit.PoolOf(t, 5), reprise.Share{}).Consume(h, cfg)
				} else {
					q.Consume(h, cfg)
				}
				sendAlone(t, q, "hangs")
				time.Sleep(time.Second)
				sendAlone(t, q, "innocent")
				time.Sleep(20 * time.Minute)
				if n := len(j.Of("innocent")); n != 1 {
					t.Errorf("the innocent suspect ran %d times in 20 minutes, want once", n)
				}
			})
		})
	}
}
