//go:build unix

package emulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// who is what an instance says of itself.
type who struct {
	PID     int
	Invokes int
	Version string
}

func ask(t *testing.T, l *emulator.Lambda) who {
	t.Helper()
	var w who
	if err := json.Unmarshal(invoke(t, l, order{Do: "who"}).Payload, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWarmReuse: invokes one after the other are handled by one process, which goes
// on after an error of the handler and is replaced after its own end.
func TestWarmReuse(t *testing.T) {
	t.Parallel()
	l, _ := open(t, emulator.Config{Functions: []emulator.Function{self(t, "f")}})
	first := ask(t, l)
	invoke(t, l, order{Do: "fail"})
	if second := ask(t, l); second.PID != first.PID || second.Invokes != 2 {
		t.Errorf("the second invoke was handled by %+v, the first by %+v", second, first)
	}
	invoke(t, l, order{Do: "panic"}) // the SDK ends the process after it has told
	third := ask(t, l)
	if third.PID == first.PID || third.Invokes != 1 {
		t.Errorf("after a panic %+v handled an invoke, want a new process", third)
	}
	invoke(t, l, order{Do: "exit"})
	if fourth := ask(t, l); fourth.PID == third.PID || fourth.Invokes != 1 {
		t.Errorf("after a crash %+v handled an invoke, want a new process", fourth)
	}
}

// TestConcurrency: invokes at once have a process each, up to the limit.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	f := self(t, "f")
	f.Concurrency = 2
	l, j := open(t, emulator.Config{Functions: []emulator.Function{f}})
	gate := filepath.Join(t.TempDir(), "gate")
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			if result, err := l.Invoke(t.Context(), "f", encode(t, order{Do: "wait", File: gate})); err != nil || string(result.Payload) != `"there"` {
				t.Errorf("Invoke = %s, %v", result.Payload, err)
			}
		})
	}
	j.awaitStarts(2)
	_, err := l.Invoke(t.Context(), "f", encode(t, order{Do: "echo"}))
	if refused, ok := errors.AsType[*emulator.Error](err); !ok || refused.Status != 429 {
		t.Errorf("the third Invoke at once = %v, want a throttle", err)
	}
	touch(t, gate)
	waiting.Wait()
	ask(t, l)
}

// TestUnreservedConcurrency: where nothing is reserved, this machine's limit makes
// invokes wait and throttles none.
func TestUnreservedConcurrency(t *testing.T) {
	t.Parallel()
	l, j := open(t, emulator.Config{Functions: []emulator.Function{self(t, "f")}})
	gate := filepath.Join(t.TempDir(), "gate")
	var running sync.WaitGroup
	for range 13 {
		running.Go(func() {
			if result, err := l.Invoke(t.Context(), "f", encode(t, order{Do: "wait", File: gate})); err != nil || string(result.Payload) != `"there"` {
				t.Errorf("Invoke = %s, %v", result.Payload, err)
			}
		})
	}
	j.awaitStarts(10)
	touch(t, gate)
	running.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		if line.Instance > 10 {
			t.Fatalf("instance %d was started, and 10 are the limit", line.Instance)
		}
	}
}

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPerInstance: one process handles several invokes at once, if it may.
func TestPerInstance(t *testing.T) {
	t.Parallel()
	f := self(t, "f")
	f.PerInstance = 2
	l, j := open(t, emulator.Config{Functions: []emulator.Function{f}})
	var meeting sync.WaitGroup
	for range 2 {
		meeting.Go(func() {
			// The two wait for each other within the process.
			if _, err := l.Invoke(t.Context(), "f", encode(t, order{Do: "meet"})); err != nil {
				t.Errorf("Invoke = %v", err)
			}
		})
	}
	meeting.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		if line.Instance != 1 {
			t.Errorf("instance %d was started", line.Instance)
		}
	}
}

// TestIdleEnd: an instance without work ends, and another takes its place.
func TestIdleEnd(t *testing.T) {
	t.Parallel()
	l, _ := open(t, emulator.Config{Functions: []emulator.Function{self(t, "f")}, IdleTimeout: time.Millisecond})
	first := ask(t, l)
	awaitEnd(t, first.PID)
	if second := ask(t, l); second.PID == first.PID {
		t.Errorf("process %d still answers", first.PID)
	}
}

