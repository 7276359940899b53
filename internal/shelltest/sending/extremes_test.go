package sending

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/extremes"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestExtremesOfSenderConfig: each number of SenderConfig at its extremes is refused with the field's
// name, or messages are sent, at the latest when Linger is over, which is an hour at most.
func TestExtremesOfSenderConfig(t *testing.T) {
	extremes.Of(reprise.SenderConfig{}, func(field string, value any, cfg reprise.SenderConfig) bool {
		t.Run(fmt.Sprintf("%s=%v", field, value), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				cfg.Logger = slog.New(slog.DiscardHandler)
				s, err := reprise.NewSender(q.Direct(), q.URL(), cfg)
				if err != nil {
					if !strings.Contains(err.Error(), field) {
						t.Errorf("the error does not name %s: %v", field, err)
					}
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				for _, body := range kit.Numbered(25) {
					if err := s.Submit(ctx, reprise.Outgoing{Body: body}, func(reprise.Sent) {}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Hour)
				if n := len(q.Messages()); n != 25 {
					t.Errorf("%d messages were sent, want 25", n)
				}
				if _, err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
		return true
	})
}

// FuzzSenderConfigs sets several numbers of a Sender's settings, and the delays of its messages, at
// once. What NewSender and Submit refuse they must name; without it every message is sent once.
func FuzzSenderConfigs(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range race.Fewer(300, 30) {
		choices := make([]byte, 20)
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) == 0 || len(choices) > 100 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			var s struct {
				reprise.SenderConfig
				Message reprise.Outgoing
			}
			drawn := extremes.Draw(&s, choices[1:])
			s.Logger = slog.New(slog.DiscardHandler)
			refused := func(err error) (again bool) {
				for _, n := range drawn {
					if n.Named(err.Error()) {
						n.Reset()
						again = true
					}
				}
				if !again {
					t.Fatalf("no setting is named by %q; set are %v", err, drawn)
				}
				return again
			}
			sender, err := reprise.NewSender(q.Direct(), q.URL(), s.SenderConfig)
			for err != nil && refused(err) {
				sender, err = reprise.NewSender(q.Direct(), q.URL(), s.SenderConfig)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
			defer cancel()
			for _, body := range kit.Numbered(int(choices[0])) {
				s.Message.Body = body
				err := sender.Submit(ctx, s.Message, func(reprise.Sent) {})
				for err != nil && refused(err) {
					err = sender.Submit(ctx, s.Message, func(reprise.Sent) {})
				}
			}
			began := time.Now()
			if _, err := sender.Close(ctx); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("the end of the sender took %v", took)
			}
			if n := len(q.Messages()); n != int(choices[0]) {
				t.Errorf("%d messages were sent, want %d; settings %+v", n, choices[0], s)
			}
		})
	})
}
