package sqsserver

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/bodycache"
	"github.com/reprise-sqs/reprise/internal/engine"
)

// journalWriter writes the changes of a server to its journal. It is the engine's recorder:
// under the server's lock each change is appended to the open group, so that the order of
// the journal is that of the engine. One goroutine, the committer, writes one group after
// the other, without the lock; changes that happen meanwhile go to the next group. A request
// that must not be acknowledged before its change is on disk calls [Server.pendingCommit]
// under the lock, and waits for that group without the lock.
//
// Receives and changes of visibility wait for no group. They are written with the next group
// that a request waits for, or by themselves, without sync, after maxUnawaitedDelay. So a
// crash may lose them: messages then come again earlier, and with a smaller receive count,
// than they should, or stay hidden until the end of an earlier visibility timeout.
type journalWriter struct {
	server  *Server
	journal Journal
	watcher SpaceWatcher // nil: the journal does not watch its space
	bodies  *bodycache.Cache
	reading readers // the receives that read bodies from the journal

	// The fields below are guarded by the server's lock.
	open       *commitGroup // takes the changes
	committing *commitGroup // is being written; nil: none
	unsynced   bool         // the newest group that was taken is written without a sync
	spareBatch *Batch       // of the group written before; nil: in use
	gathering  gathering    // decides when the open group is taken
	running    bool         // the committer
	closing    bool         // the committer is to end when all is written
	err        error        // why the journal accepts no more changes
	sequence   uint64       // of the newest message
	newest     *queue       // of the newest change; spares most lookups
	timer      *time.Timer
	armed      bool // the timer

	key, value []byte // reused

	signal chan struct{} // of one: there is something for the committer to look at
	ended  chan struct{} // closed by the committer when it ends
	failed chan struct{} // closed when err is set
}

const (
	// maxUnawaitedDelay is the maximum delay before unawaited changes are written.
	maxUnawaitedDelay = 100 * time.Millisecond

	// maxGroup is the size of the open group, in bytes, beyond which operations wait until it is
	// written. Otherwise changes would fill the memory while a disk hangs, and on a slow disk
	// each request would wait for the changes of all others.
	maxGroup = 4 << 20

	// maxSpareBatch limits the size of a reused batch, so that one large operation, such as a
	// purge, does not hold its memory for ever.
	maxSpareBatch = 2 * maxGroup
)

func newJournalWriter(s *Server, journal Journal, bodyCache int) *journalWriter {
	w := &journalWriter{
		server: s, journal: journal, bodies: bodycache.New(bodyCache),
		signal: make(chan struct{}, 1), ended: make(chan struct{}), failed: make(chan struct{}),
	}
	w.watcher, _ = journal.(SpaceWatcher)
	w.open = &commitGroup{number: 1, batch: new(Batch)}
	return w
}

// pendingCommit returns the group that must be on disk before the changes made and seen
// under this lock may be acknowledged. It is nil on a server without a journal, and if
// everything is on disk. The lock is held.
func (s *Server) pendingCommit() *commitGroup {
	w := s.writer
	if w == nil {
		return nil
	}
	g := w.open
	if g.empty() && !w.unsynced {
		if g = w.committing; g == nil {
			return nil
		}
	} else {
		g.syncWanted = true // that of an empty group syncs the groups before
		g.waiting++
		if g.waiting == 1 || !w.gathering.expectsMore(g.waiting) {
			w.signalCommitter()
		}
	}
	return g.withDone()
}

// waitForRoom waits while the open group is too large. The lock is held, but not
// while waiting.
func (w *journalWriter) waitForRoom() {
	for w.open.batch.Size() > maxGroup && w.err == nil {
		g := w.open.withDone()
		g.writeNow = true
		w.signalCommitter()
		w.server.mu.Unlock()
		<-g.done
		w.server.mu.Lock()
	}
}

// openBatch returns the batch of the open group, for a change, and starts the timer that has
// it written.
func (w *journalWriter) openBatch() *Batch {
	if !w.armed && w.open.empty() {
		w.armed = true
		if w.timer == nil {
			w.timer = time.AfterFunc(maxUnawaitedDelay, w.commitUnawaited)
		} else {
			w.timer.Reset(maxUnawaitedDelay)
		}
	}
	return w.open.batch
}

