package journal

import (
	"bytes"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// frontier says where tables end so that what comes and goes beside a backlog leaves
// the backlog's keys alone. The new messages of a queue have the greatest numbers, with
// which their keys end, and those that are deleted the smallest. In one table with
// both, all that lies between would be written again when it moves down: the keys of a
// million messages, for every 25,000 that come and go.
//
// So a table ends at the greatest number there was of a queue, and of bodies, before
// anything was set of what is being written: at some past beginning of a table in
// memory. What these ends were is not kept: after a start the first few tables in
// memory are written undivided.
type frontier struct {
	mu       sync.Mutex
	greatest map[string]*edge // by what stands before a key's last eight bytes, mostly the number

	// Right behind them, when the newest table in memory was begun, and those before
	// it: all that are not yet written, and one more. For a table begins with changes
	// that are already counted here.
	begun [queuedMemTables + 2][][]byte
}

// edge is the greatest key that was set of those that begin alike, and how many times
// a greater one came since a table in memory was begun.
type edge struct {
	key   []byte
	moved int
}

const (
	numberLen = 8

	// edgeMoves is from where on an edge ends a table. Many queues that are sent little
	// have many edges, and would have as many tables.
	edgeMoves = 500

	// maxEnds is how many edges end tables, those that moved most: each of the tables
	// is a file.
	maxEnds = 16
)

// advance takes what is to be set.
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

// begin says that a table in memory begins: each has a log of its own.
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

// end returns the key before which a table ends that begins with start, nil if it may
// go on. Pebble asks for the policy of a span of keys, and begins another table behind
// it; the policy is the same everywhere.
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
