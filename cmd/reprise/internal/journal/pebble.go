package journal

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleBatchOverhead is the most bytes that a change takes in a Pebble batch beyond key and
// value.
const pebbleBatchOverhead = 16

// keptBatch is the size up to which the memory of a batch is reused. Except for large purges the
// server commits less at once.
const keptBatch = 8 << 20

// memTableSize is how much is kept in memory before it is written to a table. Messages that are
// sent, received and deleted before that never reach a table, so larger is faster; but it is also
// the memory of a busy server, and the amount to replay after a crash.
const memTableSize = 32 << 20

// blockSize is how much of bodies, or of keys, is read at once. A receive takes messages that
// were sent one after the other, whose bodies are adjacent: with larger blocks it reads fewer,
// and the next receive finds its bodies in them. Compared with Pebble's 4 KiB this halves the
// processor time of reading bodies of 1 KiB in order; a single body takes some microseconds more.
const blockSize = 32 << 10

// queuedMemTables is the number of tables in memory, being filled or written, at which writes
// wait for the disk.
const queuedMemTables = 3

func pebbleOptions(o Options, g *guard, lock *pebble.Lock, f *frontier) *pebble.Options {
	options := &pebble.Options{
		FS:       g,
		Lock:     lock,
		ReadOnly: o.ReadOnly,
		Logger:   logger{log: o.Logger, guard: g},

		// From this version on the log records how far it was synced, which distinguishes damage
		// from the end, and values can be stored apart from their keys. It is part of Format:
		// raise both together.
		FormatMajorVersion: pebble.FormatValueSeparation,

		// Tables in memory count towards the cache, so the cache has room for them beside the
		// blocks.
		CacheSize:                   o.CacheBytes + o.memTable*queuedMemTables,
		MemTableSize:                uint64(o.memTable),
		MemTableStopWritesThreshold: queuedMemTables,

		// Without bodies the tables are small: it is cheap to keep few of them, and few are fast
		// to read. Writes never wait for compactions: late compactions slow down reads, waiting
		// writes would delay acknowledgements.
		L0CompactionThreshold: 2,
		L0StopWritesThreshold: 1000,

		// A queue that was purged or deleted frees its space this much later.
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
		// A file that cannot be read cannot be compacted. Pebble would repeat that until writes
		// wait for it for ever.
		BackgroundError: g.stop,
		// A body that was deleted twice, or written twice, or deleted before it was written, is a
		// bug of the server. At worst it wastes space.
		PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) {
			o.Logger.Error("a body was not set once and deleted once; please report it", "key", fmt.Sprintf("%q", info.UserKey))
		},
		// Readers get the error. The default would be Fatalf.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			o.Logger.Error("a file of the journal is damaged", "file", info.Path, "error", info.Details)
		},
	}
	return options
}

// bodiesApart keeps bodies in files beside the tables, so that compactions do not rewrite them: a
// body is written to the log, and once more if it still exists when its table in memory is full.
// Compared with bodies in tables this halves the disk space under churn, and saves a quarter of
// the processor time of a send and half of that of a delete.
//
// Queues are emptied from the front, so most files lose all their bodies together and are removed
// whole. A file with remaining bodies is rewritten when half of the space of all such files is
// garbage, and when it is old enough that its rest is likely to stay. So the disk space is at
// most twice that of the waiting messages, plus what is being written.
var bodiesApart = pebble.ValueSeparationPolicy{
	Enabled:               true,
	MinimumSize:           256, // the state of a message is smaller
	MaxBlobReferenceDepth: 10,
	RewriteMinimumAge:     time.Minute,
	TargetGarbageRatio:    0.5,
}

// logger gets Pebble's log.
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

// Fatalf must not return: Pebble cannot continue.
func (l logger) Fatalf(format string, args ...any) {
	l.guard.stop(fmt.Errorf(format, args...))
}