// TestReplace: invokes go to the new form, those that run end in the old one.
func TestReplace(t *testing.T) {
	t.Parallel()
	f := self(t, "f")
	f.Environment = map[string]string{"VERSION": "1"}
	l, j := open(t, emulator.Config{Functions: []emulator.Function{f}})
	old := ask(t, l)

	gate := filepath.Join(t.TempDir(), "gate")
	running := make(chan emulator.Result)
	go func() {
		result, err := l.Invoke(context.WithoutCancel(t.Context()), "f", encode(t, order{Do: "wait", File: gate}))
		if err != nil {
			t.Errorf("the running invoke ended with %v", err)
		}
		running <- result
	}()
	j.awaitStarts(2)
	f.Environment = map[string]string{"VERSION": "2"}
	if err := l.Replace(f); err != nil {
		t.Fatal(err)
	}
	replaced := ask(t, l)
	if replaced.Version != "2" || replaced.PID == old.PID {
		t.Errorf("after Replace %+v answers", replaced)
	}
	touch(t, gate)
	if result := <-running; string(result.Payload) != `"there"` {
		t.Errorf("the running invoke returned %s", result.Payload)
	}
	awaitEnd(t, old.PID)

	if err := l.Remove("f"); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, replaced.PID)
	if _, err := l.Invoke(t.Context(), "f", nil); err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") {
		t.Errorf("Invoke of a removed function = %v", err)
	}
	if err := l.Replace(f); err != nil {
		t.Fatal(err)
	}
	ask(t, l)
	f.Timeout = -1
	if err := l.Replace(f); err == nil {
		t.Error("Replace accepted a negative timeout")
	}
}

// TestReplaceKeepsConcurrency: what runs in the old form counts for the new one.
func TestReplaceKeepsConcurrency(t *testing.T) {
	t.Parallel()
	f := self(t, "f")
	f.Concurrency = 1
	l, j := open(t, emulator.Config{Functions: []emulator.Function{f}})
	gate := filepath.Join(t.TempDir(), "gate")
	var running sync.WaitGroup
	running.Go(func() {
		if _, err := l.Invoke(t.Context(), "f", encode(t, order{Do: "wait", File: gate})); err != nil {
			t.Errorf("Invoke = %v", err)
		}
	})
	j.awaitStarts(1)
	for range 2 {
		if err := l.Replace(f); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Invoke(t.Context(), "f", nil); err == nil || !strings.Contains(err.Error(), "TooManyRequests") {
			t.Errorf("Invoke beside one of the old form = %v, want a throttle", err)
		}
	}
	touch(t, gate)
	running.Wait()
	ask(t, l)
}

// TestCloseDrains: what runs may end; what does not is cut off and said.
func TestCloseDrains(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		finish bool
	}{{"in time", true}, {"too late", false}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			j := &journal{t: t}
			l, err := emulator.New(emulator.Config{Functions: []emulator.Function{self(t, "f")}, Log: j.log})
			if err != nil {
				t.Fatal(err)
			}
			idle := ask(t, l)
			gate := filepath.Join(t.TempDir(), "gate")
			ended := make(chan error)
			go func() {
				_, err := l.Invoke(context.WithoutCancel(t.Context()), "f", encode(t, order{Do: "wait", File: gate}))
				ended <- err
			}()
			j.awaitStarts(2)

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			closed := make(chan error)
			go func() { closed <- l.Close(ctx) }()
			if test.finish {
				touch(t, gate)
				if err := <-ended; err != nil {
					t.Errorf("the running invoke ended with %v", err)
				}
				if err := <-closed; err != nil {
					t.Errorf("Close = %v", err)
				}
			} else {
				cancel()
				if err := <-ended; err == nil || !strings.Contains(err.Error(), "stopping") {
					t.Errorf("the invoke that was cut off ended with %v", err)
				}
				if err := <-closed; err == nil || !strings.Contains(err.Error(), "cut off") {
					t.Errorf("Close = %v, want it to say what was cut off", err)
				}
			}
			awaitEnd(t, idle.PID)
			if _, err := l.Invoke(t.Context(), "f", nil); err == nil || !strings.Contains(err.Error(), "stopping") {
				t.Errorf("Invoke after Close = %v", err)
			}
		})
	}
}
