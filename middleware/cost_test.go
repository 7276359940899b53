package middleware_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/middleware"
)

// costs are middlewares around a handler that does nothing, and what a message may
// cost by each, in allocations.
var costs = []struct {
	name        string
	middleware  middleware.Middleware
	allocations float64
}{
	{"Chain", middleware.Chain(), 0},
	{"Metrics", middleware.Metrics(func(context.Context, *reprise.Message, middleware.Run) {}), 0},
	{"Logging that is off", middleware.Logging(slog.New(slog.DiscardHandler)), 0},
	{"Recover", middleware.Recover(nil), 0},
	{"Timeout", middleware.Must(middleware.Timeout(time.Minute)), 4}, // of package context
	{"RateLimit", middleware.Must(middleware.RateLimit(middleware.RateLimitConfig{Rate: 1e6, Key: func(m *reprise.Message) string { return m.GroupID }})), 0},
	{"Decompress of what is plain", middleware.Must(middleware.Decompress(middleware.DecompressConfig{})), 0},
	{"Validate", middleware.Validate(func(context.Context, *reprise.Message) error { return nil }), 0},
}

// TestCost: what a message costs by each middleware.
func TestCost(t *testing.T) {
	for _, c := range costs {
		h := c.middleware(returns(nil))
		m := message()
		if got := testing.AllocsPerRun(1000, func() {
			if err := h.Handle(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}); got > c.allocations {
			t.Errorf("%s: %v allocations, want at most %v", c.name, got, c.allocations)
		}
	}
}

// TestCostOfDecompress does not grow by the decompressor's own tables.
func TestCostOfDecompress(t *testing.T) {
	h := middleware.Must(middleware.Decompress(middleware.DecompressConfig{}))(returns(nil))
	for _, format := range []string{"gzip", "deflate"} {
		m := message()
		m.Body = encoded(t, format, strings.Repeat("order ", 200))
		m.Attributes = attributes(middleware.EncodingAttribute, format)
		if got := testing.AllocsPerRun(1000, func() {
			if err := h.Handle(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}); got > 12 {
			t.Errorf("%s: %v allocations, want at most 12", format, got)
		}
	}
}

func BenchmarkMiddleware(b *testing.B) {
	for _, c := range costs {
		b.Run(c.name, func(b *testing.B) {
			h := c.middleware(returns(nil))
			m := message()
			b.ReportAllocs()
			for b.Loop() {
				if err := h.Handle(context.Background(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecompress(b *testing.B) {
	h := middleware.Must(middleware.Decompress(middleware.DecompressConfig{}))(returns(nil))
	m := message()
	m.Body = encoded(b, "gzip", strings.Repeat("order ", 200))
	m.Attributes = attributes(middleware.EncodingAttribute, "gzip")
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Handle(context.Background(), m); err != nil {
			b.Fatal(err)
		}
	}
}
