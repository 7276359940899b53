package sqsserver

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// commitGroup is a list of changes that become durable together.
type commitGroup struct {
	number  uint64 // of the group, rising
	batch   *Batch
	removed []engine.RemovedMessages // whose bodies go, too many to list them under the lock

	waiting    int           // so many wait until it is synced
	syncWanted bool          // it is to be synced
	writeNow   bool          // it is to be written now, whether synced or not
	begun      time.Time     // when it began to be written
	done       chan struct{} // closed by the committer; nil: nobody waits
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

// end tells those who wait for the group how it ended. The lock is held.
func (g *commitGroup) end(err error) {
	g.err = err
	if g.done != nil {
		close(g.done)
	}
}

// gathering decides how long the open group is kept open for more to come.
//
// Clients mostly ask again when they are answered. If the first of them had the
// group to itself, the others would wait for its sync and then for their own: two
// parties come about that take turns, and everybody waits for two syncs. Where a
// sync is long, it is shorter to wait for those whom the last one has set free.
// With syncs a millisecond slower than a fast disk's, two or four clients are served
// half as fast again, and 16 by a quarter.
type gathering struct {
	expected int       // who waited when the last group was written, for that or for this one
	until    time.Time // when to write at the latest; zero: at once
	waited   bool      // somebody has been kept waiting
	skip     int       // groups to write at once, since waiting for one was in vain
}

const (
	// worthGathering is how long writing a group takes where the next is gathered. On
	// faster disks the processor is what is short, and it has work meanwhile.
	minGatheredSync = time.Millisecond

	// usualReturn is how long it may take until all have come who are answered at once:
	// the server's and their own work on a full processor.
	usualReturnTime = 2 * time.Millisecond

	// longestGathering is how long is waited at most: what held the last sync up for
	// seconds need not hold up the next.
	maxGathering = 20 * time.Millisecond

	// afterVain is how many groups are written at once after one for which nobody came:
	// those who ask now and then then wait for others with every fifth group at most.
	skippedAfterVain = 4
)

// begin is called when a group was written and synced, in so much time, and so many
// may come now.
func (g *gathering) begin(took time.Duration, expected int) {
	g.expected, g.until, g.waited = expected, time.Time{}, false
	switch {
	case took < minGatheredSync:
	case g.skip > 0:
		g.skip--
	default:
		// To wait for a whole sync is to wait for two again. Those who think for a part of
		// one would come too late for most groups.
		g.until = time.Now().Add(min(max(took/2, min(took, usualReturnTime)), maxGathering))
	}
}

// expectsMore reports whether some may come yet where so many wait.
func (g *gathering) expectsMore(waiting int) bool { return waiting < g.expected && !g.until.IsZero() }

// timeLeft is how long to keep the group open for which so many wait.
func (g *gathering) timeLeft(waiting int) time.Duration {
	if !g.expectsMore(waiting) {
		return 0
	}
	left := time.Until(g.until)
	switch {
	case left > 0:
		g.waited = true
	case g.waited:
		g.skip = skippedAfterVain
	}
	return left
}
