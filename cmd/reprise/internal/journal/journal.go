// Package journal keeps what the server has acknowledged in a directory, with
// Pebble: its write-ahead log is the journal, its tables hold what has been there
// for longer.
//
// The package promises what a sqsserver.Journal must, whatever the disk does:
//
//   - What Commit returned nil for, with sync, is there after any crash.
//   - Batches are atomic, and a crash keeps a prefix of them.
//   - The first write or sync that fails is the last. Nothing is acknowledged after
//     it, and what is on the disk is what a crash at that moment would have left: see
//     guard.
//   - Damaged and missing files are reported, by name; no part of them is served.
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

	// CacheBytes bounds the memory for blocks read from files: the index of what is on
	// disk, and the bodies beside those that were received last. The server has its
	// own cache of bodies. Default: 32 MiB.
	CacheBytes int64

	// MinFree is the free space of the disk in bytes below which LowOnSpace reports
	// true. What is left is for deletes and for the reorganisation that gives space
	// back, so it should not be below 256 MiB on a busy server. Default: 512 MiB.
	// Negative: LowOnSpace always reports false.
	MinFree int64

	// ReadOnly opens what is there and changes nothing: Commit fails.
	ReadOnly bool

	// Existing makes Open fail where there is no journal, rather than start one.
	Existing bool

	// Logger gets what an operator should know. Default: nobody does.
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
)

// Open opens the journal in o.Dir, or starts one there. It fails if another
// process has it open, if another version wrote it, if anything else is in the
// directory, and if a file that it must read is damaged or missing; the error says
// which, and what to do.
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
	j.guard.logs = logs
	if err := checkLogTail(j.options.FS, j.options.Dir); err != nil {
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
	err = j.guard.await(func() error { return errors.Join(j.db.Apply(batch, option), batch.Close()) })
	if err != nil {
		return j.guard.fail(err)
	}
	if option.Sync {
		j.stamp.synced = j.stamp.batch
	}
	j.lateSync.schedule()
	return nil
}

// Failed returns a channel that is closed at the first failure, of a Commit or of
// what goes on behind it; Err then says what failed, and what to do.
func (j *Journal) Failed() <-chan struct{} { return j.guard.failed }

// Err returns what failed, nil if nothing has.
func (j *Journal) Err() error { return j.guard.failure() }

// pebbleBatch returns b as Pebble has it.
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

// each calls f for the changes of b, those whose keys begin with the same byte one
// after the other: Pebble looks for the place of a key beside that of the key
// before, and a server changes states and bodies by turns, whose keys are far
// apart. Changes of one key stay in their order. A range may be of any keys, so a
// batch with one is left as it is.
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

// syncNow makes durable whatever was committed.
func (j *Journal) syncNow() {
	err := j.guard.await(func() error { return j.db.LogData(nil, pebble.Sync) })
	if err != nil {
		_ = j.guard.fail(err) // the next Commit returns it
	}
}

// reclaim gives the disk back what was deleted. Logs and bodies stay until a table
// in memory is full, and while sends are refused none gets full.
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

// Close makes durable what was committed, closes the files and gives the
// directory free. After a failure it returns that failure.
func (j *Journal) Close() error {
	j.lateSync.stop()
	j.space.stop()
	err := j.guard.await(func() error {
		if j.options.ReadOnly {
			return j.db.Close()
		}
		// What is in tables has a checksum that covers all of it, and opening does not
		// have to replay it.
		return errors.Join(j.db.Flush(), j.db.Close())
	})
	return errors.Join(err, j.unlock())
}

// unlock gives the directory free, but not after a failure: changes that the
// failure found under way may still be. The end of the process gives it free then.
func (j *Journal) unlock() error {
	select {
	case <-j.guard.failed:
		return nil
	default:
		return j.lock.Close()
	}
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