// commitUnawaited makes the committer write changes that no request waits for. The timer
// calls it.
func (w *journalWriter) commitUnawaited() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.armed = false
	if !w.open.empty() && !w.open.syncWanted && w.err == nil {
		w.open.writeNow = true
		w.signalCommitter()
	}
}

// signalCommitter makes the committer look at the open group. The lock is held.
func (w *journalWriter) signalCommitter() {
	if !w.running {
		w.running = true
		go w.runCommitter()
		return
	}
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// runCommitter is the committer.
func (w *journalWriter) runCommitter() {
	defer close(w.ended)
	for g := w.nextGroup(); g != nil; g = w.nextGroup() {
		w.finishGroup(g, w.writeGroup(g))
	}
}

// nextGroup waits for the next group to write; nil: there will be none.
func (w *journalWriter) nextGroup() *commitGroup {
	for {
		g, patience, end := w.takeGroup()
		if g != nil || end {
			return g
		}
		var enough <-chan time.Time
		if patience > 0 {
			enough = time.After(patience)
		}
		select {
		case <-w.signal:
		case <-enough:
		}
	}
}

// takeGroup returns the open group if it is to be written now, or how long to wait for more
// changes; 0 means until the next signal.
func (w *journalWriter) takeGroup() (g *commitGroup, patience time.Duration, end bool) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	g = w.open
	switch {
	case w.err != nil:
		return nil, 0, true
	case g.empty() && !g.syncWanted:
		return nil, 0, w.closing
	case g.writeNow || w.closing:
	case !g.syncWanted:
		return nil, 0, false
	default:
		if patience := w.gathering.timeLeft(g.waiting); patience > 0 {
			return nil, patience, false
		}
	}
	if w.spareBatch == nil {
		w.spareBatch = new(Batch)
	}
	w.open = &commitGroup{number: g.number + 1, batch: w.spareBatch}
	w.committing, w.spareBatch = g, nil
	w.value = appendSequence(w.value[:0], w.sequence)
	g.batch.Set([]byte{sequenceKey}, w.value)
	g.syncWanted = g.syncWanted || w.closing
	w.unsynced = !g.syncWanted
	g.begun = time.Now()
	return g, 0, false
}

// writeGroup writes a group to the journal, without the lock.
func (w *journalWriter) writeGroup(g *commitGroup) error {
	var key []byte
	for _, removed := range g.removed {
		for sendNumber := range removed.SendNumbers() {
			key = appendBodyKey(key[:0], sendNumber)
			g.batch.DeleteOnce(key)
			w.bodies.Remove(sendNumber)
		}
	}
	return w.journal.Commit(g.batch, g.syncWanted)
}

func (w *journalWriter) finishGroup(g *commitGroup, err error) {
	if err == nil {
		w.bodies.Committed(g.number)
	}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.committing = nil
	if g.syncWanted {
		w.gathering.begin(time.Since(g.begun), g.waiting+w.open.waiting)
	}
	if err != nil {
		w.fail(fmt.Errorf("write the journal: %w", err))
	}
	g.end(w.err)
	if g.batch.Size() <= maxSpareBatch {
		g.batch.Reset()
		w.spareBatch = g.batch
	}
}

// fail stops the server: what it has acknowledged is on disk, and later changes would not
// be. It logs nothing: the replies report the error, and Failed and Err report it to the
// program. The lock is held.
func (w *journalWriter) fail(err error) {
	if w.err != nil {
		return
	}
	w.err = err
	close(w.failed)
	w.open.end(err)
	w.open = &commitGroup{number: w.open.number + 1, batch: new(Batch)} // no request waits for it
	for _, q := range w.server.byARN {
		w.server.endQueuePolls(q, errStorage(err))
	}
	w.server.announceEmpty()
	w.signalCommitter()
}

