package sqsserver_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// olderJournal is a journal of the version before with records of all kinds, and what its server had.
func olderJournal(t *testing.T) (*memoryJournal, snapshot) {
	t.Helper()
	k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
	k.create("gone", nil)
	if err := k.DeleteQueue(t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: k.url("gone")}); err != nil {
		t.Fatal(err)
	}
	k.create("dead", nil)
	k.create("q", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + k.arn("dead") + `","maxReceiveCount":1}`})
	k.create("f.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	for range 3 {
		k.send("q", "a dead letter")
	}
	k.receive("q", 3, 0)
	k.receive("q", 3, 0)
	for range 6 {
		k.send("q", strings.Repeat("x", 700_000))
	}
	text := `{"MessageBody":"{\"json\":\"\\n\"}","QueueUrl":"` + k.url("q") + `","MessageAttributes":{"n":{"DataType":"Number","StringValue":"1"},"b":{"DataType":"Binary","BinaryValue":"AAE="}}}`
	k.post(t, "SendMessage", text, new(map[string]string))
	k.send("f.fifo", "f")
	k.receive("q", 2, 600)
	if _, err := k.StartMessageMoveTask(t.Context(), &sqsserver.StartMessageMoveTaskInput{
		SourceArn: k.arn("dead"), MaxNumberOfMessagesPerSecond: sqsserver.Int(1)}); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k = openJournalServer(t, k.journal.reopened(), sqsserver.Config{})
	before := k.snapshot()
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	older := k.journal.reopened()
	kinds := make(map[byte]bool)
	for key, value := range older.data {
		older.data[key] = sqsserver.OlderRecord(key, value)
		kinds[key[0]] = true
	}
	if len(kinds) != len("vsnqtdmb") {
		t.Fatalf("records of %d kinds: the test does not test what it should", len(kinds))
	}
	older.data["~other"] = "\x01of another user"
	return older, before
}

// clone is a journal with the same contents.
func (j *memoryJournal) clone() *memoryJournal {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &memoryJournal{data: maps.Clone(j.data)}
}

// upgraded opens a server on the journal, which has to have what before has, with all records of this
// version.
func upgraded(t *testing.T, j *memoryJournal, before snapshot) {
	t.Helper()
	k := openJournalServer(t, j, sqsserver.Config{})
	if diff := cmp.Diff(before, k.snapshot()); diff != "" {
		t.Errorf("after the conversion (-before +after):\n%.3000s", diff)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	for key, value := range j.data {
		if want := byte(2); key[0] != '~' && value[0] != want || key == "v" && value != "\x02" {
			t.Errorf("record %q has version %d: %.20q", key, value[0], value)
		}
	}
	if j.data["~other"] != "\x01of another user" {
		t.Errorf("a record of another user has become %q", j.data["~other"])
	}
}

// TestUpgrade: the journal of the version before is read, and afterwards it is one of this version,
// whose next server converts nothing.
func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older, before := olderJournal(t)
		upgraded(t, older, before)
		for _, c := range older.commits {
			removed := make(map[string]bool)
			for _, change := range c {
				if change.op == sqsserver.BatchSet && change.key[0] == 'b' && !removed[change.key] {
					t.Errorf("body %q is set again without having been removed: a journal may bring the older one back", change.key)
				}
				removed[change.key] = change.op == sqsserver.BatchDeleteOnce
			}
		}
		if n := len(older.commits); n < 5 {
			t.Errorf("%d commits for 4 MB: they are not of a bounded size", n)
		}
		again := older.reopened()
		upgraded(t, again, before)
		if n := len(again.commits); n > 2 {
			t.Errorf("the second start makes %d commits", n)
		}
	})
}

// failingJournal fails after so many commits.
type failingJournal struct {
	*memoryJournal
	left int
}

var errDisk = errors.New("the disk has failed")

func (j *failingJournal) Commit(b *sqsserver.Batch, sync bool) error {
	if j.left == 0 {
		return errDisk
	}
	j.left--
	return j.memoryJournal.Commit(b, sync)
}

// TestUpgradeCrashes: whenever a conversion is cut off, the version before refuses what is left of it
// unless nothing has changed, and the next start goes on.
func TestUpgradeCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older, before := olderJournal(t)
		for n := 0; ; n++ {
			cut := older.clone()
			server, err := sqsserver.Open(&failingJournal{cut, n}, sqsserver.Config{Logger: withoutOutput()})
			if err == nil {
				if n < 5 {
					t.Errorf("%d commits are all", n)
				}
				_ = server.Close() // it may fail
				return
			}
			if !errors.Is(err, errDisk) {
				t.Fatal(err)
			}
			if changed := !maps.Equal(older.data, cut.data); changed && cut.data["v"] == "\x01" {
				t.Errorf("after %d commits the version before would open what it cannot read", n)
			}
			upgraded(t, cut, before)
		}
	})
}

// fullJournal has no room.
type fullJournal struct {
	*memoryJournal
	asked int64
}

var errFull = errors.New("no room")

func (j *fullJournal) CheckRoom(bytes int64) error {
	j.asked = bytes
	return errFull
}

// TestUpgradeNeedsRoom: before anything is converted the disk is asked for the room of all that will
// be written, and if it lacks it, nothing changes. Nothing is asked if there is nothing to convert.
func TestUpgradeNeedsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older, before := olderJournal(t)
		full := &fullJournal{memoryJournal: older.clone()}
		if _, err := sqsserver.Open(full, sqsserver.Config{Logger: withoutOutput()}); !errors.Is(err, errFull) {
			t.Errorf("Open on a full disk: %v", err)
		}
		var want int64
		for key, value := range older.data {
			if key != "v" && key[0] != '~' {
				want += int64(len(key) + len(value))
			}
		}
		if full.asked != want || len(full.commits) > 0 || !maps.Equal(full.data, older.data) {
			t.Errorf("asked for %d bytes, want %d; %d commits", full.asked, want, len(full.commits))
		}
		upgraded(t, older, before)
		server, err := sqsserver.Open(&fullJournal{memoryJournal: older.reopened()}, sqsserver.Config{Logger: withoutOutput()})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestUpgradedMessagesWork: what was converted is received, deleted and recognized as a duplicate, and
// a body that is deleted leaves nothing.
func TestUpgradedMessagesWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older, _ := olderJournal(t)
		k := openJournalServer(t, older, sqsserver.Config{})
		before := len(k.snapshot().Messages["f.fifo"])
		k.send("f.fifo", "f")
		if n := len(k.snapshot().Messages["f.fifo"]); n != before {
			t.Errorf("%d messages after a duplicate, %d before", n, before)
		}
		time.Sleep(601 * time.Second)
		received := 1
		for received > 0 {
			received = 0
			for _, m := range k.receive("q", 10, 600) {
				received++
				if err := k.deleteMessage("q", m.ReceiptHandle); err != nil {
					t.Error(err)
				}
			}
		}
		left := 0
		for queue, messages := range k.snapshot().Messages {
			left += len(messages)
			if queue == "q" && len(messages) > 0 {
				t.Errorf("%d messages cannot be received", len(messages))
			}
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		if bodies := len(older.keys('b')); bodies != left {
			t.Errorf("%d bodies of %d messages", bodies, left)
		}
	})
}
