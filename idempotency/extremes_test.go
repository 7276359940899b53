package idempotency_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/internal/extremes"
)

// TestExtremesOfConfig: each number of the settings at its extremes is refused with the field's name, or
// a message is run once, and its duplicate is not.
func TestExtremesOfConfig(t *testing.T) {
	type settings struct {
		idempotency.Config
		Memory idempotency.MemoryConfig
	}
	extremes.Of(settings{}, func(field string, value any, s settings) bool {
		t.Run(fmt.Sprintf("%s=%v", field, value), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s.Logger = slog.New(slog.DiscardHandler)
				ran := 0
				wrap, err := idempotency.New(idempotency.NewMemory(s.Memory), s.Config)
				if err != nil {
					if !strings.Contains(err.Error(), field) {
						t.Errorf("the error does not name %s: %v", field, err)
					}
					return
				}
				h := wrap(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					ran++
					time.Sleep(5 * time.Second)
					return nil
				}))
				for range 2 {
					if err := h.Handle(t.Context(), &reprise.Message{ID: "a", OriginID: "a", Body: "a"}); err != nil && !strings.HasPrefix(field, "Memory") && !strings.HasPrefix(field, "Timeout") {
						t.Errorf("the handler: %v", err)
					}
				}
				if ran != 1 && !strings.HasPrefix(field, "Memory") && !strings.HasPrefix(field, "Timeout") {
					t.Errorf("the message ran %d times, want once", ran)
				}
			})
		})
		return true
	})
}
