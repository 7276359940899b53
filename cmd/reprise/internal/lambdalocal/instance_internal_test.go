package lambdalocal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newLambda returns a Lambda whose function f is this binary, changed.
func newLambda(t *testing.T, change func(*Function)) *Lambda {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := Function{Name: "f", Command: []string{program}, Dir: t.TempDir(), Timeout: maxTimeout}
	change(&f)
	l, err := New(Config{Functions: []Function{f}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return l
}

// begin begins an invoke of f.
func begin(t *testing.T, l *Lambda, payload string) *invocation {
	t.Helper()
	inv, err := newInvocation("arn", []byte(payload), maxSyncPayload)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.begin("f", inv); err != nil {
		t.Fatal(err)
	}
	return inv
}

// TestDeathWhileIdle: an invoke that is given to a process which has died since the
// last one is handled by another. Its function never saw the first.
func TestDeathWhileIdle(t *testing.T) {
	t.Parallel()
	l := newLambda(t, func(*Function) {})
	p := l.pools["f"]
	dead := newInstance(p)
	dead.ready = true
	p.warm = []*instance{dead}
	inv := begin(t, l, `{"do":"echo"}`)
	if len(dead.active) != 1 {
		t.Fatal("the dead instance was not chosen: this test tests nothing")
	}
	dead.bury(obituary{failureExit, "Runtime exited without providing a reason"})
	<-inv.done
	if inv.err != nil || inv.result.FunctionError != "" || string(inv.result.Payload) != `{"do":"echo"}` {
		t.Errorf("the invoke ended with %+v, %v", inv.result, inv.err)
	}
}

// TestSlowInit: a process that never asks for its invoke is given up.
func TestSlowInit(t *testing.T) {
	t.Parallel()
	l := newLambda(t, func(f *Function) { f.Handler, f.Timeout = "sleep-init", 2500*time.Millisecond })
	inv := begin(t, l, `{}`)
	l.pools["f"].warm[0].tooSlow() // rather than in 12.5 s
	<-inv.done
	if want := "Task timed out after 2.50 seconds"; inv.failure != failureTimeout || !strings.Contains(string(inv.result.Payload), want) {
		t.Errorf("the invoke ended with %+v, %v, want %s", inv.result, inv.err, want)
	}
}

// TestTimeoutBesideOthers: an invoke that takes too long does not take along those
// that the same process handles; but it is the last that this process does.
func TestTimeoutBesideOthers(t *testing.T) {
	t.Parallel()
	l := newLambda(t, func(f *Function) { f.PerInstance = 2 })
	p := l.pools["f"]
	gate := filepath.Join(t.TempDir(), "gate")
	slow := begin(t, l, `{"do":"sleep","sleep":3600000000000}`)
	other := begin(t, l, fmt.Sprintf(`{"do":"wait","file":%q}`, gate))
	first := p.warm[0]
	for begun := 0; begun < 2; {
		time.Sleep(time.Millisecond)
		begun = 0
		p.mu.Lock()
		for _, inv := range []*invocation{slow, other} {
			if !inv.taken.IsZero() {
				begun++
			}
		}
		p.mu.Unlock()
	}
	first.expire(slow) // rather than in 15 min
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-other.done
	if string(other.result.Payload) != `"there"` {
		t.Errorf("the other invoke ended with %+v, %v", other.result, other.err)
	}
	<-slow.done
	if slow.failure != failureTimeout {
		t.Errorf("the slow invoke ended with %+v, %v", slow.result, slow.err)
	}
	<-first.ctx.Done()
	for range 2 {
		next := begin(t, l, `{"do":"echo"}`)
		<-next.done
		if next.err != nil || next.result.FunctionError != "" {
			t.Errorf("the next invoke ended with %+v, %v", next.result, next.err)
		}
		p.mu.Lock()
		second := p.warm[0]
		p.mu.Unlock()
		second.expire(slow) // whose clock rings too late for anybody
	}
	if l.started.Load() != 2 {
		t.Errorf("%d processes were started, want 2", l.started.Load())
	}
}
