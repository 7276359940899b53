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

// memTableSize is how much is kept in memory before it is written to tables. What
// is sent, received and deleted while it is still there never gets into one, so
// larger is faster; it is also what opening after a crash has to replay, and the
// memory of a busy server.
const memTableSize = 32 << 20

// queuedMemTables are the tables in memory, being filled and being written, at
// which writes wait for the disk.
const queuedMemTables = 3

func openPebble(o Options, g *guard, lock *pebble.Lock) (db *pebble.DB, err error) {
	// Pebble panics on some damage that it does not expect while it opens.
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, fmt.Errorf("opening: %v", p)
		}
	}()
	return pebble.Open(o.Dir, pebbleOptions(o, g, lock))
}

func pebbleOptions(o Options, g *guard, lock *pebble.Lock) *pebble.Options {
	options := &pebble.Options{
		FS:       g,
		Lock:     lock,
		ReadOnly: o.ReadOnly,
		Logger:   logger{log: o.Logger, guard: g},

		// The log says with each record up to where it was synced, which tells a byte
		// that was damaged from the end of what was written; and values may be kept
		// apart from their keys. It is part of Format: to raise it is to raise Format.
		FormatMajorVersion: pebble.FormatValueSeparation,

		// Tables in memory are accounted to the cache; without their part in it they
		// would leave nothing for blocks.
		CacheSize:                   o.CacheBytes + memTableSize*queuedMemTables,
		MemTableSize:                memTableSize,
		MemTableStopWritesThreshold: queuedMemTables,

		L0CompactionThreshold: 2,
		L0StopWritesThreshold: 1000,

		// A queue that was purged or deleted gives its space back this much later.
		FlushDelayDeleteRange: 10 * time.Second,
	}
	options.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{
			Enabled:               true,
			MinimumSize:           512,
			MaxBlobReferenceDepth: 10,
			RewriteMinimumAge:     time.Minute,
			TargetGarbageRatio:    0.2,
		}
	}
	options.EventListener = &pebble.EventListener{
		BackgroundError: func(error) {
			// The guard has recorded it if it matters. Pebble tries again at once, for
			// ever, which should not keep a processor busy while the server ends.
			if g.failure() != nil {
				time.Sleep(50 * time.Millisecond)
			}
		},
		// Whoever reads is told. The default would be Fatalf.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			o.Logger.Error("a file of the journal is damaged", "file", info.Path, "error", info.Details)
		},
	}
	return options
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

// Fatalf is Pebble's way to say that it cannot go on. It returns, so Pebble goes
// on, over a disk that does not change any more.
func (l logger) Fatalf(format string, args ...any) {
	_ = l.guard.fail(fmt.Errorf(format, args...))
}
