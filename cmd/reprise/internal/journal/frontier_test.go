package journal_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestTablesEndAtFrontier: no table has both keys that are deleted at the front of a backlog
// and keys that are sent at its end; otherwise all keys between would be written again too. A
// second queue, whose keys come after, does not change that.
func TestTablesEndAtFrontier(t *testing.T) {
	j := open(t, journal.WithMemTable(journal.Options{FS: vfs.NewMem()}, 1<<20))
	defer mustClose(t, j)
	const backlog, passing, call, most = 40_000, 20_000, 100, 30_000
	body, state := randomText(1<<10), randomText(48)
	other := messageKey('m', 0)
	other[8]++ // of the next queue
	for sent := 0; sent < backlog+passing; {
		var b sqsserver.Batch
		for range call {
			b.Set(messageKey('m', uint64(sent)), state)
			b.Set(messageKey('b', uint64(sent)), body)
			if gone := uint64(sent - backlog); sent >= backlog {
				b.Delete(messageKey('m', gone))
				b.DeleteOnce(messageKey('b', gone))
			}
			sent++
		}
		b.Set(other, state)
		if err := j.Commit(&b, false); err != nil {
			t.Fatal(err)
		}
		tables, err := journal.Tables(j)
		if err != nil {
			t.Fatal(err)
		}
		for _, keys := range tables {
			if bytes.Equal(keys[0], other) {
				continue
			}
			first, last := number(keys[0]), number(keys[1])
			if bytes.Equal(keys[1], other) { // so it has the last messages
				last = sent
			}
			wide := last-first > most
			if keys[0][0] == 'b' && keys[1][0] != 'b' { // it has the last bodies and the first messages
				wide = sent-first > most || last-max(0, sent-backlog) > most
			}
			if wide {
				t.Fatalf("of %d messages, a table has what is between %q and %q", sent, keys[0], keys[1])
			}
		}
	}
}

// number is that of a messageKey.
func number(key []byte) int { return int(binary.BigEndian.Uint64(key[len(key)-8:])) }

// TestFewTablesEndAtFrontier: many busy queues do not make as many tables, because each table
// is a file.
func TestFewTablesEndAtFrontier(t *testing.T) {
	j := open(t, journal.WithMemTable(journal.Options{FS: vfs.NewMem()}, 8<<20))
	defer mustClose(t, j)
	const queues, messages, each, most = 60, 800_000, 50, 160
	state := randomText(48)
	next := [queues]uint64{}
	for sent := 0; sent < messages; sent += each {
		var b sqsserver.Batch
		queue := sent / each % queues
		for range each {
			key := messageKey('m', next[queue])
			key[8] = byte(queue)
			b.Set(key, state)
			next[queue]++
		}
		if err := j.Commit(&b, false); err != nil {
			t.Fatal(err)
		}
	}
	tables, err := journal.Tables(j)
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) > most {
		t.Errorf("%d tables for %d queues, want at most %d", len(tables), queues, most)
	}
}
