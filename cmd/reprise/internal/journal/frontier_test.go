package journal_test

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestTablesEndAtFrontier: no table has both what is deleted at the front of a backlog
// and what is sent at its end, or all between would be written again with it.
func TestTablesEndAtFrontier(t *testing.T) {
	j := open(t, journal.WithMemTable(journal.Options{FS: vfs.NewMem()}, 1<<20))
	defer mustClose(t, j)
	const backlog, passing, call, most = 40_000, 20_000, 100, 30_000
	body, state := randomText(1<<10), randomText(48)
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
		if err := j.Commit(&b, false); err != nil {
			t.Fatal(err)
		}
		tables, err := journal.Tables(j)
		if err != nil {
			t.Fatal(err)
		}
		for _, keys := range tables {
			first, last := number(keys[0]), number(keys[1])
			wide := last-first > most
			if keys[0][0] != keys[1][0] { // from a body to a message: the last bodies, and the first messages
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
