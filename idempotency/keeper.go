package idempotency

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// keeper extends the claims of running handlers, in batches and by one timer. A
// claim whose handler's context has ended is not extended any more: the handler
// has been told to stop, and has the rest of the lease to do so. So a claim is kept
// for no longer than its message.
type keeper struct {
	lease, timeout time.Duration
	extend         func(context.Context, []Extension) ([]bool, error)
	problem        func(error) // told of trips that failed

	mu    sync.Mutex
	held  map[*run]struct{}
	timer *time.Timer
	armed bool // the timer will fire
}

// margin is the part of a lease that is not trusted: our clock may run slower than
// the store's, or that one may be set.
func (k *keeper) margin() time.Duration { return k.lease / 10 }

// begin notes that r's lease began no earlier than then. The caller holds k.mu.
func (k *keeper) begin(r *run, then time.Time) {
	r.expires = then.Add(k.lease - k.margin())
	r.renewAt = then.Add(k.lease / 2)
}

// add keeps r's claim, which was asked for then.
func (k *keeper) add(r *run, then time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = make(map[*run]struct{})
	}
	k.begin(r, then)
	k.held[r] = struct{}{}
	if !k.armed { // otherwise it fires in time: every lease is as long
		k.arm(r.renewAt)
	}
}

// remove ends the keeping of r's claim. The timer is left: setting it for each
// message would cost more than letting it fire for nothing once a lease.
func (k *keeper) remove(r *run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, r)
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

// look is called by the timer: it extends what is due.
func (k *keeper) look() {
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
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed = false
	if next := k.next(); !next.IsZero() {
		k.arm(next)
	}
}

// due returns the claims to extend now, those that would be due within a tenth of
// a lease included, so that they share trips; and takes out those whose lease has
// ended. The caller holds k.mu.
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

// next is when to look again: zero if nothing is held. The caller holds k.mu.
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

// renew extends the claims of a batch in one trip. It ends before the first of
// them, whose handler must be told.
func (k *keeper) renew(batch []*run) {
	asked := time.Now()
	limit := min(k.timeout, k.lease/5)
	k.mu.Lock()
	extensions := make([]Extension, len(batch))
	for i, r := range batch {
		extensions[i] = Extension{Claim: r.claim, Lease: k.lease}
		limit = min(limit, r.expires.Sub(asked))
	}
	k.mu.Unlock()
	held, err := trip(limit, k.extend, extensions)
	if err != nil {
		k.problem(err)
	}

	var lost []*run
	k.mu.Lock()
	for i, r := range batch {
		_, present := k.held[r]
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
