package operating

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/extremes"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestExtremesOfConfig: each number of Config at its extremes is refused with the field's name, or the
// consumer works: it runs every message, those that fail first again, is never failing, and stops.
func TestExtremesOfConfig(t *testing.T) {
	for _, lane := range []bool{false, true} {
		extremes.Of(reprise.Config{}, func(field string, value any, cfg reprise.Config) bool {
			if !lane && strings.HasPrefix(field, "RetryLane") {
				return true
			}
			t.Run(fmt.Sprintf("%s=%v, lane %v", field, value, lane), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					works(t, field, lane, func(q *reprisetest.Queue, h reprise.Handler, set func(*reprise.Config)) (*reprise.Consumer, error) {
						set(&cfg)
						return reprise.New(q.Direct(), q.URL(), h, cfg)
					})
				})
			})
			return true
		})
	}
}

// TestExtremesOfBatchConfig is TestExtremesOfConfig for the settings of batches.
func TestExtremesOfBatchConfig(t *testing.T) {
	extremes.Of(reprise.BatchConfig{}, func(field string, value any, cfg reprise.BatchConfig) bool {
		if strings.HasPrefix(field, "Retry") || strings.HasPrefix(field, "Outage") {
			return true // as in Config
		}
		t.Run(fmt.Sprintf("%s=%v", field, value), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				works(t, field, false, func(q *reprisetest.Queue, h reprise.Handler, set func(*reprise.Config)) (*reprise.Consumer, error) {
					set(&cfg.Config)
					return reprise.NewBatchConsumer(q.Direct(), q.URL(), kit.Together(h), cfg)
				})
			})
		})
		return true
	})
}

// TestExtremesOfPools is TestExtremesOfConfig for the settings of pools and shares.
func TestExtremesOfPools(t *testing.T) {
	type settings struct {
		reprise.PoolConfig
		Share, Other reprise.Share
	}
	extremes.Of(settings{}, func(field string, value any, s settings) bool {
		t.Run(fmt.Sprintf("%s=%v", field, value), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				works(t, field, false, func(q *reprisetest.Queue, h reprise.Handler, set func(*reprise.Config)) (*reprise.Consumer, error) {
					var cfg reprise.Config
					set(&cfg)
					pool, err := reprise.NewPool(s.PoolConfig)
					if err != nil {
						return nil, err
					}
					other := q.NewQueue(nil)
					if _, err := pool.Add(other.Direct(), other.URL(), h, s.Other, cfg); err != nil {
						return nil, err
					}
					return pool.Add(q.Direct(), q.URL(), h, s.Share, cfg)
				})
			})
		})
		return true
	})
}

// works runs the consumer that build makes, unless it refuses field.
func works(t *testing.T, field string, lane bool, build func(*reprisetest.Queue, reprise.Handler, func(*reprise.Config)) (*reprise.Consumer, error)) {
	t.Helper()
	q := reprisetest.NewQueue(t, nil)
	const messages = 50
	q.Send(kit.Numbered(messages)...)
	queues := []*reprisetest.Queue{q}
	var mu sync.Mutex
	runs := make(map[string]int)
	c, err := build(q, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		time.Sleep(100 * time.Millisecond)
		if m.Body == "3" || strings.HasPrefix(m.Body, "slow") {
			select {
			case <-ctx.Done(): // of a HandlerTimeout of a nanosecond
			case <-time.After(3 * time.Minute):
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if runs[m.Body]++; runs[m.Body] == 1 && strings.HasSuffix(m.Body, "7") {
			return errors.New("not yet")
		}
		return nil
	}), func(cfg *reprise.Config) {
		cfg.Logger, cfg.DeadLetterURL = slog.New(slog.DiscardHandler), q.NewQueue(nil).URL()
		cfg.Retry.Backoff = retry.Constant(20 * time.Second)
		if cfg.Concurrency == 0 {
			cfg.Concurrency = 3
		}
		if lane {
			retries := q.NewQueue(nil)
			queues = append(queues, retries)
			cfg.RetryLane.URL = retries.URL()
		}
	})
	if err != nil {
		if last := field[strings.LastIndexByte(field, '.')+1:]; !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(last)) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
		return
	}
	slowest := 10 // with one that takes long, in one batch
	switch field {
	case "Rate", "Linger", "Concurrency", "PoolConfig.Concurrency", "Size": // what they slow down is what they are for
		slowest = messages
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	began := time.Now()
	go func() { ended <- c.Run(ctx) }()
	left := func() (n int) {
		for _, q := range queues {
			n += len(q.Messages())
		}
		return n
	}
	for _, phase := range []string{"others go on beside one that takes long", "all places are taken by handlers that take long"} {
		for left() > 0 && time.Since(began) < 2*time.Hour {
			time.Sleep(time.Second)
			if s := c.Status(); s.Health == reprise.HealthFailing {
				t.Errorf("after %v: %v, %s", time.Since(began), s.Health, s.Problem)
				break
			}
			if n := left(); time.Since(began) == 2*time.Minute && n > slowest {
				t.Errorf("%s: %d messages are left after %v, want at most %d", phase, n, time.Since(began), slowest)
			}
		}
		if n := left(); n > 0 {
			t.Errorf("%s: %d messages are left after %v: %+v", phase, n, time.Since(began), c.Status())
			break
		}
		if phase[0] == 'o' {
			q.Send("slow 1", "slow 2", "slow 3")
		}
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, reprise.ErrDrainTimeout) {
		t.Error(err)
	}
}
