// Package journal keeps what the server has acknowledged in a directory, with
// Pebble: its write-ahead log is the journal, its tables hold what has been there
// for longer.
//
// The package promises what a sqsserver.Journal must, whatever the disk does:
//
//   - What Commit returned nil for, with sync, is there after any crash.
//   - Batches are atomic, and a crash keeps a prefix of them.
//   - The first write or sync that fails is the last that happens. Nothing is
//     acknowledged after it, and what is on the disk is what a crash at that moment
//     would have left: see guard.
//   - Damaged files are reported, by name; no part of them is served.
package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Options say where a journal is and how it is kept.
type Options struct {
	// Dir is the directory of the journal, which has it to itself. It is made if
	// there is none.
	Dir string

	// SyncInterval, if positive, lets Commit return before the disk has synced, and
	// syncs so long after at the latest: a crash of the process or of the machine
	// then loses what was acknowledged in the last interval, never more, and never
	// something from the middle. Default: 0, every synced Commit waits for the disk.
	SyncInterval time.Duration

	// CacheBytes bounds the memory for blocks read from tables. It holds the index
	// of what is on disk rather than bodies, of which the server has its own cache.
	// Default: 32 MiB.
	CacheBytes int64

	// MinFree is the free space of the disk in bytes below which LowOnSpace reports
	// true. What is left is for deletes and for the reorganisation that gives space
	// back, so it should not be below 256 MiB on a busy server. Default: 512 MiB.
	// Negative: LowOnSpace always reports false.
	MinFree int64

	// ReadOnly opens what is there and changes nothing: Commit fails.
	ReadOnly bool

	// Logger gets what an operator should know. Default: nobody does.
	Logger *slog.Logger

	// FS is the file system. Default: the machine's.
	FS vfs.FS
}

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("journal: Dir is empty: name the directory of the journal")
	}
	if o.SyncInterval < 0 {
		return o, fmt.Errorf("journal: SyncInterval is %v: use 0 to sync always, or a positive interval", o.SyncInterval)
	}
	if o.CacheBytes < 0 {
		return o, fmt.Errorf("journal: CacheBytes is %d: use 0 for the default, or a positive size", o.CacheBytes)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 32 << 20
	}
	if o.MinFree == 0 {
		o.MinFree = 512 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	return o, nil
}

// Journal is a journal in a directory: a sqsserver.Journal and
// sqsserver.SpaceWatcher.
type Journal struct {
	options Options
	lock    *pebble.Lock
	guard   *guard
	db      *pebble.DB
	space   space

	// Commit hands its batch to the committer and waits for it or for a failure:
	// Pebble, once its flushes fail, never returns from a write that waits for them.
	writes    chan write
	committed chan error    // one answer for each write
	committer chan struct{} // closed when the committer ended

	lateSync lateSync
}

var (
	_ sqsserver.Journal      = (*Journal)(nil)
	_ sqsserver.SpaceWatcher = (*Journal)(nil)
)

// write is a batch for the committer.
type write struct {
	batch *pebble.Batch
	sync  bool
}

