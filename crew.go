package reprise

import (
	"runtime"
	"sync"
)

// crew runs functions in goroutines that it keeps for the next one. A goroutine
// that has made a call through the SDK has grown its stack to several times its
// first size, and to grow it anew for each request and each burst of handlers
// costs more than everything else that is done for a message. run and retire are
// called with the mutex held that run is given.
type crew struct {
	handlers bool // it runs handlers, and nothing is known of the stacks they need
	idle     []*hand
	parked   sync.WaitGroup // counts idle, and those of them that are retiring
	retired  bool
}

// hand is one goroutine of a crew.
type hand struct {
	work chan func() // capacity one; nil retires it
}

// run runs f in a goroutine, without the lock.
func (c *crew) run(mu *sync.Mutex, f func()) {
	if n := len(c.idle); n > 0 {
		h := c.idle[n-1] // the one whose stack is warm
		c.idle = c.idle[:n-1]
		c.parked.Done()
		h.work <- f
		return
	}
	h := &hand{work: make(chan func(), 1)}
	h.work <- f
	if c.handlers {
		go c.labour(mu, h)
	} else {
		go c.labourAtCalls(mu, h)
	}
}

// labour is the life of a hand.
func (c *crew) labour(mu *sync.Mutex, h *hand) {
	for f := <-h.work; f != nil; f = <-h.work {
		f()
		if !c.park(mu, h) {
			return
		}
	}
	c.parked.Done()
}

// labourAtCalls is labour on a stack that stays as large as a call has made it: each
// cycle of the garbage collector halves those of which less than a quarter is in use,
// wherever they wait, and a busy process has many cycles a second.
//
//go:noinline
func (c *crew) labourAtCalls(mu *sync.Mutex, h *hand) {
	var used [callStack / 4]byte
	c.labour(mu, h)
	runtime.KeepAlive(&used)
}

// callStack is what a call through the SDK makes of a stack.
const callStack = 32 << 10

// park takes a hand into the idle ones, unless the crew has retired.
func (c *crew) park(mu *sync.Mutex, h *hand) bool {
	mu.Lock()
	defer mu.Unlock()
	if c.retired {
		return false
	}
	c.idle = append(c.idle, h)
	c.parked.Add(1)
	return true
}

// retire ends the parked hands, and those that are at work when they have done.
func (c *crew) retire() {
	c.retired = true
	for _, h := range c.idle {
		h.work <- nil
	}
	c.idle = nil
}
