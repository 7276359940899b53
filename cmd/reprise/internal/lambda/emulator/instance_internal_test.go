package emulator

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	dead.cleanUp(exitReason{failureExit, "Runtime exited without providing a reason"})
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

// running returns an instance without a process, which takes the next invokes of f.
func running(t *testing.T, l *Lambda) *instance {
	t.Helper()
	i := newInstance(l.pools["f"])
	var stdout *os.File
	var err error
	if i.output, stdout, err = newOutput(i.line); err != nil {
		t.Fatal(err)
	}
	go i.output.run()
	t.Cleanup(func() {
		_ = stdout.Close() // nothing was written
		i.output.close()
	})
	i.ready = true
	i.pool.warm = []*instance{i}
	return i
}

// TestTimeoutBeforeUntaken: an invoke that waits for a process which does not take as
// many as it was told it may, is handled by another when that process runs out of time.
func TestTimeoutBeforeUntaken(t *testing.T) {
	t.Parallel()
	l := newLambda(t, func(f *Function) { f.PerInstance = 2 })
	busy := running(t, l)
	slow := begin(t, l, `{}`)
	other := begin(t, l, `{"do":"echo"}`)
	busy.deliver(httptest.NewRecorder(), <-busy.queue)
	busy.expire(slow) // rather than in 15 min
	select {
	case <-other.done:
	case <-time.After(time.Minute): // so that a failure says which
		t.Error("the invoke that was not taken still waits")
	}
	if other.err != nil || string(other.result.Payload) != `{"do":"echo"}` {
		t.Errorf("the invoke that was not taken ended with %+v, %v", other.result, other.err)
	}
	<-busy.ctx.Done()
	busy.cleanUp(exitReason{failureExit, "killed"})
	<-slow.done
	if slow.failure != failureTimeout {
		t.Errorf("the slow invoke ended with %+v, %v", slow.result, slow.err)
	}
}

// TestRequestsOfTheDead: a process may die right behind a request, which is then served
// when everything is over. It must end no invoke twice and take none that is another's.
func TestRequestsOfTheDead(t *testing.T) {
	t.Parallel()
	l := newLambda(t, func(*Function) {})
	dead := running(t, l)
	inv := begin(t, l, `{"do":"echo"}`)
	dead.deliver(httptest.NewRecorder(), <-dead.queue)
	answer := httptest.NewRequest(http.MethodPost, "/2018-06-01/runtime/invocation/"+inv.id+"/response", strings.NewReader(`"done"`))
	dead.runtimeAPI("example.com").ServeHTTP(httptest.NewRecorder(), answer)
	dead.cleanUp(exitReason{failureExit, "killed"})
	<-inv.done

	dead.kill()
	hungUp, hangUp := context.WithCancel(t.Context())
	hangUp()
	next := httptest.NewRequestWithContext(hungUp, http.MethodGet, "/2018-06-01/runtime/invocation/next", nil)
	told := httptest.NewRecorder()
	dead.runtimeAPI("example.com").ServeHTTP(told, next)
	if told.Body.Len() != 0 {
		t.Errorf("a process that is killed while it waits is told %s, and would log that", told.Body)
	}
	l.pools["f"].mu.Lock()
	active := l.pools["f"].active
	l.pools["f"].mu.Unlock()
	if string(inv.result.Payload) != `"done"` || active != 0 {
		t.Errorf("the invoke ended with %+v, %v, and %d are counted as running", inv.result, inv.err, active)
	}

	moved := begin(t, l, `{"do":"echo"}`)
	late := httptest.NewRecorder()
	dead.deliver(late, moved)
	<-moved.done
	if late.Code != http.StatusInternalServerError {
		t.Errorf("a process that is gone was given %s", late.Body)
	}
}
