package operating

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestUndecodableJSONIsDeadLetteredWithItsReason: a body that does not decode is dead-lettered at
// once, unchanged. The story names the expected type and the problem; the handler is not called.
func TestUndecodableJSONIsDeadLetteredWithItsReason(t *testing.T) {
	type order struct {
		Items int `json:"items"`
	}
	for _, tt := range []struct{ body, want string }{
		{`{"items":"three"}`, "decoding the body as operating.order: json: cannot unmarshal string into Go struct field order.items of type int"},
		{`{"items":3`, "decoding the body as operating.order: unexpected end of JSON input"},
		{`{"items":3} {"items":4}`, "decoding the body as operating.order: invalid character '{' after top-level value"},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			dead := q.NewDeadLetterQueue(5)
			q.ConsumeWith(q.Client(), reprise.JSON(func(context.Context, order) error {
				t.Error("the handler ran")
				return nil
			}), reprise.Config{})
			q.Send(tt.body)
			q.WaitEmpty(time.Minute)
			letters := dead.Messages()
			if len(letters) != 1 || letters[0].Body != tt.body {
				t.Fatalf("dead letters %+v", letters)
			}
			if s := kit.StoryOf(t, letters[0]); s.Reason != "permanent" || s.Attempts != 1 || !strings.HasSuffix(s.Error, tt.want) {
				t.Errorf("story %+v, want %s", s, tt.want)
			}
		})
	}
}

// TestContextEndsWithItsHandler: goroutines that a handler has started with its context end with
// it, whether it succeeds or fails, with an observer or without.
func TestContextEndsWithItsHandler(t *testing.T) {
	attempt := reprise.Observer{Attempt: func(context.Context, reprise.Attempt) {}}
	for name, tt := range map[string]struct {
		observer reprise.Observer
		fails    error
	}{
		"success":           {},
		"observed success":  {observer: attempt},
		"failure":           {fails: kit.ErrUnavailable},
		"observed failure":  {observer: attempt, fails: kit.ErrUnavailable},
		"permanent failure": {fails: reprise.Permanent(kit.ErrUnavailable)},
	} {
		for _, batches := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				began, ended := 0, make(chan error, 10)
				handler := reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
					if began++; began > 1 {
						return nil
					}
					go func() {
						<-ctx.Done()
						ended <- context.Cause(ctx)
					}()
					return tt.fails
				})
				// q.Consume is not used, because it ends the contexts of handlers itself.
				cfg := reprise.Config{Observer: tt.observer, Logger: slog.New(slog.DiscardHandler)}
				c, err := reprise.New(q.Direct(), q.URL(), handler, cfg)
				if batches {
					c, err = reprise.NewBatchConsumer(q.Direct(), q.URL(), kit.Together(handler), reprise.BatchConfig{Config: cfg})
				}
				if err != nil {
					t.Fatal(err)
				}
				running, stop := context.WithCancel(t.Context())
				stopped := make(chan error, 1)
				go func() { stopped <- c.Run(running) }()
				q.Send("1")
				time.Sleep(5 * time.Second)
				synctest.Wait()
				select {
				case cause := <-ended:
					if cause != context.Canceled {
						t.Errorf("%s, in batches %v: the context ends with %v", name, batches, cause)
					}
				default:
					t.Errorf("%s, in batches %v: the context does not end", name, batches)
				}
				stop()
				if err := <-stopped; err != nil {
					t.Error(err)
				}
			})
		}
	}
}
