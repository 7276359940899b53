package idempotency

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// slowMethod is a store's method that takes a second and notes the members of each trip.
type slowMethod struct {
	trips [][]string
	fails func(trip int) error
}

func (f *slowMethod) coalescer() *coalescer[string, string] {
	return &coalescer[string, string]{call: f.call, key: func(s string) string { return s }, timeout: time.Minute}
}

func (f *slowMethod) call(ctx context.Context, in []string) ([]string, error) {
	f.trips = append(f.trips, slices.Sorted(slices.Values(in)))
	time.Sleep(time.Second)
	if f.fails != nil {
		if err := f.fails(len(f.trips)); err != nil {
			return nil, err
		}
	}
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = "re: " + s
	}
	return out, ctx.Err()
}

// all calls do for each of in at the same time and returns the errors.
func all(c *coalescer[string, string], in ...string) []error {
	errs := make([]error, len(in))
	var callers sync.WaitGroup
	for i, s := range in {
		callers.Go(func() {
			time.Sleep(time.Duration(i)) // in this order
			out, err := c.do(context.Background(), s)
			if err == nil && out != "re: "+s {
				err = fmt.Errorf("%s got %q", s, out)
			}
			errs[i] = err
		})
	}
	callers.Wait()
	return errs
}

// TestConcurrentCallersShareTrips: the first goes at once and alone, the others together
// when it is back, and a key that is in a trip already goes with the trip after.
func TestConcurrentCallersShareTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowMethod{}
		c := f.coalescer()
		began := time.Now()
		for i, err := range all(c, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j") {
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("ten callers took %v, want two trips of a second", took)
		}
		all(c, "a")
		all(c, "a", "b", "b", "c", "b")
		want := [][]string{{"a"}, {"b", "c", "d", "e", "f", "g", "h", "i", "j"}, {"a"}, {"a"}, {"b", "c"}, {"b"}, {"b"}}
		if diff := cmp.Diff(want, f.trips); diff != "" {
			t.Errorf("trips (-want +got):\n%s", diff)
		}
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.running || len(c.waiting) != 0 {
			t.Errorf("running %v, %d waiting; want rest", c.running, len(c.waiting))
		}
	})
}

// TestTripsAreBounded in their members.
func TestTripsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowMethod{}
		in := make([]string, 1+2*maxTrip+1)
		for i := range in {
			in[i] = fmt.Sprint(i)
		}
		all(f.coalescer(), in...)
		var sizes []int
		for _, trip := range f.trips {
			sizes = append(sizes, len(trip))
		}
		if diff := cmp.Diff([]int{1, maxTrip, maxTrip, 1}, sizes); diff != "" {
			t.Errorf("sizes of trips (-want +got):\n%s", diff)
		}
	})
}

// TestCallerThatGivesUpHurtsNobody: before its trip it is left out, during the trip its
// result goes to the orphans.
func TestCallerThatGivesUpHurtsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowMethod{}
		c := f.coalescer()
		var orphans []string
		c.orphan = func(_, out string) { orphans = append(orphans, out) }
		impatient := func(s string, patience time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := c.do(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want it to have given up", s, err)
			}
		}
		var callers sync.WaitGroup
		callers.Go(func() { all(c, "a") })
		synctest.Wait()
		callers.Go(func() { impatient("before", 500*time.Millisecond) })
		callers.Go(func() { impatient("during", 1500*time.Millisecond) })
		callers.Go(func() {
			if errs := all(c, "b"); errs[0] != nil {
				t.Errorf("who stayed: %v", errs[0])
			}
		})
		callers.Wait()
		synctest.Wait()
		if diff := cmp.Diff([][]string{{"a"}, {"b", "during"}}, f.trips); diff != "" {
			t.Errorf("trips (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"re: during"}, orphans); diff != "" {
			t.Errorf("orphans (-want +got):\n%s", diff)
		}
	})
}

// TestResultIsNeverLost: a caller that gives up at the very moment at which its
// result arrives either gets it or leaves it to the orphans.
func TestResultIsNeverLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&slowMethod{}).coalescer()
		var mu sync.Mutex
		orphans, results := 0, 0
		c.orphan = func(_, _ string) { mu.Lock(); defer mu.Unlock(); orphans++ }
		for range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.do(ctx, "a"); err == nil {
				results++
			}
			cancel()
			time.Sleep(time.Second)
		}
		mu.Lock()
		defer mu.Unlock()
		if results+orphans != 200 || results == 0 || orphans == 0 {
			t.Errorf("of 200 results %d went to callers and %d to the orphans", results, orphans)
		}
	})
}

// TestNobodyAboardNoTrip: the only caller that waits gives up before its trip.
func TestNobodyAboardNoTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowMethod{}
		c := f.coalescer()
		c.orphan = func(_, out string) { t.Errorf("an orphan: %s", out) }
		go all(c, "a")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := c.do(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("b: %v, want it to have given up", err)
		}
		time.Sleep(time.Minute)
		if diff := cmp.Diff([][]string{{"a"}}, f.trips); diff != "" {
			t.Errorf("trips (-want +got):\n%s", diff)
		}
	})
}

// TestResultThatIsThereIsTaken: the result has arrived, and the caller's context has
// ended too. Nobody else takes the result any more: the caller gets it.
func TestResultThatIsThereIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&slowMethod{}).coalescer()
		for range 64 { // a caller that finds both chooses one of them by chance
			p := &caller[string, string]{in: "a", answered: make(chan struct{})}
			c.queue(p)
			<-p.answered
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if out, err := c.await(ctx, p); out != "re: a" || err != nil {
				t.Fatalf("got %q and the error %v, want the result that was there", out, err)
			}
		}
	})
}

// TestTripThatFailsIsOver: its members are told, and the next goes.
func TestTripThatFailsIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		fail func() error
		want string
	}{
		"error":  {func() error { return errors.New("connection refused") }, "connection refused"},
		"panic":  {func() error { panic("a nil map") }, "a nil map"},
		"Goexit": {func() error { runtime.Goexit(); return nil }, "Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &slowMethod{fails: func(trip int) error {
					if trip == 2 {
						return c.fail()
					}
					return nil
				}}
				co := f.coalescer()
				errs := all(co, "a", "b", "c")
				if errs[0] != nil || errs[1] == nil || errs[2] == nil || !strings.Contains(errs[1].Error(), c.want) {
					t.Errorf("%v: want the second trip to fail with %q", errs, c.want)
				}
				if errs := all(co, "d"); errs[0] != nil {
					t.Errorf("the next: %v", errs[0])
				}
				synctest.Wait()
			})
		})
	}
}

// TestTripsEnd: a store that hangs is given up after the timeout.
func TestTripsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := coalescer[string, string]{
			key: func(s string) string { return s }, timeout: 5 * time.Second,
			call: func(ctx context.Context, _ []string) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() },
		}
		began := time.Now()
		_, err := c.do(context.Background(), "a")
		if took := time.Since(began); took != 5*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// TestStoreThatAnswersTooFew is an error, not a wrong answer.
func TestStoreThatAnswersTooFew(t *testing.T) {
	_, err := trip(time.Minute, func(context.Context, []string) ([]string, error) { return []string{"a"}, nil }, []string{"a", "b"})
	if err == nil {
		t.Error("one answer to a batch of two: no error")
	}
}
