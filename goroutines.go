package reprise

import (
	"runtime"
	"sync"
)

// goroutines does work of one kind in goroutines that it keeps for the next. A goroutine
// that has made a call through the SDK has grown its stack to several times its
// first size, and to grow it anew for each request and each burst of handlers
// costs more than everything else that is done for a message. run and retire are
// called with the mutex held that run is given.
type goroutines[Work any] struct {
	do       func(Work)     // without the lock
	handlers bool           // it runs handlers, and nothing is known of the stacks they need
	idle     []chan Work    // of goroutines that wait for work; closed to end them
	parked   sync.WaitGroup // counts idle, and those of them that are retiring
	retired  bool
}

// run does w in a goroutine.
func (g *goroutines[Work]) run(mu *sync.Mutex, w Work) {
	if n := len(g.idle); n > 0 {
		next := g.idle[n-1] // the one whose stack is warm
		g.idle = g.idle[:n-1]
		g.parked.Done()
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

// loop is the life of a goroutine that is given its work by next.
func (g *goroutines[Work]) loop(mu *sync.Mutex, next chan Work) {
	for w := range next {
		g.do(w)
		if !g.keep(mu, next) {
			return
		}
	}
	g.parked.Done()
}

// loopOnLargeStack is loop on a stack that stays as large as a call has made it: each
// cycle of the garbage collector halves those of which less than a quarter is in use,
// wherever they wait, and a busy process has many cycles a second.
//
//go:noinline
func (g *goroutines[Work]) loopOnLargeStack(mu *sync.Mutex, next chan Work) {
	var used [callStack / 4]byte
	g.loop(mu, next)
	runtime.KeepAlive(&used)
}

// callStack is what a call through the SDK makes of a stack.
const callStack = 32 << 10

// keep keeps the goroutine of next for later work, unless all have retired.
func (g *goroutines[Work]) keep(mu *sync.Mutex, next chan Work) bool {
	mu.Lock()
	defer mu.Unlock()
	if g.retired {
		return false
	}
	g.idle = append(g.idle, next)
	g.parked.Add(1)
	return true
}

// retire ends the goroutines that are idle, and those that are at work when they have done.
func (g *goroutines[Work]) retire() {
	g.retired = true
	for _, next := range g.idle {
		close(next)
	}
	g.idle = nil
}
