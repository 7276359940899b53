// Package journal keeps what the server has acknowledged in a directory, with Pebble: new records
// go to Pebble's write-ahead log, older ones to its tables.
//
// The package keeps the promises of a sqsserver.Journal, whatever the disk does:
//
//   - A batch for which Commit returned nil, with sync, survives any crash.
//   - Batches are atomic, and a crash can lose the latest of them only.
//   - After the first write or sync that fails nothing is written or acknowledged, and the
//     disk is as a crash at that moment would have left it: see guard.
//   - Damaged and missing files are reported by name; nothing is read from them.
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

// Options are the settings of a journal.
type Options struct {
	// Dir is the directory of the journal, which must contain nothing else. It is made if it does
	// not exist.
	Dir string

	// SyncInterval, if positive, lets Commit return before the disk has synced; the sync follows
	// within this interval. A crash of the process or the machine then loses what was
	// acknowledged in the last interval, and nothing before that. Default: 0, every synced Commit
	// waits for the disk.
	SyncInterval time.Duration

	// CacheBytes bounds the memory for blocks read from files: the index of the records on disk,
	// and bodies that are not in the server's own cache. Default: 32 MiB.
	CacheBytes int64

	// MinFree is the free space of the disk in bytes below which LowOnSpace reports true.
	// Deletes, and the compactions that free space, need the rest: at least 256 MiB on a busy
	// server. Default: 512 MiB. Negative: LowOnSpace always reports false.
	MinFree int64

	// ReadOnly opens an existing journal and changes nothing: Commit fails.
	ReadOnly bool

	// Existing makes Open fail if there is no journal; otherwise it starts one.
	Existing bool

	// Logger gets what an operator should know. Default: nothing is logged.
	Logger *slog.Logger

	// FS is the file system. Default: Disk.
	FS vfs.FS

	memTable int64 // default: memTableSize
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
	if o.memTable == 0 {
		o.memTable = memTableSize
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = Disk
	}
	return o, nil
}

// Journal is a journal in a directory: a sqsserver.Journal and
// sqsserver.SpaceWatcher.
type Journal struct {
	options  Options
	lock     *pebble.Lock
	guard    *guard
	db       *pebble.DB
	space    space
	lateSync lateSync
	frontier frontier

	commits sync.Mutex // one Commit at a time
	stamp   stamp      // of the last batch; of Commit alone
}

var (
	_ sqsserver.Journal      = (*Journal)(nil)
	_ sqsserver.SpaceWatcher = (*Journal)(nil)
	_ sqsserver.RoomChecker  = (*Journal)(nil)
)

// Open opens the journal in o.Dir, or starts one there. It fails if another process has it open,
// if another version wrote it, if the directory contains anything else, and if a file that it
// must read is damaged or missing; the error names the file and the remedy.
func Open(o Options) (*Journal, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(o)
	if err != nil {
		return nil, err
	}
	if err := tighten(o); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	j := &Journal{options: o, lock: lock, guard: newGuard(o.FS, o.Dir)}
	if err := j.open(); err != nil {
		return nil, errors.Join(err, j.unlock())
	}
	j.space.init(o, func(err error) { _ = j.guard.fail(err) }, j.reclaim)
	j.lateSync.init(o.SyncInterval, j.syncNow)
	return j, nil
}

func (j *Journal) open() error {
	if err := checkFormat(j.options); err != nil {
		return err
	}
	logs, err := checkLogs(j.options.FS, j.options.Dir)
	if err != nil {
		return describe(j.options.Dir, err)
	}
	if err := checkNumbers(j.options.FS, j.options.Dir); err != nil {
		return describe(j.options.Dir, err)
	}
	synced, err := checkSynced(j.options.FS, j.options.Dir, logs)
	if err != nil {
		return describe(j.options.Dir, err)
	}
	j.guard.resume(logs, synced)
	if err := checkLogTail(j.options.FS, j.options.Dir, j.options.Logger); err != nil {
		return describe(j.options.Dir, err)
	}
	return j.guard.await(func() (err error) {
		j.db, err = pebble.Open(j.options.Dir, pebbleOptions(j.options, j.guard, j.lock, &j.frontier))
		return openError(err)
	})
}

// Commit applies the batch. An error is final: every later Commit returns it too.
// Goroutines that call it at the same time wait for each other.
func (j *Journal) Commit(b *sqsserver.Batch, sync bool) error {
	j.commits.Lock()
	defer j.commits.Unlock()
	if j.options.ReadOnly {
		return fmt.Errorf("journal %s: opened to be read only", j.options.Dir)
	}
	if b.Len() == 0 && !sync {
		return j.guard.failure()
	}
	batch, err := j.pebbleBatch(b)
	if err != nil {
		return j.guard.fail(err)
	}
	option := pebble.NoSync
	if sync && j.options.SyncInterval == 0 {
		option = pebble.Sync
	}
	err = j.guard.await(func() error {
		if err := errors.Join(j.db.Apply(batch, option), batch.Close()); err != nil {
			return err
		}
		j.guard.committed()
		return nil
	})
	if err != nil {
		return j.guard.fail(err)
	}
	if option.Sync {
		j.stamp.synced = j.stamp.batch
	}
	j.lateSync.schedule()
	return nil
}