// Open opens the journal in o.Dir, or starts one there. It fails if another
// process has it open, if another version wrote it, if anything else is in the
// directory, and if a file that it must read is damaged; the error says which, and
// what to do.
func Open(o Options) (*Journal, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(o)
	if err != nil {
		return nil, err
	}
	j := &Journal{
		options:   o,
		lock:      lock,
		guard:     newGuard(o.FS, o.Dir, o.Logger),
		writes:    make(chan write),
		committed: make(chan error, 1),
		committer: make(chan struct{}),
	}
	if err := j.open(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	j.space.init(o)
	j.lateSync.init(o.SyncInterval, j.syncNow)
	go j.runCommitter()
	return j, nil
}

func (j *Journal) open() error {
	if err := checkFormat(j.options); err != nil {
		return err
	}
	db, err := openPebble(j.options, j.guard, j.lock)
	if err != nil {
		return describe(j.options.Dir, err)
	}
	if err := j.guard.failure(); err != nil { // it was said to Fatalf only
		return errors.Join(err, db.Close())
	}
	j.db = db
	return nil
}

// Commit applies the batch. An error is final: every later Commit returns it too.
func (j *Journal) Commit(b *sqsserver.Batch, sync bool) error {
	if err := j.guard.failure(); err != nil {
		return err
	}
	if j.options.ReadOnly {
		return fmt.Errorf("journal %s: opened to be read only", j.options.Dir)
	}
	if b.Len() == 0 && !sync {
		return nil
	}
	batch, err := j.pebbleBatch(b)
	if err != nil {
		return j.guard.fail(err)
	}
	if j.options.SyncInterval > 0 {
		sync = false
	}
	j.writes <- write{batch: batch, sync: sync}
	select {
	case err := <-j.committed:
		if err != nil {
			return j.guard.fail(err)
		}
	case <-j.guard.failed:
	}
	// Pebble reports a failed log to Fatalf, and then returns nil.
	if err := j.guard.failure(); err != nil {
		return err
	}
	j.lateSync.schedule()
	return nil
}

// pebbleBatch returns b as Pebble has it.
func (j *Journal) pebbleBatch(b *sqsserver.Batch) (*pebble.Batch, error) {
	batch := j.db.NewBatchWithSize(b.Size() + pebbleBatchOverhead*(b.Len()+1))
	var failed error
	b.Each(func(op sqsserver.BatchOp, key, value []byte) {
		var err error
		switch op {
		case sqsserver.BatchSet:
			err = batch.Set(key, value, nil)
		case sqsserver.BatchDelete:
			err = batch.Delete(key, nil)
		case sqsserver.BatchDeleteRange:
			err = batch.DeleteRange(key, value, nil)
		default:
			err = fmt.Errorf("a batch has a change of the unknown kind %d", op)
		}
		failed = errors.Join(failed, err)
	})
	if batch.Empty() { // a sync of what was committed without
		failed = errors.Join(failed, batch.LogData(nil, nil))
	}
	return batch, failed
}

func (j *Journal) runCommitter() {
	defer close(j.committer)
	for w := range j.writes {
		option := pebble.NoSync
		if w.sync {
			option = pebble.Sync
		}
		err := j.db.Apply(w.batch, option)
		j.committed <- errors.Join(err, w.batch.Close())
	}
}

// syncNow makes durable whatever was committed.
func (j *Journal) syncNow() {
	if err := j.db.LogData(nil, pebble.Sync); err != nil {
		_ = j.guard.fail(err) // the next Commit returns it
	}
}

// Get appends the value of key to dst.
func (j *Journal) Get(dst, key []byte) ([]byte, error) {
	value, closer, err := j.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, fmt.Errorf("journal %s: key %q: %w", j.options.Dir, key, sqsserver.ErrNotInJournal)
	}
	if err != nil {
		return dst, fmt.Errorf("reading key %q: %w", key, describe(j.options.Dir, err))
	}
	dst = append(dst, value...)
	return dst, closer.Close()
}

// Scan calls f for every key that begins with prefix.
func (j *Journal) Scan(prefix []byte, f func(key, value []byte) error) (err error) {
	iter, err := j.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return describe(j.options.Dir, err)
	}
	defer func() {
		if closeErr := iter.Close(); err == nil && closeErr != nil {
			err = describe(j.options.Dir, closeErr)
		}
	}()
	for iter.First(); iter.Valid(); iter.Next() {
		value, err := iter.ValueAndErr()
		if err != nil {
			return fmt.Errorf("reading key %q: %w", iter.Key(), describe(j.options.Dir, err))
		}
		if err := f(iter.Key(), value); err != nil {
			return err
		}
	}
	return nil // Close reports what ended the iteration early
}

// after returns the first key beyond those that begin with prefix, nil if there
// is none.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}

// LowOnSpace reports whether less than Options.MinFree of the disk is free.
func (j *Journal) LowOnSpace() bool { return j.space.low() }

// Close makes durable what was committed, closes the files and gives the
// directory free. After a failure it returns that failure.
func (j *Journal) Close() error {
	j.lateSync.stop()
	close(j.writes)
	if j.guard.failure() != nil {
		// A write that waits for a flush that cannot succeed never ends, and neither
		// would closing Pebble under it: it is left behind. It can do no harm, for
		// the guard lets nothing reach the disk any more.
		select {
		case <-j.committer:
		case <-time.After(time.Second):
			return errors.Join(j.guard.failure(), j.lock.Close())
		}
	}
	<-j.committer
	if !j.options.ReadOnly && j.guard.failure() == nil {
		// What is in tables has a checksum that covers all of it, and opening does not
		// have to replay it.
		if err := j.db.Flush(); err != nil {
			_ = j.guard.fail(err)
		}
	}
	failure := j.guard.failure()
	closeErr := j.db.Close()
	if failure == nil && closeErr != nil {
		failure = describe(j.options.Dir, closeErr)
	}
	return errors.Join(failure, j.lock.Close())
}

// lateSync syncs at most an interval after something was committed. It has a timer
// only while there is something to sync.
type lateSync struct {
	interval time.Duration
	sync     func()

	dirty atomic.Bool
	mu    sync.Mutex // held during a sync
	ended bool
}

func (l *lateSync) init(interval time.Duration, sync func()) {
	l.interval, l.sync = interval, sync
}

// schedule has what was just committed synced in time.
func (l *lateSync) schedule() {
	if l.interval > 0 && !l.dirty.Swap(true) {
		time.AfterFunc(l.interval, l.run)
	}
}

func (l *lateSync) run() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.dirty.Store(false) // before the sync: what is committed from now on may miss it
	l.sync()
}

// stop waits for a sync that runs, and lets no other begin.
func (l *lateSync) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
