// This file holds off a producer that may send to one queue: what it has compressed must
// not cost consumers more memory than is permitted.

package middleware_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/retry"
)

// zeros is n zeros, compressed as well as can be.
func zeros(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, reader{}, int64(n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

type reader struct{}

func (reader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestAttackZipBomb: a body is bounded by its size and by its ratio, and refused for
// good, with clear words; what is small or compresses as texts do is read.
func TestAttackZipBomb(t *testing.T) {
	var text strings.Builder
	for i := range 100_000 { // some 4 MB of a ratio of 10 or so
		text.WriteString(`{"order":"o-` + strings.Repeat(string(rune('a'+i%26)), i%7) + `","price":` + string(rune('0'+i%10)) + string(rune('0'+i/7%10)) + `}`)
	}
	for _, test := range []struct {
		name string
		cfg  middleware.DecompressConfig
		body string
		want string // in the error; empty: it is read
	}{
		{"1 MiB of zeros", middleware.DecompressConfig{}, zeros(t, 1<<20), ""},
		{"one byte more", middleware.DecompressConfig{}, zeros(t, 1<<20+1), "more than 200 times as large: raise DecompressConfig.MaxRatio"},
		{"32 MiB of zeros", middleware.DecompressConfig{}, zeros(t, 32<<20), "more than 200 times as large"},
		{"permitted", middleware.DecompressConfig{MaxRatio: 1100}, zeros(t, 16<<20), ""},
		{"too large all the same", middleware.DecompressConfig{MaxRatio: 1100}, zeros(t, 16<<20+1), "limit of 16777216 bytes: raise DecompressConfig.MaxSize"},
		{"a text", middleware.DecompressConfig{}, encoded(t, "gzip", text.String()), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got *reprise.Message
			m := message()
			m.Body, m.Attributes = test.body, attributes(middleware.EncodingAttribute, "gzip")
			err := middleware.Must(middleware.Decompress(test.cfg))(keep(&got)).Handle(t.Context(), m)
			switch {
			case test.want == "" && (err != nil || got == nil):
				t.Errorf("error %v", err)
			case test.want != "" && (err == nil || got != nil || reasonOf(err) != retry.ReasonPermanent || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// TestAttackManyMembers: gzip inside gzip is opened once, and a chain of many members is
// bounded as one is.
func TestAttackManyMembers(t *testing.T) {
	one, err := base64.StdEncoding.DecodeString(zeros(t, 64<<10))
	if err != nil {
		t.Fatal(err)
	}
	chain := base64.StdEncoding.EncodeToString(bytes.Repeat(one, (700<<10)/len(one)))
	var got *reprise.Message
	h := middleware.Must(middleware.Decompress(middleware.DecompressConfig{}))(keep(&got))
	m := message()
	m.Body, m.Attributes = chain, attributes(middleware.EncodingAttribute, "gzip")
	if err := h.Handle(t.Context(), m); err == nil || !strings.Contains(err.Error(), "DecompressConfig.MaxSize") {
		t.Errorf("a chain of members: %v", err)
	}
	inner := encoded(t, "gzip", "order")
	m.Body, m.Attributes = encoded(t, "gzip", inner), attributes(middleware.EncodingAttribute, "gzip")
	if err := h.Handle(t.Context(), m); err != nil || got.Body != inner {
		t.Errorf("gzip in gzip: %v", err)
	}
}

// TestAttackLongEncoding: what a sender calls the encoding does not make a long error.
func TestAttackLongEncoding(t *testing.T) {
	m := message()
	m.Attributes = attributes(middleware.EncodingAttribute, strings.Repeat("\u009b", 100_000))
	var got *reprise.Message
	err := middleware.Must(middleware.Decompress(middleware.DecompressConfig{}))(keep(&got)).Handle(t.Context(), m)
	if err == nil || len(err.Error()) > 2000 || errors.Is(err, io.EOF) {
		t.Errorf("error %.100v of %d bytes", err, len(err.Error()))
	}
}

// TestAttackBadRatio: a ratio that makes no sense is refused.
func TestAttackBadRatio(t *testing.T) {
	for _, ratio := range []int{-1, 1101} {
		if _, err := middleware.Decompress(middleware.DecompressConfig{MaxRatio: ratio}); err == nil || !strings.Contains(err.Error(), "DecompressConfig.MaxRatio is") {
			t.Errorf("MaxRatio %d: %v", ratio, err)
		}
	}
}

// TestAttackLongRateLimitKeys: of a key of any length 256 bytes at most are kept and shown; two that differ behind
// those have a limit each.
func TestAttackLongRateLimitKeys(t *testing.T) {
	limit, err := middleware.RateLimit(middleware.RateLimitConfig{Rate: 0.001, Patience: -1, Key: func(m *reprise.Message) string { return m.Body }})
	if err != nil {
		t.Fatal(err)
	}
	h := limit(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }))
	long := strings.Repeat("x", 900<<10)
	for _, key := range []string{long + "1", long + "2"} {
		if err := h.Handle(t.Context(), &reprise.Message{Body: key}); err != nil {
			t.Errorf("the first message of a key: %.300v", err)
		}
	}
	if err := h.Handle(t.Context(), &reprise.Message{Body: long + "1"}); !errors.Is(err, middleware.ErrRateLimited) || len(err.Error()) > 500 {
		t.Errorf("the second message of a key: %.300v", err)
	}
}
