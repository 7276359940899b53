package sqsserver

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/bodycache"
	"github.com/reprise-sqs/reprise/internal/engine"
)

// keeper writes what changes on a server to its journal. It is the engine's
// recorder: under the server's lock each change is appended to the open group,
// so that the order of the journal is that of the engine. One goroutine, the
// committer, writes one group after the other, without the lock; what changes
// meanwhile goes to the next group. Whoever must not acknowledge a change before
// it is on disk asks for a [Server.promise] under the lock and waits for it
// without.
//
// Receives and changes of visibility ask for none. They are written with the
// next group that somebody waits for, or by themselves, without sync, after
// unhurried. A crash may so lose them: messages come again earlier, and with a
// smaller receive count, than they should, or stay hidden for the lease they had
// before it was cut short.
type keeper struct {
	server  *Server
	journal Journal
	watcher SpaceWatcher // nil: the journal is none
	bodies  *bodycache.Cache
	reading gate // of who reads bodies from the journal

	// What follows is guarded by the server's lock.
	open       *group    // takes the changes
	committing *group    // is being written; nil: none
	spare      *Batch    // of the group written before; nil: in use
	gathering  gathering // decides when the open group is taken
	running    bool      // the committer
	closing    bool      // the committer is to end when all is written
	err        error     // why nothing can be kept any more
	sequence   uint64    // of the newest message
	newest     *queue    // of the newest change; spares most lookups
	timer      *time.Timer
	armed      bool // the timer

	key, value []byte // reused

	signal chan struct{} // of one: there is something for the committer to look at
	ended  chan struct{} // closed by the committer when it ends
	failed chan struct{} // closed when err is set
}

const (
	// unhurried is how long a change waits that nobody waits for.
	unhurried = 100 * time.Millisecond

	// maxGroup is the size of a group, in bytes, beyond which operations wait for it
	// to be written: with a disk that hangs they would fill the memory, and with a slow
	// one all of them would wait for what all of them write.
	maxGroup = 4 << 20

	// maxSpare keeps a batch that was once larger than one operation can make it, as
	// by a purge, from holding its memory.
	maxSpare = 2 * maxGroup
)

func newKeeper(s *Server, journal Journal, bodyCache int) *keeper {
	k := &keeper{
		server: s, journal: journal, bodies: bodycache.New(bodyCache),
		signal: make(chan struct{}, 1), ended: make(chan struct{}), failed: make(chan struct{}),
	}
	k.watcher, _ = journal.(SpaceWatcher)
	k.open = &group{number: 1, batch: new(Batch)}
	return k
}

// promise returns the group to wait for before what happened in this hold, and
// whatever it has seen of earlier ones, is acknowledged. It is nil on a server
// without a journal, and where everything is on disk. The lock is held.
func (s *Server) promise() *group {
	k := s.keeper
	if k == nil {
		return nil
	}
	g := k.open
	if g.empty() {
		if g = k.committing; g == nil {
			return nil
		}
	} else {
		g.wanted = true
		g.waiting++
		if g.waiting == 1 || !k.gathering.lacks(g.waiting) {
			k.rouse()
		}
	}
	return g.awaited()
}

// makeRoom waits while the open group is too large. The lock is held, but not
// while waiting.
func (k *keeper) makeRoom() {
	for k.open.batch.Size() > maxGroup && k.err == nil {
		g := k.open.awaited()
		g.due = true
		k.rouse()
		k.server.mu.Unlock()
		<-g.done
		k.server.mu.Lock()
	}
}

// changes returns the batch of the open group, to add to, and sees to it that it
// is written some time.
func (k *keeper) changes() *Batch {
	if !k.armed && k.open.empty() {
		k.armed = true
		if k.timer == nil {
			k.timer = time.AfterFunc(unhurried, k.hurry)
		} else {
			k.timer.Reset(unhurried)
		}
	}
	return k.open.batch
}

// hurry has the committer write what nobody waits for. The timer runs it.
func (k *keeper) hurry() {
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	k.armed = false
	if !k.open.empty() && !k.open.wanted && k.err == nil {
		k.open.due = true
		k.rouse()
	}
}

// rouse makes the committer look at the open group. The lock is held.
func (k *keeper) rouse() {
	if !k.running {
		k.running = true
		go k.commit()
		return
	}
	select {
	case k.signal <- struct{}{}:
	default:
	}
}

// commit is the committer.
func (k *keeper) commit() {
	defer close(k.ended)
	for g := k.next(); g != nil; g = k.next() {
		k.finish(g, k.write(g))
	}
}

// next waits for the next group to write; nil: there will be none.
func (k *keeper) next() *group {
	for {
		g, patience, end := k.take()
		if g != nil || end {
			return g
		}
		var enough <-chan time.Time
		if patience > 0 {
			enough = time.After(patience)
		}
		select {
		case <-k.signal:
		case <-enough:
		}
	}
}

// take returns the open group if it is to be written, or how long to be patient with
// it; 0: until there is a signal.
func (k *keeper) take() (g *group, patience time.Duration, end bool) {
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	g = k.open
	switch {
	case k.err != nil:
		return nil, 0, true
	case g.empty():
		return nil, 0, k.closing
	case g.due || k.closing:
	case !g.wanted:
		return nil, 0, false
	default:
		if patience := k.gathering.left(g.waiting); patience > 0 {
			return nil, patience, false
		}
	}
	if k.spare == nil {
		k.spare = new(Batch)
	}
	k.open = &group{number: g.number + 1, batch: k.spare}
	k.committing, k.spare = g, nil
	k.value = appendSequence(k.value[:0], k.sequence)
	g.batch.Set([]byte{sequenceKey}, k.value)
	g.wanted = g.wanted || k.closing
	g.begun = time.Now()
	return g, 0, false
}

