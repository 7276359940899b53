package journal

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleBatchOverhead is what a change takes in a Pebble batch beyond key and
// value, at most.
const pebbleBatchOverhead = 16

// keptBatch is the size up to which the memory of a batch is used again: more than
// the server commits at once, but for a large purge.
const keptBatch = 8 << 20

// memTableSize is how much is kept in memory before it is written to tables. What
// is sent, received and deleted while it is still there never gets into one, so
// larger is faster; it is also what opening after a crash has to replay, and the
// memory of a busy server.
const memTableSize = 32 << 20

// blockSize is how much of bodies, or of keys, is read at once. A receive takes what
// was sent one after the other, whose bodies are next to each other: larger blocks
// are fewer to read, and have what the next receive wants. Against the 4 KiB of
// Pebble this halves the processor time of reading bodies of 1 KiB in their order; a
// body that is read alone takes some microseconds more.
const blockSize = 32 << 10

// queuedMemTables are the tables in memory, being filled and being written, at
// which writes wait for the disk.
const queuedMemTables = 3

func pebbleOptions(o Options, g *guard, lock *pebble.Lock, f *frontier) *pebble.Options {
	options := &pebble.Options{
		FS:       g,
		Lock:     lock,
		ReadOnly: o.ReadOnly,
		Logger:   logger{log: o.Logger, guard: g},

		// With this the log says up to where it was synced, which tells a damaged byte
		// from the end, and values may be kept apart from their keys. It is part of
		// Format: to raise it is to raise Format.
		FormatMajorVersion: pebble.FormatValueSeparation,

		// Tables in memory are accounted to the cache: without room for them they would
		// leave none for blocks.
		CacheSize:                   o.CacheBytes + o.memTable*queuedMemTables,
		MemTableSize:                uint64(o.memTable),
		MemTableStopWritesThreshold: queuedMemTables,

		// Without bodies the tables are small, so that it is cheap to keep them few,
		// and few are fast to read. Writes never wait for it: what is behind is read
		// more slowly, what waits is not acknowledged.
		L0CompactionThreshold: 2,
		L0StopWritesThreshold: 1000,

		// A queue that was purged or deleted gives its space back this much later.
		FlushDelayDeleteRange: 10 * time.Second,
	}
	options.Levels[0].BlockSize = blockSize // the other levels follow it
	options.Experimental.SpanPolicyFunc = f.end
	options.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy { return bodiesApart }
	options.EventListener = &pebble.EventListener{
		WALCreated: func(info pebble.WALCreateInfo) {
			f.begin()
			g.addLog(info)
		},
		// What cannot be read cannot be reorganised. Pebble would try again for ever,
		// until writes wait for it, for ever.
		BackgroundError: g.stop,
		// A body that was deleted twice, or written twice, or deleted before it was
		// written, is a defect of the server. It costs space at worst.
		PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) {
			o.Logger.Error("a body was not set once and deleted once; please report it", "key", fmt.Sprintf("%q", info.UserKey))
		},
		// Whoever reads is told. The default would be Fatalf.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			o.Logger.Error("a file of the journal is damaged", "file", info.Path, "error", info.Details)
		},
	}
	return options
}

// bodiesApart keeps bodies in files beside the tables, so that reorganising tables
// does not write them again: a body is written to the log, and once more if it is
// still there when its table in memory is full. Against bodies in tables this
// halves the disk under churn, and saves a quarter of the processor time of a send
// and half of that of a delete.
//
// Queues are emptied from the front, so that most files of bodies lose all of them
// together and are removed whole. One with survivors is rewritten, but not before
// half of all that is kept is garbage, and not while it is so young that the rest
// may go by itself: disk is bounded by twice what waits, and what is being written.
var bodiesApart = pebble.ValueSeparationPolicy{
	Enabled:               true,
	MinimumSize:           256, // the state of a message is smaller
	MaxBlobReferenceDepth: 10,
	RewriteMinimumAge:     time.Minute,
	TargetGarbageRatio:    0.5,
}

// logger takes what Pebble says.
type logger struct {
	log   *slog.Logger
	guard *guard
}

func (l logger) Infof(format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...))
}

func (l logger) Errorf(format string, args ...any) {
	l.log.Error(fmt.Sprintf(format, args...))
}

// Fatalf must not return: Pebble cannot go on.
func (l logger) Fatalf(format string, args ...any) {
	l.guard.stop(fmt.Errorf(format, args...))
}
