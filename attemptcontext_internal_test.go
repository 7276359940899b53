package reprise

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

var errOther = errors.New("another cause")

// TestAttemptContextEnds: the context of an attempt ends with the first cause, whether or not it was used
// before, with its parent, and after the timeout.
func TestAttemptContextEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout time.Duration
		end     func(c *attemptContext, stopParent context.CancelCauseFunc)
		cause   error // nil: it has not ended
		err     error
	}{
		"it has not ended":            {end: func(*attemptContext, context.CancelCauseFunc) {}},
		"by a cause":                  {end: func(c *attemptContext, _ context.CancelCauseFunc) { c.end(ErrLeaseLost) }, cause: ErrLeaseLost, err: context.Canceled},
		"twice":                       {end: func(c *attemptContext, _ context.CancelCauseFunc) { c.end(errOther); c.end(ErrLeaseLost) }, cause: errOther, err: context.Canceled},
		"with its parent":             {end: func(_ *attemptContext, stop context.CancelCauseFunc) { stop(ErrStopping) }, cause: ErrStopping, err: context.Canceled},
		"before the timeout":          {timeout: time.Minute, end: func(*attemptContext, context.CancelCauseFunc) { time.Sleep(time.Minute - 1) }},
		"after the timeout":           {timeout: time.Minute, end: func(*attemptContext, context.CancelCauseFunc) { time.Sleep(time.Minute) }, cause: context.DeadlineExceeded, err: context.DeadlineExceeded},
		"by a cause, with a timeout":  {timeout: time.Minute, end: func(c *attemptContext, _ context.CancelCauseFunc) { c.end(errOther); time.Sleep(time.Hour) }, cause: errOther, err: context.Canceled},
		"without a timeout, for long": {end: func(*attemptContext, context.CancelCauseFunc) { time.Sleep(24 * time.Hour) }},
	} {
		for _, used := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				parent, stop := context.WithCancelCause(t.Context())
				var c attemptContext
				c.start(parent, tt.timeout)
				if used {
					_ = c.Err()
				}
				began := time.Now()
				tt.end(&c, stop)
				synctest.Wait()
				if got := c.cause(); !errors.Is(got, tt.cause) {
					t.Errorf("%s, used before %v: the cause is %v, want %v", name, used, got, tt.cause)
				}
				if tt.timeout == 0 && !used && c.live != nil {
					t.Errorf("%s: asking for the cause makes the standard context", name)
				}
				if got := c.Err(); !errors.Is(got, tt.err) || !errors.Is(context.Cause(&c), tt.cause) {
					t.Errorf("%s, used before %v: it ends by %v with the cause %v, want %v and %v", name, used, got, context.Cause(&c), tt.err, tt.cause)
				}
				if at, ok := c.Deadline(); ok != (tt.timeout > 0) || ok && !at.Equal(began.Add(tt.timeout)) {
					t.Errorf("%s, used before %v: its deadline is %v, %v", name, used, at, ok)
				}
				select {
				case <-c.Done():
					if tt.err == nil {
						t.Errorf("%s, used before %v: it is done", name, used)
					}
				default:
					if tt.err != nil {
						t.Errorf("%s, used before %v: it is not done", name, used)
					}
				}
				c.end(context.Canceled)
				stop(nil)
			})
		}
	}
}

// TestLeaseLostAsTheAttemptStarts: the machine can end the context of a run that it has given out, while the
// worker starts it.
func TestLeaseLostAsTheAttemptStarts(t *testing.T) {
	for range 5_000 {
		var c attemptContext
		var racing sync.WaitGroup
		racing.Go(func() { c.end(ErrLeaseLost) })
		c.start(t.Context(), time.Minute)
		racing.Wait()
		if cause := context.Cause(&c); !errors.Is(cause, ErrLeaseLost) {
			t.Fatalf("the cause is %v, want %v", cause, ErrLeaseLost)
		}
	}
}

// TestAttemptContextHasItsMessage: the message is found without the standard context; other values are the
// parent's, and the context of a batch has no message.
func TestAttemptContextHasItsMessage(t *testing.T) {
	type key struct{}
	parent := context.WithValue(t.Context(), key{}, "value")
	m := &Message{ID: "a"}
	c := attemptContext{msg: m}
	c.start(parent, 0)
	if got := c.Value(messageKey{}); got != m || c.live != nil {
		t.Errorf("its message is %v, and the standard context is made: %v", got, c.live != nil)
	}
	if got := c.Value(key{}); got != "value" {
		t.Errorf("the parent's value is %v", got)
	}
	var ofBatch attemptContext
	ofBatch.start(parent, 0)
	if got := ofBatch.Value(messageKey{}); got != nil {
		t.Errorf("the context of a batch has the message %v", got)
	}
	ofBatch.end(context.Canceled)
	c.end(context.Canceled)
}

