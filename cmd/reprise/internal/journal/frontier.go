package journal

import (
	"bytes"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// frontier chooses where tables end, so that messages that come and go do not have the keys of a
// backlog rewritten. Keys end with a number: new messages of a queue have the greatest numbers,
// deleted ones the smallest. If one table had both, moving it down would rewrite all keys between
// them: those of a million messages, for every 25,000 that come and go.
//
// So a table ends at the greatest number that a queue, or the bodies, had when an earlier table
// in memory was begun. These ends are not saved: after a start the first few tables in memory are
// written undivided.
type frontier struct {
	mu       sync.Mutex
	greatest map[string]*edge // by the part of the key before its last eight bytes, which are mostly the number

	// The keys right behind the edges, as of the beginning of the newest table in memory and of
	// those before it: all tables not yet written, and one more, since the changes that begin a
	// table are counted before begin.
	begun [queuedMemTables + 2][][]byte
}

// edge is the greatest key set so far among the keys with one prefix, and how many times it rose
// since the newest table in memory was begun.
type edge struct {
	key   []byte
	moved int
}

const (
	numberLen = 8

	// edgeMoves is how often an edge must have moved to end a table. Otherwise many queues with
	// few messages would make as many tables.
	edgeMoves = 500

	// maxEnds is the maximum number of edges that end tables, those that moved most: each table
	// is a file.
	maxEnds = 16
)

// advance notes the keys that a batch sets.
func (f *frontier) advance(b *sqsserver.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.greatest == nil {
		f.greatest = make(map[string]*edge)
	}
	b.Each(func(op sqsserver.BatchOp, key, _ []byte) {
		if op != sqsserver.BatchSet || len(key) <= numberLen {
			return
		}
		prefix := key[:len(key)-numberLen]
		e := f.greatest[string(prefix)]
		if e == nil {
			e = new(edge)
			f.greatest[string(prefix)] = e
		}
		if bytes.Compare(key, e.key) > 0 {
			e.key = append(e.key[:0], key...)
			e.moved++
		}
	})
}

// begin is called when a table in memory begins, with its log.
func (f *frontier) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var busy []*edge
	for prefix, e := range f.greatest {
		if e.moved < edgeMoves {
			delete(f.greatest, prefix) // of a queue that may be gone
			continue
		}
		busy = append(busy, e)
	}
	slices.SortFunc(busy, func(a, b *edge) int { return b.moved - a.moved })
	var ends [][]byte
	for _, e := range busy[:min(len(busy), maxEnds)] {
		ends = append(ends, append(bytes.Clone(e.key), 0))
	}
	for _, e := range busy {
		e.moved = 0
	}
	copy(f.begun[1:], f.begun[:])
	f.begun[0] = ends
}

// end returns the key before which a table that begins with start must end; nil: it need not end.
// It is a policy of spans for Pebble, which begins another table behind each span; the policy
// itself is the same everywhere.
func (f *frontier) end(start []byte) (_ pebble.SpanPolicy, end []byte, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range f.begun[len(f.begun)-1] {
		if bytes.Compare(key, start) > 0 && (end == nil || bytes.Compare(key, end) < 0) {
			end = key
		}
	}
	return pebble.SpanPolicy{}, end, nil
}
