// Package appendlog is a minimal durable sqsserver.Journal, and so the upper bound for the speed of
// one: batches are appended to a file and synced, and an index in memory has the positions of the
// values. It frees no space, cannot be opened again and does not check the data that it reads.
package appendlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Options are the options of a log.
type Options struct {
	// Dir is the directory in which the log is created. It must not contain a log.
	Dir string

	// Reserve is how many bytes of the file are written beforehand. A sync of overwritten bytes
	// changes no metadata of the file system, which is two to three times as fast as growing the
	// file; databases reuse their logs for this reason. Default: 0.
	Reserve int64

	// SyncDelay is added to the time of each sync. Default: 0.
	SyncDelay time.Duration
}

// Log is an append log: a sqsserver.Journal.
type Log struct {
	delay time.Duration
	file  *os.File
	end   int64  // of the appended bytes; only Commit uses it
	data  []byte // of the batch that is being appended; reused

	mu    sync.RWMutex // guards what follows
	index map[string]place
}

// place is where a value is in the file.
type place struct {
	offset int64
	length int
}

var _ sqsserver.Journal = (*Log)(nil)

// Create makes an empty log.
func Create(o Options) (*Log, error) {
	file, err := os.OpenFile(filepath.Join(o.Dir, "log"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("appendlog: %w: name a directory that has no log yet", err)
	}
	if err := reserve(file, o.Reserve); err != nil {
		return nil, errors.Join(fmt.Errorf("appendlog: reserve %d bytes: %w", o.Reserve, err), file.Close())
	}
	return &Log{delay: o.SyncDelay, file: file, index: make(map[string]place)}, nil
}

func reserve(file *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for offset := int64(0); offset < size; offset += int64(len(zeros)) {
		if _, err := file.WriteAt(zeros[:min(size-offset, int64(len(zeros)))], offset); err != nil {
			return err
		}
	}
	return file.Sync()
}

// Commit appends the batch, and syncs.
func (l *Log) Commit(b *sqsserver.Batch, sync bool) error {
	const header = 8 // length and checksum
	l.data = append(l.data[:0], make([]byte, header)...)
	l.mu.Lock()
	b.Each(l.add)
	l.mu.Unlock()
	binary.LittleEndian.PutUint32(l.data, uint32(len(l.data)-header))
	binary.LittleEndian.PutUint32(l.data[4:], crc32.Checksum(l.data[header:], castagnoli))
	if _, err := l.file.WriteAt(l.data, l.end); err != nil {
		return fmt.Errorf("appendlog: append: %w", err)
	}
	l.end += int64(len(l.data))
	if !sync {
		return nil
	}
	time.Sleep(l.delay)
	if err := syncData(l.file); err != nil {
		return fmt.Errorf("appendlog: sync: %w", err)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add encodes a change, and notes the position of its value. The server reads nothing of a batch
// before its Commit has returned.
func (l *Log) add(op sqsserver.BatchOp, key, value []byte) {
	l.data = append(l.data, byte(op))
	l.data = binary.AppendUvarint(l.data, uint64(len(key)))
	l.data = binary.AppendUvarint(l.data, uint64(len(value)))
	l.data = append(append(l.data, key...), value...)
	switch op {
	case sqsserver.BatchSet:
		l.index[string(key)] = place{l.end + int64(len(l.data)-len(value)), len(value)}
	case sqsserver.BatchDelete, sqsserver.BatchDeleteOnce:
		delete(l.index, string(key))
	case sqsserver.BatchDeleteRange:
		for k := range l.index {
			if k >= string(key) && k < string(value) {
				delete(l.index, k)
			}
		}
	}
}

// Get reads values.
func (l *Log) Get(keys [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var value []byte
		for _, key := range keys {
			var err error
			value, err = l.get(value[:0], key)
			if !yield(value, err) || err != nil && !errors.Is(err, sqsserver.ErrNotInJournal) {
				return
			}
		}
	}
}

func (l *Log) get(dst, key []byte) ([]byte, error) {
	l.mu.RLock()
	at, found := l.index[string(key)]
	l.mu.RUnlock()
	if !found {
		return dst, fmt.Errorf("appendlog: key %q: %w", key, sqsserver.ErrNotInJournal)
	}
	return l.read(dst, at)
}

func (l *Log) read(dst []byte, at place) ([]byte, error) {
	start := len(dst)
	dst = slices.Grow(dst, at.length)[:start+at.length]
	if _, err := l.file.ReadAt(dst[start:], at.offset); err != nil {
		return dst[:start], fmt.Errorf("appendlog: read: %w", err)
	}
	return dst, nil
}

// Scan reads the values whose keys begin with prefix.
func (l *Log) Scan(prefix []byte, f func(key, value []byte) error) error {
	l.mu.RLock()
	places := make(map[string]place)
	var keys []string
	for key, at := range l.index {
		if strings.HasPrefix(key, string(prefix)) {
			places[key], keys = at, append(keys, key)
		}
	}
	l.mu.RUnlock()
	slices.Sort(keys)
	var value []byte
	for _, key := range keys {
		var err error
		if value, err = l.read(value[:0], places[key]); err != nil {
			return err
		}
		if err := f([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

// Close syncs and closes the file.
func (l *Log) Close() error { return errors.Join(syncData(l.file), l.file.Close()) }