// write writes a group to the journal, without the lock.
func (k *keeper) write(g *group) error {
	var key []byte
	for _, remains := range g.remains {
		for origin := range remains.Origins() {
			key = appendBodyKey(key[:0], origin)
			g.batch.DeleteOnce(key)
			k.bodies.Remove(origin)
		}
	}
	return k.journal.Commit(g.batch, g.wanted)
}

func (k *keeper) finish(g *group, err error) {
	if err == nil {
		k.bodies.Committed(g.number)
	}
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	k.committing = nil
	if g.wanted {
		k.gathering.begin(time.Since(g.begun), g.waiting+k.open.waiting)
	}
	if err != nil {
		k.fail(fmt.Errorf("write the journal: %w", err))
	}
	g.end(k.err)
	if g.batch.Size() <= maxSpare {
		g.batch.Reset()
		k.spare = g.batch
	}
}

// fail stops the server: what it has acknowledged is on disk, and what it could
// acknowledge from now on would not be. It logs nothing, for the replies say it, and
// to the program Failed and Err do. The lock is held.
func (k *keeper) fail(err error) {
	if k.err != nil {
		return
	}
	k.err = err
	close(k.failed)
	k.open.end(err)
	k.open = &group{number: k.open.number + 1, batch: new(Batch)} // nobody waits for it
	for _, q := range k.server.byARN {
		k.server.dismiss(q, errStorage(err))
	}
	k.rouse()
}

// close writes what is left and ends the committer, and closes the journal. The
// lock is not held, and nobody changes the server any more.
func (k *keeper) close() error {
	k.server.mu.Lock()
	k.closing = true
	if k.timer != nil {
		k.timer.Stop()
	}
	if !k.open.empty() || k.running {
		k.rouse()
	}
	running := k.running
	k.server.mu.Unlock()
	if running {
		<-k.ended
	}
	k.reading.close()
	if err := k.journal.Close(); err != nil {
		return fmt.Errorf("sqsserver: close the journal: %w", err)
	}
	return nil
}

// The engine's recorder. The server's lock is held.

func (k *keeper) Changed(q *engine.Queue, s *engine.State) {
	k.sequence = max(k.sequence, s.Sequence)
	k.key = appendMessageKey(k.key[:0], k.queue(q).id, s.Sequence)
	k.value = appendState(k.value[:0], s)
	k.changes().Set(k.key, k.value)
}

func (k *keeper) Left(q *engine.Queue, sequence, origin uint64, moved bool) {
	k.key = appendMessageKey(k.key[:0], k.queue(q).id, sequence)
	k.changes().Delete(k.key)
	if moved {
		return // and takes its body along
	}
	k.key = appendBodyKey(k.key[:0], origin)
	k.changes().DeleteOnce(k.key)
	k.bodies.Remove(origin)
}

func (k *keeper) Emptied(q *engine.Queue, messages engine.Remains) {
	id := k.queue(q).id
	for _, prefix := range []byte{messageKey, acceptanceKey} {
		start := appendQueueKey(nil, prefix, id)
		k.changes().DeleteRange(start, following(start))
	}
	if messages.Len() > 0 {
		k.open.remains = append(k.open.remains, messages)
	}
}

func (k *keeper) Accepted(q *engine.Queue, a *engine.Acceptance) {
	k.key = appendAcceptanceKey(k.key[:0], k.queue(q).id, a.Sequence)
	k.value = appendAcceptance(k.value[:0], a)
	k.changes().Set(k.key, k.value)
}

func (k *keeper) Forgotten(q *engine.Queue, sequence uint64) {
	k.key = appendAcceptanceKey(k.key[:0], k.queue(q).id, sequence)
	k.changes().Delete(k.key)
}

// queue returns the server's queue of one of the engine.
func (k *keeper) queue(q *engine.Queue) *queue {
	if k.newest == nil || k.newest.engine != q {
		k.newest = k.server.byARN[q.Key()]
	}
	return k.newest
}

// What the engine does not know. The lock is held.

// keepBody keeps the content of a message that has just been sent.
func (k *keeper) keepBody(origin uint64, c *content) {
	k.key = appendBodyKey(k.key[:0], origin)
	k.value = appendContent(k.value[:0], c)
	k.changes().Set(k.key, k.value)
	k.bodies.Add(origin, c, c.size(), k.open.number)
	if cap(k.value) > maxSpare {
		k.value = nil
	}
}

// keepQueue keeps what the server knows of a queue beside its messages, after it
// has changed.
func (s *Server) keepQueue(q *queue) {
	if k := s.keeper; k != nil {
		k.changes().Set(appendQueueKey(nil, queueKey, q.id), appendQueue(nil, q))
	}
}

// keepMoves keeps the move tasks of a queue, after one of them has changed.
func (s *Server) keepMoves(q *queue) {
	if k := s.keeper; k != nil {
		k.changes().Set(appendQueueKey(nil, movesKey, q.id), appendMoves(nil, q.moves))
	}
}

// keepDeletion keeps that a queue was deleted, and when.
func (s *Server) keepDeletion(q *queue, now time.Time) {
	if k := s.keeper; k != nil {
		b := k.changes()
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
	if k := s.keeper; k != nil {
		k.changes().Delete(appendNameKey(nil, name))
	}
}
