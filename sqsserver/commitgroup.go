package sqsserver

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// commitGroup is a group of changes that the journal commits together.
type commitGroup struct {
	number  uint64 // of the group, rising
	batch   *Batch
	removed []engine.RemovedMessages // their bodies are deleted; too many to list under the lock

	waiting    int           // requests that wait for its sync
	syncWanted bool          // it is to be synced
	writeNow   bool          // it is to be written now, with or without a sync
	begun      time.Time     // when it began to be written
	done       chan struct{} // closed by the committer; nil: no request waits
	err        error         // to be read once done is closed
}

func (g *commitGroup) empty() bool { return g.batch.Len() == 0 && len(g.removed) == 0 }

func (g *commitGroup) withDone() *commitGroup {
	if g.done == nil {
		g.done = make(chan struct{})
	}
	return g
}

// wait waits until the group is on disk.
func (g *commitGroup) wait(ctx context.Context) error {
	if g == nil {
		return nil
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.err != nil {
		return errStorage(g.err)
	}
	return nil
}

// end wakes the callers that wait for the group. The lock is held.
func (g *commitGroup) end(err error) {
	g.err = err
	if g.done != nil {
		close(g.done)
	}
}

// gathering decides how long the open group stays open for more changes.
//
// Most clients send their next request when they have their reply. If the first of them got
// a group of its own, the others would wait for its sync and then for their own: the clients
// split into two halves that take turns, and each waits for two syncs. Where a sync is long,
// it is shorter to wait for the clients that the last one has answered. With syncs a
// millisecond slower than a fast disk's, throughput rises by half for two or four clients,
// and by a quarter for 16.
type gathering struct {
	expected int       // requests that waited when the last group was written, for it or for this one
	until    time.Time // when to write at the latest; zero: at once
	waited   bool      // a request has been kept waiting
	skip     int       // groups to write without waiting, because no client came in the last wait
}

const (
	// minGatheredSync is the duration of a commit from which the next group is gathered. On faster
	// disks the processor is the bottleneck, and it has work meanwhile.
	minGatheredSync = time.Millisecond

	// usualReturnTime is how long it may take until all clients that were answered at once send
	// their next request, on a busy processor.
	usualReturnTime = 2 * time.Millisecond

	// maxGathering limits the wait: a sync that took seconds says nothing about the next.
	maxGathering = 20 * time.Millisecond

	// skippedAfterEmptyWait is how many groups are written without waiting after a wait in which no
	// client came, so that clients with rare requests wait in every fifth group at most.
	skippedAfterEmptyWait = 4
)

// begin is called when a group has been written and synced, with the time that it took and
// the number of clients that may send their next request now.
func (g *gathering) begin(took time.Duration, expected int) {
	g.expected, g.until, g.waited = expected, time.Time{}, false
	switch {
	case took < minGatheredSync:
	case g.skip > 0:
		g.skip--
	default:
		// Waiting for a whole sync would make clients wait for two again. Clients that pause for a
		// part of one would come too late for most groups anyway.
		g.until = time.Now().Add(min(max(took/2, min(took, usualReturnTime)), maxGathering))
	}
}

// expectsMore reports whether more requests may come, given how many wait.
func (g *gathering) expectsMore(waiting int) bool { return waiting < g.expected && !g.until.IsZero() }

// timeLeft returns how long to keep the group open, given how many wait.
func (g *gathering) timeLeft(waiting int) time.Duration {
	if !g.expectsMore(waiting) {
		return 0
	}
	left := time.Until(g.until)
	switch {
	case left > 0:
		g.waited = true
	case g.waited:
		g.skip = skippedAfterEmptyWait
	}
	return left
}
