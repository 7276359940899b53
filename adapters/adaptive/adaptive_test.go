package adaptive_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/adaptive"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// warehouse works on a limited number of calls at once; further calls share its time.
type warehouse struct {
	mu      sync.Mutex
	bears   int
	takes   time.Duration
	running int
	slowest time.Duration // of the calls since it was reset
}

func (w *warehouse) Handle(context.Context, *reprise.Message) error {
	w.mu.Lock()
	w.running++
	took := w.takes * time.Duration(max(w.running, w.bears)) / time.Duration(w.bears)
	w.slowest = max(w.slowest, took)
	w.mu.Unlock()
	time.Sleep(took)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	return nil
}

// bear changes how many calls the warehouse can bear, and forgets the slowest call.
func (w *warehouse) bear(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bears, w.slowest = n, 0
}

func (w *warehouse) sinceReset() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slowest
}

// backlog is enough work for a long time.
func backlog(q *reprisetest.Queue, n int) {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("order %d", i)
	}
	q.Send(bodies...)
}

func newLimiter(t *testing.T, cfg adaptive.Config) *adaptive.Limiter {
	t.Helper()
	l, err := adaptive.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestFindsWhatIsBorne: a dependency bears 16 calls at once and gets slower with
// more. Its consumer begins with 4 and is permitted 500.
func TestFindsWhatIsBorne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bears, messages = 16, 10_000
		q := reprisetest.NewQueue(t, nil)
		backlog(q, messages)
		w := &warehouse{bears: bears, takes: 250 * time.Millisecond}
		l := newLimiter(t, adaptive.Config{Start: 4, Most: 500})
		c := q.Consume(l.Wrap(w), reprise.Config{Concurrency: l.Concurrency()})
		drive(t, l, c)
		time.Sleep(time.Minute)
		w.bear(bears)
		time.Sleep(20 * time.Second)
		s := c.Status()
		if s.Concurrency != l.Concurrency() || s.Concurrency < bears/2 || s.Concurrency > 3*bears {
			t.Errorf("concurrency %d after 80 s, the limiter's is %d: want about the %d that are borne", s.Concurrency, l.Concurrency(), bears)
		}
		if slowest := w.sinceReset(); slowest > 3*w.takes {
			t.Errorf("a call took %v, alone it takes %v", slowest, w.takes)
		}
		if least := int64(80 * bears * 4 / 2); s.Counts.Deleted < least {
			t.Errorf("%d worked off in 80 s, want at least %d", s.Counts.Deleted, least)
		}
		t.Logf("concurrency %d, slowest %v, %d worked off", s.Concurrency, w.sinceReset(), s.Counts.Deleted)
	})
}

// TestFailuresAreNotMeasured: calls that fail at once are no sign that the
// dependency bears more, and calls that time out are no sign that it bears fewer.
func TestFailuresAreNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		backlog(q, 300)
		l := newLimiter(t, adaptive.Config{Start: 8})
		c := q.Consume(l.Wrap(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			time.Sleep(100 * time.Millisecond)
			return errors.New("no such order")
		})), reprise.Config{Concurrency: l.Concurrency(), Retry: retry.Policy{MaxAttempts: -1}})
		drive(t, l, c)
		time.Sleep(time.Minute)
		if n := c.Status().Concurrency; n != 8 {
			t.Errorf("concurrency %d, want the 8 that it began with", n)
		}
	})
}

// TestPlacesAreGivenBack: each run gives its place back, however it ends.
func TestPlacesAreGivenBack(t *testing.T) {
	l := newLimiter(t, adaptive.Config{Most: 1})
	for _, handler := range []func(){
		func() {},
		func() { panic("bad order") },
		runtime.Goexit,
	} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			_ = l.Wrap(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
				handler()
				return nil
			})).Handle(t.Context(), &reprise.Message{})
		}()
		<-ended
	}
	ran := false
	err := l.Wrap(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
		ran = true
		return nil
	})).Handle(t.Context(), &reprise.Message{})
	if err != nil || !ran {
		t.Errorf("%v, ran: %v; want the only place free again", err, ran)
	}
}

