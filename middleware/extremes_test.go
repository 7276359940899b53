package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/extremes"
	"github.com/reprise-sqs/reprise/middleware"
)

// TestExtremesOfSettings: each number of the middlewares' settings at its extremes is refused with the
// field's name, or lets handlers run: ten of them start within two hours and a half, the shortest rate
// aside.
func TestExtremesOfSettings(t *testing.T) {
	type settings struct {
		RateLimit  middleware.RateLimitConfig
		Decompress middleware.DecompressConfig
		Timeout    time.Duration
	}
	base := settings{RateLimit: middleware.RateLimitConfig{Rate: 10}, Timeout: time.Minute}
	extremes.Of(base, func(field string, value any, s settings) bool {
		t.Run(fmt.Sprintf("%s=%v", field, value), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit, err1 := middleware.RateLimit(s.RateLimit)
				decompress, err2 := middleware.Decompress(s.Decompress)
				timeout, err3 := middleware.Timeout(s.Timeout)
				if err := errors.Join(err1, err2, err3); err != nil {
					if !strings.Contains(err.Error(), field[strings.LastIndexByte(field, '.')+1:]) && !strings.Contains(err.Error(), "time limit") {
						t.Errorf("the error does not name %s: %v", field, err)
					}
					return
				}
				ran := 0
				h := limit(decompress(timeout(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
					if err := ctx.Err(); err != nil && s.Timeout > time.Second {
						t.Errorf("the context of a handler that starts has ended: %v", err)
					}
					ran++
					return nil
				}))))
				for began := time.Now(); ran < 10; time.Sleep(time.Second) {
					err := h.Handle(t.Context(), &reprise.Message{Body: "a"})
					if waited := time.Since(began); err != nil && waited > 150*time.Minute {
						t.Fatalf("%d have run after %v: %v", ran, waited, err)
					}
				}
			})
		})
		return true
	})
}
