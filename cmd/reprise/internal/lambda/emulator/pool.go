package emulator

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// pool is one form of a function and the instances that run it.
type pool struct {
	lambda   *Lambda
	function Function // with its defaults
	counts   *invokeCounts

	mu      sync.Mutex
	active  int           // invokes that instances have
	waiting []*invocation // accepted, until a place is free
	warm    []*instance   // that take invokes, the most recently used last
	retired bool          // instances end as soon as they are idle
	before  *pool         // the form that this pool replaced; nil: none of its invokes runs
}

// newPool returns a pool of f. It replaces before; nil: f is new.
func newPool(l *Lambda, f Function, before *pool) *pool {
	p := &pool{lambda: l, function: f, before: before, counts: new(invokeCounts)}
	if before != nil {
		p.counts = before.counts
	}
	return p
}

// begin accepts inv, or throttles it.
func (p *pool) begin(inv *invocation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	busy := p.busy()
	if reserved := p.function.Concurrency; reserved != 0 && busy >= reserved {
		p.counts.throttled.Add(1)
		return &Error{Status: http.StatusTooManyRequests, Code: "TooManyRequestsException",
			Message: "Rate Exceeded.", Reason: "ReservedFunctionConcurrentInvocationLimitExceeded"}
	}
	p.lambda.invokes.Add(1)
	p.waiting = append(p.waiting, inv)
	p.admit()
	return nil
}

// busy is how many invokes run, in this form of the function and those before it; p.mu
// is held.
func (p *pool) busy() int {
	if p.before == nil {
		return p.active
	}
	p.before.mu.Lock()
	old := p.before.busy()
	p.before.mu.Unlock()
	if old == 0 {
		p.before = nil
	}
	return p.active + old
}

// admit gives places to those that wait for one; p.mu is held. Only invokes of functions without
// reserved concurrency wait: their limit is this machine's, where Lambda would not throttle.
func (p *pool) admit() {
	for len(p.waiting) > 0 && (p.function.Concurrency != 0 || p.active < unreservedLimit) {
		inv := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.active++
		p.place(inv)
	}
}

// place assigns inv to the most recently used instance with room, whose caches are warm, or to a
// new one; p.mu is held.
func (p *pool) place(inv *invocation) {
	for at := len(p.warm) - 1; at >= 0; at-- {
		if i := p.warm[at]; len(i.active) < p.function.PerInstance {
			p.warm = append(slices.Delete(p.warm, at, at+1), i)
			i.assign(inv)
			return
		}
	}
	i := newInstance(p)
	p.warm = append(p.warm, i)
	i.assign(inv)
	p.lambda.running.Go(i.run)
}

// forget removes i from the instances that take invokes; p.mu is held.
func (p *pool) forget(i *instance) {
	p.warm = slices.DeleteFunc(p.warm, func(other *instance) bool { return other == i })
}

// retire ends every instance, busy ones when they have answered.
func (p *pool) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for _, i := range slices.Clone(p.warm) {
		if len(i.active) == 0 {
			p.end(i)
		}
	}
}

// rest decides whether i, which is idle, is kept; p.mu is held.
func (p *pool) rest(i *instance) {
	if p.retired || i.ending {
		p.end(i)
		return
	}
	i.idle = time.AfterFunc(p.lambda.cfg.IdleTimeout, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(i.active) == 0 {
			p.end(i)
		}
	})
}

// end kills i, which takes no more invokes; p.mu is held.
func (p *pool) end(i *instance) {
	p.forget(i)
	i.kill()
}

// finish returns inv, which has its result and has freed its place, to its caller.
func (p *pool) finish(inv *invocation) {
	inv.result.RequestID = inv.id
	inv.result.Log = inv.tail
	p.counts.ended(inv)
	close(inv.done)
	p.lambda.invokes.Done()
}
