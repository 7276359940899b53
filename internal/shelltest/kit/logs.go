package kit

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-sqs/reprise/plan"
)

// Findings collects the codes of findings.
type Findings struct {
	mu    sync.Mutex
	codes []string
}

// Observe is an Observer's Finding.
func (f *Findings) Observe(_ context.Context, e plan.Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.codes = append(f.codes, e.Code)
}

// Codes returns the codes in their order.
func (f *Findings) Codes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.codes)
}

// Count returns how many findings have that code.
func (f *Findings) Count(code string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.codes {
		if c == code {
			n++
		}
	}
	return n
}

// Logged is a log that keeps lines of at least one level.
type Logged struct {
	slog.Handler
	mu   sync.Mutex
	text strings.Builder
}

// NewLogged returns a log without lines.
func NewLogged(level slog.Level) *Logged {
	l := new(Logged)
	l.Handler = slog.NewTextHandler(&l.text, &slog.HandlerOptions{Level: level})
	return l
}

func (l *Logged) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *Logged) Handle(ctx context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Handler.Handle(ctx, r)
}

// String returns the lines.
func (l *Logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how many lines contain all of the parts.
func (l *Logged) Count(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			n++
		}
	}
	return n
}

// Lines is a writer of JSON logs.
type Lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was written.
func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
