package reprise_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/extremes"
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
				for _, body := range numbered(25) {
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