// TestWaitingForAPlaceIsNoAttempt: a run that is interrupted while it waits for a place returns the
// cause of the interruption.
func TestWaitingForAPlaceIsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, adaptive.Config{Most: 1})
		busy := l.Wrap(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			time.Sleep(time.Hour)
			return nil
		}))
		go func() { _ = busy.Handle(t.Context(), &reprise.Message{}) }()
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(reprise.ErrStopping) })
		err := busy.Handle(ctx, &reprise.Message{})
		if d := (retry.Policy{}).Decide(retry.Failure{N: 1, Err: err}); d.Action != retry.ActionRelease || !errors.Is(err, reprise.ErrStopping) {
			t.Errorf("%#v, want a release for the stop", err)
		}
		time.Sleep(2 * time.Hour)
	})
}

func drive(t *testing.T, l *adaptive.Limiter, c adaptive.Consumer) {
	t.Helper()
	if err := l.Drive(c); err != nil {
		t.Fatal(err)
	}
}

// narrow is a consumer that permits at most so many handlers.
type narrow struct{ most, set int }

func (n *narrow) SetConcurrency(to int) error {
	if to > n.most {
		return fmt.Errorf("%d is too much", to)
	}
	n.set = to
	return nil
}

// TestRefusedConcurrency: what the consumer refuses is not taken for set.
func TestRefusedConcurrency(t *testing.T) {
	l := newLimiter(t, adaptive.Config{Least: 6, Most: 6})
	n := &narrow{most: 5}
	if err := l.Drive(n); err == nil || !strings.Contains(err.Error(), "6 is too much") {
		t.Errorf("Drive returned %v, want the consumer's error", err)
	}
	n.most = 6
	if err := l.Wrap(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })).Handle(t.Context(), &reprise.Message{}); err != nil {
		t.Fatal(err)
	}
	if n.set != 6 {
		t.Errorf("the concurrency is %d, want 6 as soon as the consumer permits it", n.set)
	}
}

// TestAnotherConsumer: a limiter that drives another consumer than before sets its concurrency too, although that has not
// changed.
func TestAnotherConsumer(t *testing.T) {
	l := newLimiter(t, adaptive.Config{Start: 6})
	first, second := &narrow{most: 10}, &narrow{most: 10}
	for _, c := range []*narrow{first, second} {
		if err := l.Drive(c); err != nil || c.set != 6 {
			t.Errorf("the concurrency is %d, error %v; want 6", c.set, err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, tt := range []struct {
		cfg  adaptive.Config
		want string
	}{
		{adaptive.Config{Least: -1}, "Least is -1"},
		{adaptive.Config{Least: 20, Most: 10}, "Least is 20 and Most is 10"},
		{adaptive.Config{Start: 300}, "Start is 300"},
		{adaptive.Config{Least: 20, Start: 10}, "Start is 10"},
		{adaptive.Config{Window: -time.Second}, "Window is -1s"},
		{adaptive.Config{Window: math.MaxInt64}, "Window is 2562047h"},
		{adaptive.Config{Most: 100_001}, "Most is 100001"},
		{adaptive.Config{Least: math.MaxInt}, "Most is 9223372036854775807"},
		{adaptive.Config{Start: math.MaxInt}, "Start is 9223372036854775807"},
	} {
		if _, err := adaptive.New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%+v) returned %v, want an error with %q", tt.cfg, err, tt.want)
		}
	}
	for cfg, want := range map[adaptive.Config]int{{}: 10, {Most: 4}: 4, {Least: 300}: 300, {Start: 7}: 7} {
		if n := newLimiter(t, cfg).Concurrency(); n != want {
			t.Errorf("New(%+v) begins with %d, want %d", cfg, n, want)
		}
	}
}
