package sqsserver

import (
	"encoding/binary"
	"errors"
	"iter"
)

// ErrNotInJournal reports that a journal does not have a key.
var ErrNotInJournal = errors.New("not in the journal")

// Journal keeps what a Server has acknowledged: an ordered store of bytes that
// the server scans once when it opens, appends atomic batches to, and reads
// bodies from on demand. Keys are ordered bytewise.
//
// Scan, Get and Commit may run at the same time, Commit from one goroutine at a
// time.
type Journal interface {
	// Scan calls f for every key that begins with prefix, in ascending order, as
	// the journal stood when Scan was called. The slices are valid during the call
	// of f only. An error of f ends the scan and is returned.
	Scan(prefix []byte, f func(key, value []byte) error) error

	// Get returns the values of keys in their order, which ascends without repetition: for each
	// key its value, or an error that wraps ErrNotInJournal if there is none. Any other error
	// belongs to the key at that position, and ends the sequence. It sees what was committed
	// before it is ranged over. A value is valid until the next, and not after the sequence.
	Get(keys [][]byte) iter.Seq2[[]byte, error]

	// Commit applies the changes of the batch atomically and in their order. With
	// sync it returns only when the batch, and every batch before it, would survive
	// a crash of the machine; without, they survive in their order or not at all.
	// The batch may be reused once it returned.
	//
	// An error means that the disk failed and that its contents are unknown: every later Commit
	// fails too, and the server stops.
	Commit(b *Batch, sync bool) error

	// Close makes durable what was committed and releases the journal. Nothing may
	// be called after it, or while it runs.
	Close() error
}

// SpaceWatcher is implemented by a Journal that knows how full its disk is. While LowOnSpace
// returns true, the server refuses requests that make the journal grow, sends and
// changes of attributes, tags and permissions, and still receives and deletes, which frees space. LowOnSpace is called for each: it is quick, and safe
// for concurrent use.
type SpaceWatcher interface {
	LowOnSpace() bool
}

// RoomChecker is implemented by a Journal that knows how full its disk is. Before [Open] converts
// the records of an older format it calls CheckRoom with the bytes of keys and values that it will
// write beside the old ones; an error, which says how much room is missing, is returned, and
// nothing has changed.
type RoomChecker interface {
	CheckRoom(bytes int64) error
}

// BatchOp is the kind of a change in a Batch.
type BatchOp byte

// The kinds of changes.
const (
	BatchSet         BatchOp = iota + 1 // the key has this value from now on
	BatchDelete                         // the key is gone
	BatchDeleteRange                    // every key from key up to, but without, value is gone
	BatchDeleteOnce                     // the key, which was set exactly once since it was last gone, is gone
)

// Batch is a list of changes for a Journal to apply at once. Its zero value is
// empty, and it is made to be reused: Reset keeps the memory.
type Batch struct {
	// The changes one after the other: the kind, the lengths of key and value as
	// uvarints, key, value. One buffer, so that filling a reused batch allocates
	// nothing.
	data    []byte
	changes int
}

// Set gives key this value. It copies both.
func (b *Batch) Set(key, value []byte) { b.add(BatchSet, key, value) }

// Delete removes key, which need not exist. It copies key.
func (b *Batch) Delete(key []byte) { b.add(BatchDelete, key, nil) }

// DeleteOnce removes key, which has been set exactly once since it was last removed: a journal may
// then drop both changes when they meet, where after a Delete it has to look for older values. Only
// the conversion of older records sets such a key again. It copies key.
func (b *Batch) DeleteOnce(key []byte) { b.add(BatchDeleteOnce, key, nil) }

// DeleteRange removes every key from start up to, but without, end. It copies
// both.
func (b *Batch) DeleteRange(start, end []byte) { b.add(BatchDeleteRange, start, end) }

// Len returns the number of changes.
func (b *Batch) Len() int { return b.changes }

// Size returns the bytes that the changes take in memory.
func (b *Batch) Size() int { return len(b.data) }

// Reset empties the batch.
func (b *Batch) Reset() { b.data, b.changes = b.data[:0], 0 }

// Each calls f for every change in the order of the calls that made them: the
// value of a BatchDelete is empty, that of a BatchDeleteRange the end of the
// range. The slices are valid during the call of f only.
func (b *Batch) Each(f func(op BatchOp, key, value []byte)) {
	for rest := b.data; len(rest) > 0; {
		op := BatchOp(rest[0])
		keyLen, n := binary.Uvarint(rest[1:])
		rest = rest[1+n:]
		valueLen, n := binary.Uvarint(rest)
		rest = rest[n:]
		key, value := rest[:keyLen:keyLen], rest[keyLen:][:valueLen:valueLen]
		rest = rest[keyLen+valueLen:]
		f(op, key, value)
	}
}

func (b *Batch) add(op BatchOp, key, value []byte) {
	b.data = append(b.data, byte(op))
	b.data = binary.AppendUvarint(b.data, uint64(len(key)))
	b.data = binary.AppendUvarint(b.data, uint64(len(value)))
	b.data = append(b.data, key...)
	b.data = append(b.data, value...)
	b.changes++
}