// TestBatchContextEndsWithItsLastLease: the context of a batch ends when the leases of all of its messages are
// lost, each counted once, and not with other ends of their contexts.
func TestBatchContextEndsWithItsLastLease(t *testing.T) {
	b := &batchContext{ends: make([]consumer.End, 2)}
	b.start(t.Context(), 0)
	first, second := attemptContext{batch: b}, attemptContext{batch: b}
	first.start(t.Context(), 0)
	second.start(t.Context(), 0)
	first.end(ErrLeaseLost)
	first.end(ErrLeaseLost)
	if err := b.Err(); err != nil {
		t.Errorf("with one of two leases it ends: %v", err)
	}
	second.end(ErrLeaseLost)
	if got := context.Cause(b); !errors.Is(got, ErrLeaseLost) {
		t.Errorf("without a lease its cause is %v", got)
	}
	other := &batchContext{ends: make([]consumer.End, 1)}
	other.start(t.Context(), 0)
	only := attemptContext{batch: other}
	only.start(t.Context(), 0)
	only.end(errOther)
	if err := other.Err(); err != nil {
		t.Errorf("it ends with a message's context that ends for another cause: %v", err)
	}
	other.end(context.Canceled)
}

// TestCuts: how the machine is told of the cause of a context's end.
func TestCuts(t *testing.T) {
	for want, causes := range map[consumer.Cut][]error{
		consumer.CutNone:      {nil},
		consumer.CutStopping:  {ErrStopping, errors.Join(errOther, ErrStopping)},
		consumer.CutLeaseLost: {ErrLeaseLost, errors.Join(errOther, ErrLeaseLost)},
		consumer.CutOther:     {context.DeadlineExceeded, context.Canceled, errOther},
	} {
		for _, cause := range causes {
			if got := cutBy(cause); got != want {
				t.Errorf("the cause %v is told as %d, want %d", cause, got, want)
			}
		}
	}
}

// TestCallsShareADeadline: calls that begin within two seconds share a context, which ends after the limit, at
// most two seconds later, or with its parent.
func TestCallsShareADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 * time.Second
		parent, stop := context.WithCancel(t.Context())
		defer stop()
		d := &deadline{limit: limit}
		first := d.context(parent)
		for range 4 {
			ctx := d.context(parent)
			at, ok := ctx.Deadline()
			if left := time.Until(at); !ok || left < limit || left > limit+limitSlack {
				t.Errorf("a call has %v left, want %v to %v", left, limit, limit+limitSlack)
			}
			time.Sleep(limitSlack / 2)
		}
		if got := d.context(parent); got == first {
			t.Error("after the slack the context is still shared")
		}
		d = &deadline{limit: limit}
		first = d.context(parent)
		time.Sleep(limitSlack)
		if d.context(parent) != first {
			t.Error("within the slack the context is not shared")
		}
		time.Sleep(time.Nanosecond)
		if d.context(parent) == first {
			t.Error("beyond the slack the context is shared")
		}
		stop()
		if first.Err() == nil || d.context(parent).Err() == nil {
			t.Error("it does not end with its parent")
		}
	})
}

// countingParent is a context that counts which contexts made from it have been released.
type countingParent struct {
	context.Context
	done           chan struct{}
	made, released int
}

func (p *countingParent) Done() <-chan struct{} { return p.done }

// AfterFunc is called by package context for each context made from p.
func (p *countingParent) AfterFunc(func()) (stop func() bool) {
	p.made++
	return func() bool { p.released++; return true }
}

// TestAttemptContextIsReleased: when an attempt ends before its timeout, nothing of its context stays with the
// consumer's.
func TestAttemptContextIsReleased(t *testing.T) {
	parent := &countingParent{Context: t.Context(), done: make(chan struct{})}
	var c attemptContext
	c.start(parent, time.Hour)
	if c.end(context.Canceled); parent.made != 1 || parent.released != 1 {
		t.Errorf("%d contexts are made from the consumer's, and %d are released", parent.made, parent.released)
	}
}