// Failed returns a channel that is closed at the first failure, of a Commit or of work in the
// background; Err then returns it, with the remedy.
func (j *Journal) Failed() <-chan struct{} { return j.guard.failed }

// Err returns the first failure, or nil.
func (j *Journal) Err() error { return j.guard.failure() }

// pebbleBatch returns b as a batch of Pebble.
func (j *Journal) pebbleBatch(b *sqsserver.Batch) (*pebble.Batch, error) {
	size := b.Size() + pebbleBatchOverhead*b.Len() + batchHeader + 2 + stampLen
	batch := j.db.NewBatchWithSize(size, pebble.WithMaxRetainedSizeBytes(keptBatch))
	j.stamp.batch++
	if err := batch.LogData(j.stamp.encode(), nil); err != nil { // first, for checkLogTail
		return nil, err
	}
	j.frontier.advance(b)
	var failed error
	each(b, func(op sqsserver.BatchOp, key, value []byte) {
		if err := addChange(batch, op, key, value); err != nil && failed == nil {
			failed = err
		}
	})
	return batch, failed
}

// each calls f for the changes of b, grouped by the first byte of their keys: Pebble inserts a
// key faster next to the key before it, while a server alternates between states and bodies,
// whose keys are far apart. Changes of one key stay in their order. A range may cover keys of
// several groups, so a batch with a range keeps its order.
func each(b *sqsserver.Batch, f func(op sqsserver.BatchOp, key, value []byte)) {
	var kinds [256]bool
	ranges := false
	b.Each(func(op sqsserver.BatchOp, key, _ []byte) {
		kinds[firstByte(key)] = true
		ranges = ranges || op == sqsserver.BatchDeleteRange
	})
	if ranges {
		b.Each(f)
		return
	}
	for kind, present := range kinds {
		if !present {
			continue
		}
		b.Each(func(op sqsserver.BatchOp, key, value []byte) {
			if firstByte(key) == byte(kind) {
				f(op, key, value)
			}
		})
	}
}

func firstByte(key []byte) byte {
	if len(key) == 0 {
		return 0
	}
	return key[0]
}

func addChange(batch *pebble.Batch, op sqsserver.BatchOp, key, value []byte) error {
	switch op {
	case sqsserver.BatchSet:
		return batch.Set(key, value, nil)
	case sqsserver.BatchDelete:
		return batch.Delete(key, nil)
	case sqsserver.BatchDeleteOnce:
		return batch.SingleDelete(key, nil)
	case sqsserver.BatchDeleteRange:
		return batch.DeleteRange(key, value, nil)
	}
	return fmt.Errorf("a batch has a change of the unknown kind %d", op)
}

// syncNow syncs everything committed so far.
func (j *Journal) syncNow() {
	err := j.guard.await(func() error { return j.db.LogData(nil, pebble.Sync) })
	if err != nil {
		_ = j.guard.fail(err) // the next Commit returns it
	}
}

// reclaim frees the disk space of what was deleted. Logs and bodies are only removed when a table
// in memory is full, which does not happen while sends are refused.
func (j *Journal) reclaim() {
	err := j.guard.await(func() error {
		_, err := j.db.AsyncFlush()
		return err
	})
	if err != nil {
		_ = j.guard.fail(err) // the next Commit returns it
	}
}

// LowOnSpace reports whether less than Options.MinFree of the disk is free.
func (j *Journal) LowOnSpace() bool { return j.space.low() }

// Close syncs everything committed, closes the files and unlocks the directory. After a failure
// it returns that failure.
func (j *Journal) Close() error {
	j.lateSync.stop()
	j.space.stop()
	err := j.guard.await(func() error {
		if j.options.ReadOnly {
			return j.db.Close()
		}
		// Tables have checksums of all their contents, and need no replay at the next start.
		if err := errors.Join(j.db.Flush(), j.db.Close()); err != nil {
			return err
		}
		j.guard.closed()
		return nil
	})
	return errors.Join(err, j.unlock())
}

// unlock unlocks the directory, but not after a failure: changes that were under way then may
// still reach the disk. The lock then ends with the process.
func (j *Journal) unlock() error {
	_ = j.guard.await(func() error { j.guard.end(); return nil }) // it fails if the journal has failed
	select {
	case <-j.guard.failed:
		return nil
	default:
		return j.lock.Close()
	}
}

// lateSync syncs within an interval after each commit. Its timer runs only while a commit is
// unsynced.
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

// schedule arranges that the latest commit is synced in time.
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
	l.dirty.Store(false) // before the sync, which may miss later commits
	l.sync()
}

// stop waits for a running sync and prevents new ones.
func (l *lateSync) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
