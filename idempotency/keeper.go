package idempotency

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// keeper extends the claims of running handlers, in batches and by one timer. After a handler's
// context has ended its claim is not extended any more: the handler has been told to stop, and has
// the rest of the lease to do so. So a claim is kept no longer than its message.
type keeper struct {
	lease, timeout time.Duration
	extend         func(context.Context, []Extension) ([]bool, error)
	problem        func(error) // called for trips that failed

	mu    sync.Mutex
	held  map[*run]struct{}
	timer *time.Timer
	armed bool // the timer will fire
}

// margin is the part of a lease that is not trusted: our clock may run slower than the store's, or
// the store's may be adjusted.
func (k *keeper) margin() time.Duration { return k.lease / 10 }

// begin notes that r's lease began no earlier than then. The caller holds k.mu.
func (k *keeper) begin(r *run, then time.Time) {
	r.expires = then.Add(k.lease - k.margin())
	r.renewAt = then.Add(k.lease / 2)
}

// add keeps r's claim, which was requested at then.
func (k *keeper) add(r *run, then time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = make(map[*run]struct{})
	}
	k.begin(r, then)
	k.held[r] = struct{}{}
	if !k.armed { // an armed timer fires in time, because all leases have the same length
		k.arm(r.renewAt)
	}
}

// remove stops keeping r's claim. It leaves the timer: setting it for each message would cost more
// than letting it fire in vain once per lease. It returns the trip under way that extends the claim;
// nil if there is none.
func (k *keeper) remove(r *run) (trip <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, r)
	return r.trip
}

// letGo stops keeping r's claim before it is released. It waits for a trip that extends the claim: if
// that came to the store after the release, it would begin a lease that nobody has.
func (k *keeper) letGo(r *run) {
	if trip := k.remove(r); trip != nil {
		<-trip
	}
}

// arm sets the timer. The caller holds k.mu.
func (k *keeper) arm(at time.Time) {
	k.armed = true
	wait := time.Until(at)
	if k.timer == nil {
		k.timer = time.AfterFunc(wait, k.look)
		return
	}
	k.timer.Reset(wait)
}

// look is called by the timer: it extends the claims that are due.
func (k *keeper) look() {
	defer k.lookAgain() // also if the store ends this goroutine
	now := time.Now()
	k.mu.Lock()
	due, ended := k.due(now)
	k.mu.Unlock()
	for _, r := range ended {
		r.cancel(ErrLost)
	}
	for batch := range slices.Chunk(due, maxTrip) {
		k.renew(batch)
	}
}

// lookAgain sets the timer if claims are held.
func (k *keeper) lookAgain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed = false
	if next := k.next(); !next.IsZero() {
		k.arm(next)
	}
}

// due returns the claims to extend now, including those that will be due within a tenth of a lease,
// so that they share trips. It removes those whose lease has ended. The caller holds k.mu.
func (k *keeper) due(now time.Time) (due, ended []*run) {
	horizon := now.Add(k.lease / 10)
	for r := range k.held {
		switch {
		case !r.expires.After(now):
			delete(k.held, r)
			ended = append(ended, r)
		case r.ctx.Err() == nil && !r.renewAt.After(horizon):
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *run) int { return strings.Compare(a.claim.Key, b.claim.Key) })
	return due, ended
}

// next is when to look again: zero if no claim is held. The caller holds k.mu.
func (k *keeper) next() (next time.Time) {
	for r := range k.held {
		at := r.expires
		if r.ctx.Err() == nil && r.renewAt.Before(at) {
			at = r.renewAt
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// renew extends the claims of a batch in one trip. The trip ends before the first of these leases,
// because its handler must be told in time.
func (k *keeper) renew(batch []*run) {
	asked := time.Now()
	limit := min(k.timeout, k.lease/5)
	ended := make(chan struct{})
	defer close(ended)
	k.mu.Lock()
	batch = slices.DeleteFunc(batch, func(r *run) bool { _, held := k.held[r]; return !held })
	extensions := make([]Extension, len(batch))
	for i, r := range batch {
		extensions[i] = Extension{Claim: r.claim, Lease: k.lease}
		limit = min(limit, r.expires.Sub(asked))
		r.trip = ended
	}
	k.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	held, err := []bool(nil), errGoexit
	defer func() { k.renewed(batch, asked, held, err) }()
	if held, err = trip(limit, k.extend, extensions); err != nil {
		k.problem(err)
	}
}

// renewed notes the result of a trip that was made at asked to extend the claims of a batch.
func (k *keeper) renewed(batch []*run, asked time.Time, held []bool, err error) {
	var lost []*run
	k.mu.Lock()
	for i, r := range batch {
		_, present := k.held[r]
		r.trip = nil
		switch {
		case !present: // its handler has ended meanwhile
		case err != nil:
			r.renewAt = time.Now().Add(k.lease / 10)
		case held[i]:
			k.begin(r, asked)
		default:
			delete(k.held, r)
			lost = append(lost, r)
		}
	}
	k.mu.Unlock()
	for _, r := range lost {
		r.cancel(ErrLost)
	}
}
