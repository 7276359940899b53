package journal

import (
	"bytes"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// frontier says where tables end so that what comes and goes beside a backlog leaves
// the backlog's keys alone. The new messages of a queue have the greatest keys of
// their kind, which is the first byte, and those that are deleted the smallest. In one
// table with both, all that lies between would be written again when it moves down:
// the keys of a million messages, for every 25,000 that come and go.
//
// So a table ends at the greatest key there was of a kind before anything was set of
// what is being written: at some past beginning of a table in memory. Only the last
// of the queues has its messages divided, and the bodies of all.
type frontier struct {
	mu       sync.Mutex
	greatest map[byte][]byte // that was set, by kind

	// Right behind them, when the newest table in memory was begun, and those before
	// it: all that are not yet written, and one more. For a table begins with changes
	// that are already counted here.
	begun [queuedMemTables + 2][][]byte
}

// advance takes what is to be set.
func (f *frontier) advance(b *sqsserver.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.greatest == nil {
		f.greatest = make(map[byte][]byte)
	}
	b.Each(func(op sqsserver.BatchOp, key, _ []byte) {
		kind := firstByte(key)
		if greatest := f.greatest[kind]; op == sqsserver.BatchSet && bytes.Compare(key, greatest) > 0 {
			f.greatest[kind] = append(greatest[:0], key...)
		}
	})
}

// begin says that a table in memory begins: each has a log of its own.
func (f *frontier) begin(pebble.WALCreateInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ends [][]byte
	for _, key := range f.greatest {
		ends = append(ends, append(bytes.Clone(key), 0))
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
