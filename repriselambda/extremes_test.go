package repriselambda_test

import (
	"cmp"
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
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestExtremesOfConfigs: each number of the settings of functions for messages and for batches at its
// extremes, and the time that an invocation has, is refused with its name, or works: messages are handled
// once, and those that fail once are tried again.
func TestExtremesOfConfigs(t *testing.T) {
	type settings struct {
		repriselambda.BatchConfig
		Time time.Duration // of an invocation; zero: no limit
	}
	for _, batch := range []bool{false, true} {
		extremes.Of(settings{}, func(field string, value any, s settings) bool {
			if !batch && (field == "Size" || field == "Bytes") {
				return true
			}
			t.Run(fmt.Sprintf("%s=%v, batch %v", field, value, batch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := reprisetest.NewQueue(t, nil)
					dead := q.NewQueue(nil)
					q.Send(numbered(12)...)
					var mu sync.Mutex
					runs := make(map[string]int)
					h := func(_ context.Context, m *reprise.Message) error {
						mu.Lock()
						defer mu.Unlock()
						if runs[m.Body]++; runs[m.Body] == 1 && m.Body == "7" {
							return errors.New("not yet")
						}
						return nil
					}
					s.Client, s.DeadLetterURL, s.Logger = q.Direct(), dead.URL(), slog.New(slog.DiscardHandler)
					s.Retry.Backoff = retry.Constant(20 * time.Second)
					if s.Concurrency == 0 {
						s.Concurrency = 1
					}
					handle, err := repriselambda.SQS(reprise.HandlerFunc(h), s.Config)
					if batch {
						handle, err = repriselambda.SQSBatch(inTurn(h), s.BatchConfig)
					}
					if err != nil {
						if !strings.Contains(err.Error(), field[strings.LastIndexByte(field, '.')+1:]) {
							t.Errorf("the error does not name %s: %v", field, err)
						}
						return
					}
					m := &mapping{t: t, queue: q}
					for range 20 {
						event := m.event(12)
						ctx, cancel := t.Context(), context.CancelFunc(func() {})
						if s.Time != 0 {
							ctx, cancel = context.WithTimeout(ctx, s.Time)
						}
						response, err := handle(ctx, event)
						cancel()
						if err != nil {
							t.Fatal(err)
						}
						again := make(map[string]bool)
						for _, f := range response.BatchItemFailures {
							again[f.ItemIdentifier] = true
						}
						for _, r := range event.Records {
							if !again[r.MessageID] {
								m.deleteRecord(r)
							}
						}
						time.Sleep(2 * time.Minute)
					}
					left, given := len(q.Messages()), len(dead.Messages())
					if short := s.Time != 0 && s.Time < time.Second; !short && (left > 0 || len(runs) != 12 || given > 1) {
						t.Errorf("%d messages are left and %d dead, of runs %v", left, given, runs)
					}
					for body, n := range runs {
						if n > 1 && body != "7" {
							t.Errorf("the message %s was handled %d times", body, n)
						}
					}
				})
			})
			return true
		})
	}
}

// numbered returns n bodies.
func numbered(n int) (bodies []string) {
	for i := range n {
		bodies = append(bodies, fmt.Sprint(i+1))
	}
	return bodies
}

// TestExtremesOfRetryConfig: each number of RetryConfig at its extremes is refused with the field's name,
// or a function that fails once is run again, or is given up, and nothing is left.
func TestExtremesOfRetryConfig(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		extremes.Of(repriselambda.RetryConfig{Mode: mode}, func(field string, value any, cfg repriselambda.RetryConfig) bool {
			if cfg.Mode == repriselambda.ModeDirect {
				cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
			}
			t.Run(fmt.Sprintf("%s=%v, %v", field, value, mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSystem(t, fails(1), repriselambda.RetryConfig{})
					cfg.Client, cfg.Lambda, cfg.Logger = s.queue.Client(), s.lambda.client(), slog.New(slog.DiscardHandler)
					cfg.Retry.Backoff = retry.Constant(20 * time.Second)
					function, err := repriselambda.RetryHandler(cfg)
					if err != nil {
						if !strings.Contains(err.Error(), field[strings.LastIndexByte(field, '.')+1:]) {
							t.Errorf("the error does not name %s: %v", field, err)
						}
						return
					}
					s.function = function
					s.lambda.invoke(order)
					s.run(time.Hour)
					if left, given, again := len(s.queue.Messages()), len(s.dead.Messages()), len(s.lambda.made()); left > 0 || given+again != 1 {
						t.Errorf("%d records are left, %d given up, and the function was run again %d times", left, given, again)
					}
				})
			})
			return true
		})
	}
}
