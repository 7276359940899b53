package emulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/children"
)

// The types of the errors that Lambda itself reports for a function.
const (
	failureExit       = "Runtime.ExitError"
	failureEntrypoint = "Runtime.InvalidEntrypoint"
	failureTimeout    = "Sandbox.Timedout"
	failureTooLarge   = "Function.ResponseSizeTooLarge"
	failureUnknown    = "Unhandled" // posted by the runtime, without a type
)

// initLimit is how long, beyond the function's timeout, an instance may take to ask for its first
// invoke: Lambda stops an init after 10 s, and repeats it within the invoke, where it has the
// function's timeout.
const initLimit = 10 * time.Second

// initErrorGrace is how long a process may take to end after it has reported that its
// initialisation failed. One of its threads may keep it running.
const initErrorGrace = time.Second

// instance is one process of a function, with its Runtime API.
type instance struct {
	pool   *pool
	number int
	begun  time.Time
	init   *time.Timer     // ends an instance that does not become ready
	ctx    context.Context // ends when the process is to be killed
	kill   context.CancelFunc
	queue  chan *invocation // assigned, not taken; has room for all assigned ones
	output *output

	// Guarded by the pool's lock.
	ready    bool                   // it has asked for an invoke
	cold     time.Duration          // how long that took; reported with the first invoke
	slowInit bool                   // it was killed because it had not asked in time
	initFail []byte                 // the error that the runtime posted instead of asking
	initKind string                 // its type
	active   map[string]*invocation // assigned and not ended, by id
	answered []*invocation          // of active, those with a result, in their order
	ending   bool                   // takes no more; killed when active is empty
	idle     *time.Timer            // nil: never idle yet
}

// newInstance returns an instance, which [instance.run] starts; the pool's lock is held.
func newInstance(p *pool) *instance {
	i := &instance{
		pool:   p,
		number: int(p.lambda.started.Add(1)),
		queue:  make(chan *invocation, p.function.PerInstance),
		active: make(map[string]*invocation),
	}
	i.ctx, i.kill = context.WithCancel(p.lambda.killed)
	i.begun = time.Now()
	i.init = time.AfterFunc(initLimit+p.function.Timeout, i.tooSlow)
	return i
}

// assign assigns inv to i, which has room; the pool's lock is held.
func (i *instance) assign(inv *invocation) {
	if i.idle != nil {
		i.idle.Stop()
	}
	i.active[inv.id] = inv
	i.queue <- inv
}

// run starts the process and handles its end.
func (i *instance) run() {
	defer i.kill()
	i.cleanUp(i.live())
}

// exitReason is why an instance ended, as Lambda reports it for its unfinished invokes.
type exitReason struct{ kind, text string }

// live starts the process and waits for its end.
func (i *instance) live() exitReason {
	var listening net.ListenConfig
	listener, err := listening.Listen(i.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return exitReason{failureExit, "the Runtime API could not be served: " + err.Error()}
	}
	server := &http.Server{Handler: i.runtimeAPI(listener.Addr().String()), ReadHeaderTimeout: time.Minute}
	var stdout *os.File
	i.output, stdout, err = newOutput(i.line)
	if err != nil {
		_ = listener.Close() // no connection was accepted
		return exitReason{failureExit, "the process's output could not be read: " + err.Error()}
	}
	go i.output.run()
	defer i.output.close()

	command := i.pool.function.Command
	address := listener.Addr().String()
	cmd := exec.CommandContext(i.ctx, command[0], command[1:]...)
	cmd.Dir = i.pool.function.Dir
	cmd.Env = i.environment(address)
	cmd.Stdout, cmd.Stderr = stdout, stdout
	child := children.New(cmd, runtimeAPIVariable+"="+address, 0)

	err = child.Start()
	_ = stdout.Close() // the process has its own
	if err != nil {
		_ = listener.Close() // no connection was accepted
		return exitReason{failureEntrypoint, err.Error()}
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		// It ends when it is closed below.
		_ = server.Serve(listener)
	}()
	err = child.Wait()
	child.Kill()       // processes that it has left behind
	_ = server.Close() // its callers are dead
	<-served
	return exitReason{failureExit, exitText(err)}
}

// exitText is Lambda's text about a process that ended with err.
func exitText(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "Runtime exited with error: " + exit.String()
	}
	return "Runtime exited without providing a reason"
}

// tooSlow ends an instance that has not asked for an invoke in time.
func (i *instance) tooSlow() {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	if !i.ready {
		i.slowInit = true
		i.pool.end(i)
	}
}

// cleanUp cleans up after the end of the process.
func (i *instance) cleanUp(why exitReason) {
	p := i.pool
	i.init.Stop()
	p.mu.Lock()
	p.forget(i)
	if i.idle != nil {
		i.idle.Stop()
	}
	i.answered = nil // a late request of the process has nothing to end
	var left, again []*invocation
	for id, inv := range i.active {
		delete(i.active, id)
		if i.ready && inv.taken.IsZero() && p.lambda.killed.Err() == nil {
			// The process died while it was idle; the function has not seen this invoke.
			again = append(again, inv)
			continue
		}
		i.explain(inv, why)
		p.active--
		left = append(left, inv)
	}
	for _, inv := range again {
		p.place(inv)
	}
	p.admit()
	p.mu.Unlock()

	now := time.Now()
	for _, inv := range left {
		if inv.failure == failureExit || inv.failure == failureEntrypoint {
			i.say(inv, fmt.Sprintf("RequestId: %s Error: %s", inv.id, why.text))
		}
		if inv.taken.IsZero() {
			i.reportInit(inv, now)
		} else {
			i.report(inv, now)
		}
		p.finish(inv)
	}
}

// explain sets the result of inv if it has none; the pool's lock is held.
func (i *instance) explain(inv *invocation, why exitReason) {
	if inv.timer != nil {
		inv.timer.Stop()
	}
	switch {
	case inv.answered:
	case i.pool.lambda.killed.Err() != nil:
		inv.err = errClosing
	case i.initFail != nil:
		inv.answer(i.initFail, i.initKind)
	case i.slowInit:
		i.timeOut(inv)
	default:
		inv.fail(why.kind, fmt.Sprintf("RequestId: %s Error: %s", inv.id, why.text))
	}
}

// timeOut sets the result of inv to that of a function that took too long; the pool's lock is
// held.
func (i *instance) timeOut(inv *invocation) {
	inv.fail(failureTimeout, fmt.Sprintf("RequestId: %s Error: %s", inv.id, i.timeoutText()))
}

func (i *instance) timeoutText() string {
	return fmt.Sprintf("Task timed out after %.2f seconds", i.pool.function.Timeout.Seconds())
}