// close writes the remaining changes, ends the committer and closes the journal. The lock is
// not held, and the server does not change any more.
func (w *journalWriter) close() error {
	w.server.mu.Lock()
	w.closing = true
	if w.timer != nil {
		w.timer.Stop()
	}
	if !w.open.empty() || w.running {
		w.signalCommitter()
	}
	running := w.running
	w.server.mu.Unlock()
	if running {
		<-w.ended
	}
	w.reading.close()
	if err := w.journal.Close(); err != nil {
		return fmt.Errorf("sqsserver: close the journal: %w", err)
	}
	return nil
}

// The engine's recorder. The server's lock is held.

func (w *journalWriter) Changed(q *engine.Queue, s *engine.State) {
	w.sequence = max(w.sequence, s.Sequence)
	w.key = appendMessageKey(w.key[:0], w.queue(q).id, s.Sequence)
	w.value = appendState(w.value[:0], s)
	w.openBatch().Set(w.key, w.value)
}

func (w *journalWriter) Left(q *engine.Queue, sequence, sendNumber uint64, moved bool) {
	w.key = appendMessageKey(w.key[:0], w.queue(q).id, sequence)
	w.openBatch().Delete(w.key)
	if moved {
		return // its body goes with it
	}
	w.key = appendBodyKey(w.key[:0], sendNumber)
	w.openBatch().DeleteOnce(w.key)
	w.bodies.Remove(sendNumber)
}

func (w *journalWriter) Emptied(q *engine.Queue, messages engine.RemovedMessages) {
	id := w.queue(q).id
	for _, prefix := range []byte{messageKey, acceptanceKey} {
		start := appendQueueKey(nil, prefix, id)
		w.openBatch().DeleteRange(start, following(start))
	}
	if messages.Len() > 0 {
		w.open.removed = append(w.open.removed, messages)
	}
}

func (w *journalWriter) Accepted(q *engine.Queue, a *engine.Acceptance) {
	w.key = appendAcceptanceKey(w.key[:0], w.queue(q).id, a.Sequence)
	w.value = appendAcceptance(w.value[:0], a)
	w.openBatch().Set(w.key, w.value)
}

func (w *journalWriter) Forgotten(q *engine.Queue, sequence uint64) {
	w.key = appendAcceptanceKey(w.key[:0], w.queue(q).id, sequence)
	w.openBatch().Delete(w.key)
}

// queue returns the server's queue of one of the engine.
func (w *journalWriter) queue(q *engine.Queue) *queue {
	if w.newest == nil || w.newest.engine != q {
		w.newest = w.server.byARN[q.Key()]
	}
	return w.newest
}

// The functions below record what the engine does not know. The lock is held.

// recordBody records the content of a message that has just been sent.
func (w *journalWriter) recordBody(sendNumber uint64, c *content) {
	w.key = appendBodyKey(w.key[:0], sendNumber)
	w.value = appendContent(w.value[:0], c)
	w.openBatch().Set(w.key, w.value)
	w.bodies.Add(sendNumber, c, c.size(), w.open.number)
	if cap(w.value) > maxSpareBatch {
		w.value = nil
	}
}

// recordQueue records the names, times, tags and attributes of a queue after a change.
func (s *Server) recordQueue(q *queue) {
	if w := s.writer; w != nil {
		w.openBatch().Set(appendQueueKey(nil, queueKey, q.id), appendQueue(nil, q))
	}
}

// recordMoves records the move tasks of a queue after one of them has changed.
func (s *Server) recordMoves(q *queue) {
	if w := s.writer; w != nil {
		w.openBatch().Set(appendQueueKey(nil, movesKey, q.id), appendMoves(nil, q.moves))
	}
}

// recordDeletion records when a queue was deleted.
func (s *Server) recordDeletion(q *queue, now time.Time) {
	if w := s.writer; w != nil {
		b := w.openBatch()
		b.Delete(appendQueueKey(nil, queueKey, q.id))
		b.Delete(appendQueueKey(nil, movesKey, q.id))
		b.Set(appendNameKey(nil, q.queueName), appendDeletion(nil, now))
	}
}

// forgetDeletion forgets that a queue of that name was deleted, if one was.
func (s *Server) forgetDeletion(name queueName) {
	if _, deleted := s.deleted[name]; !deleted {
		return
	}
	delete(s.deleted, name)
	if w := s.writer; w != nil {
		w.openBatch().Delete(appendNameKey(nil, name))
	}
}
