package middleware_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/retry"
)

// TestRecover: a panic becomes the consumer's own error, and the hook sees it first.
func TestRecover(t *testing.T) {
	var hooked *reprise.PanicError
	h := middleware.Recover(func(ctx context.Context, m *reprise.Message, p *reprise.PanicError) {
		if ctx != t.Context() || m.ID != "m-1" {
			t.Errorf("told of %v, %+v", ctx, m)
		}
		hooked = p
	})(reprise.HandlerFunc(explode))
	err := h.Handle(t.Context(), message())
	p, ok := errors.AsType[*reprise.PanicError](err)
	if !ok || p != hooked || p.Value != "oh" || !strings.Contains(string(p.Stack), "middleware_test.explode") {
		t.Errorf("error %v, hook %v", err, hooked)
	}
	if reasonOf(err) != retry.ReasonPolicy {
		t.Errorf("taken for %v, want an attempt that failed", reasonOf(err))
	}
}

// TestRecoverWithoutAHook, and of an error.
func TestRecoverWithoutAHook(t *testing.T) {
	if err := middleware.Recover(nil)(panics(errBroken)).Handle(t.Context(), message()); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

// TestRecoverOfNil: panic(nil) is a panic too.
func TestRecoverOfNil(t *testing.T) {
	err := middleware.Recover(nil)(panics(nil)).Handle(t.Context(), message())
	if _, ok := errors.AsType[*runtime.PanicNilError](err); !ok {
		t.Errorf("error %v", err)
	}
}

// TestRecoverLeavesTheRestAlone: what returns, and what ends its goroutine.
func TestRecoverLeavesTheRestAlone(t *testing.T) {
	hook := func(context.Context, *reprise.Message, *reprise.PanicError) { t.Error("the hook was called") }
	for _, want := range []error{nil, errBroken} {
		if err := middleware.Recover(hook)(returns(want)).Handle(t.Context(), message()); err != want {
			t.Errorf("%v became %v", want, err)
		}
	}
	returned := false
	panicked, _ := run(t.Context(), reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		defer func() { returned = recover() != nil }()
		err := middleware.Recover(hook)(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { runtime.Goexit(); return nil })).Handle(ctx, m)
		returned = true
		return err
	}), message())
	if returned || panicked != nil {
		t.Errorf("Goexit did not pass: returned %v, panicked %v", returned, panicked)
	}
}

// TestRecoverInside: what stands outside sees an error, not a panic.
func TestRecoverInside(t *testing.T) {
	var told middleware.Run
	h := middleware.Chain(
		middleware.Metrics(func(_ context.Context, _ *reprise.Message, r middleware.Run) { told = r }),
		middleware.Recover(nil),
	)(panics("oh"))
	err := h.Handle(t.Context(), message())
	if _, ok := errors.AsType[*reprise.PanicError](told.Err); !ok || told.Err != err {
		t.Errorf("told of %v, returned %v", told.Err, err)
	}
}

// TestRecoverOfAPanickingHook: it is the hook's panic then, and the consumer's to
// catch.
func TestRecoverOfAPanickingHook(t *testing.T) {
	h := middleware.Recover(func(context.Context, *reprise.Message, *reprise.PanicError) { panic("hook") })(panics("oh"))
	if panicked, _ := run(t.Context(), h, message()); panicked != "hook" {
		t.Errorf("panicked with %v", panicked)
	}
}
