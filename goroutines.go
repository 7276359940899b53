package reprise

import (
	"runtime"
	"sync"
)

// goroutines does work of one kind in goroutines that it reuses. A call through the SDK grows
// the stack of its goroutine to several times its first size; growing it again for each
// request and each burst of handlers would cost more than all other work for a message. The
// caller of run and retire holds the mutex that it passes to run.
type goroutines[Work any] struct {
	do       func(Work)     // without the lock
	handlers bool           // it runs handlers, whose stacks may have any size
	idle     []chan Work    // of goroutines that wait for work; closed to end them
	idlers   sync.WaitGroup // counts the goroutines in idle, and those that retire from it
	retired  bool
}

// run does w in a goroutine.
func (g *goroutines[Work]) run(mu *sync.Mutex, w Work) {
	if n := len(g.idle); n > 0 {
		next := g.idle[n-1] // its stack was used most recently
		g.idle = g.idle[:n-1]
		g.idlers.Done()
		next <- w
		return
	}
	next := make(chan Work, 1)
	next <- w
	if g.handlers {
		go g.loop(mu, next)
	} else {
		go g.loopOnLargeStack(mu, next)
	}
}

// loop is what a goroutine runs: it does the work that arrives on next.
func (g *goroutines[Work]) loop(mu *sync.Mutex, next chan Work) {
	for w := range next {
		g.do(w)
		if !g.keep(mu, next) {
			return
		}
	}
	g.idlers.Done()
}

// loopOnLargeStack is loop on a stack that stays as large as a call has made it. Each cycle
// of the garbage collector halves the stacks of which less than a quarter is in use, also of
// goroutines that wait, and a busy process has many cycles a second.
//
//go:noinline
func (g *goroutines[Work]) loopOnLargeStack(mu *sync.Mutex, next chan Work) {
	var used [callStack / 4]byte
	g.loop(mu, next)
	runtime.KeepAlive(&used)
}

// callStack is the size of a stack, in bytes, after a call through the SDK.
const callStack = 32 << 10

// keep keeps the goroutine of next for later work. It returns false if goroutines retire.
func (g *goroutines[Work]) keep(mu *sync.Mutex, next chan Work) bool {
	mu.Lock()
	defer mu.Unlock()
	if g.retired {
		return false
	}
	g.idle = append(g.idle, next)
	g.idlers.Add(1)
	return true
}

// retire ends the idle goroutines at once, and the others when they have done their work.
func (g *goroutines[Work]) retire() {
	g.retired = true
	for _, next := range g.idle {
		close(next)
	}
	g.idle = nil
}
