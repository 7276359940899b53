package journal_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// committer is what BenchmarkCommit compares: the journal, and the least that could
// be durable.
type committer interface {
	Commit(b *sqsserver.Batch, sync bool) error
	Close() error
}

// BenchmarkCommit commits groups of calls, each of ten messages of 1 KiB with their
// state, and deletes the messages of eight groups before, like a queue that is consumed. The
// log is the upper bound: it only appends and syncs, and never frees space.
func BenchmarkCommit(b *testing.B) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		for _, group := range []int{1, 16, 128} {
			for _, kind := range []struct {
				name string
				open func(dir string, delay time.Duration) (committer, error)
			}{{"journal", openJournal}, {"log", openLog}} {
				b.Run(fmt.Sprintf("sync=%v/calls=%d/%s", delay, group, kind.name), func(b *testing.B) {
					j, err := kind.open(b.TempDir(), delay)
					if err != nil {
						b.Fatal(err)
					}
					benchmarkCommit(b, j, 10*group)
					if err := j.Close(); err != nil {
						b.Fatal(err)
					}
				})
			}
		}
	}
}

func benchmarkCommit(b *testing.B, j committer, messages int) {
	body, state := randomText(1<<10), randomText(48)
	var batch sqsserver.Batch
	const call = 10
	next, old := uint64(0), uint64(8*messages)
	b.ReportAllocs()
	b.SetBytes(int64(messages * len(body)))
	for b.Loop() {
		batch.Reset()
		for range messages / call {
			for n := next; n < next+call; n++ {
				batch.Set(messageKey('m', n), state)
				batch.Set(messageKey('b', n), body)
			}
			if next >= old {
				for n := next - old; n < next-old+call; n++ {
					batch.Delete(messageKey('m', n))
					batch.DeleteOnce(messageKey('b', n))
				}
			}
			next += call
		}
		if err := j.Commit(&batch, true); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(next)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkGet reads bodies of 1 KiB from tables, ten at a time, from the first to
// the last: more than any cache holds.
func BenchmarkGet(b *testing.B) {
	j, err := journal.Open(journal.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	const messages, call = 200_000, 10
	var batch sqsserver.Batch
	for n := range uint64(messages) {
		batch.Set(messageKey('m', n), randomText(64))
		batch.Set(messageKey('b', n), randomText(1<<10))
		if n%1000 == 999 {
			if err := j.Commit(&batch, true); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	keys := make([][]byte, call)
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		for i := range keys {
			keys[i] = messageKey('b', n%messages)
			n++
		}
		found := 0
		for body, err := range j.Get(keys) {
			if err != nil || len(body) != 1<<10 {
				b.Fatalf("%d bytes, %v", len(body), err)
			}
			found++
		}
		if found != call {
			b.Fatalf("%d values", found)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/body")
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}

func openJournal(dir string, delay time.Duration) (committer, error) {
	return journal.Open(journal.Options{Dir: dir, FS: diskfault.Wrap(journal.Disk, func(op errorfs.Op) error {
		if delay > 0 && isSync(op) {
			time.Sleep(delay)
		}
		return nil
	})})
}

// appendLog appends batches to a file, each with a length and a checksum.
type appendLog struct {
	file  *os.File
	delay time.Duration
	data  []byte
}

func openLog(dir string, delay time.Duration) (committer, error) {
	file, err := os.Create(filepath.Join(dir, "log"))
	return &appendLog{file: file, delay: delay}, err
}

func (l *appendLog) Commit(b *sqsserver.Batch, sync bool) error {
	const header = 8
	l.data = append(l.data[:0], make([]byte, header)...)
	b.Each(func(op sqsserver.BatchOp, key, value []byte) {
		l.data = append(l.data, byte(op))
		l.data = binary.AppendUvarint(l.data, uint64(len(key)))
		l.data = binary.AppendUvarint(l.data, uint64(len(value)))
		l.data = append(append(l.data, key...), value...)
	})
	binary.LittleEndian.PutUint32(l.data, uint32(len(l.data)-header))
	binary.LittleEndian.PutUint32(l.data[4:], crc32.Checksum(l.data[header:], castagnoli))
	if _, err := l.file.Write(l.data); err != nil || !sync {
		return err
	}
	time.Sleep(l.delay)
	return l.file.Sync()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (l *appendLog) Close() error { return l.file.Close() }

func messageKey(kind byte, n uint64) []byte {
	key := append(make([]byte, 0, 17), kind)
	key = binary.BigEndian.AppendUint64(key, 1)
	return binary.BigEndian.AppendUint64(key, n)
}

// randomText has the alphabet of JSON, so that it can be compressed a little.
func randomText(size int) []byte {
	const letters = `abcdefghijklmnopqrstuvwxyz0123456789{}":, `
	text := make([]byte, size)
	for i := range text {
		text[i] = letters[rand.IntN(len(letters))]
	}
	return text
}
