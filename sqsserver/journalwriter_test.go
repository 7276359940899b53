package sqsserver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Receives are written soon, without sync, even though no request waits for that; then the
// server is idle.
func TestReceivesAreWrittenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		k.create("q", nil)
		k.send("q", "a")
		commits, _ := k.journal.writes()
		k.receive("q", 1, 60)
		if now, _ := k.journal.writes(); now != commits {
			t.Errorf("a receive alone was written at once")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		now, synced := k.journal.writes()
		if now != commits+1 || synced != commits {
			t.Errorf("%d commits, %d of them synced, want %d and %d", now, synced, commits+1, commits)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if later, _ := k.journal.writes(); later != now {
			t.Errorf("%d commits by a server at rest", later-now)
		}
	})
}

// While the disk hangs, operations that wait for nothing cannot fill the memory.
func TestHangingDiskHoldsUpReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		k.create("f.fifo", map[string]string{"FifoQueue": "true"})
		in := &sqsserver.SendMessageInput{QueueUrl: k.url("f.fifo")}
		in.MessageBody, in.MessageGroupId, in.MessageDeduplicationId = "x", strings.Repeat("g", 128), strings.Repeat("d", 128)
		if _, err := k.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		handle := k.receive("f.fifo", 1, 600)[0].ReceiptHandle
		release := k.journal.block()
		go k.trySend("f.fifo", "held-up")
		synctest.Wait()

		const tries = 100_000 // of about 350 bytes each
		changed := make(chan int, 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range tries {
				if err := k.changeVisibility("f.fifo", handle, 600); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-changed:
				default:
				}
				changed <- i
			}
		}()
		synctest.Wait()
		if n := <-changed; n > tries*2/3 {
			t.Errorf("%d changes went on with a disk that hangs", n)
		}
		release()
		<-done
	})
}

// Many sends on a slow disk are written in several groups, so that memory stays flat and the
// first need not wait for the last.
func TestGroupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		k.create("q", nil)
		k.journal.delay = func() time.Duration { return time.Second }
		const clients, size, bound = 100, 200 << 10, 4<<20 + 300<<10 // the last message may pass the bound
		sent := make(chan error, clients)
		for range clients {
			go func() { sent <- k.trySend("q", strings.Repeat("x", size)) }()
		}
		for range clients {
			if err := <-sent; err != nil {
				t.Error(err)
			}
		}
		sizes := k.journal.sizes()
		if largest := slices.Max(sizes); largest > bound {
			t.Errorf("a group has %d bytes, want at most %d", largest, bound)
		}
		if n := len(sizes); n > clients/3 {
			t.Errorf("%d groups, want at most %d: most are to be full", n, clients/3)
		}
	})
}

// After its journal has failed a server acknowledges nothing, and says so.
func TestFailStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		k.create("q", nil)
		k.create("empty", nil)
		k.send("q", "a")
		handle := k.receive("q", 1, 60)[0].ReceiptHandle
		if k.Err() != nil {
			t.Fatalf("Err() = %v before anything went wrong", k.Err())
		}

		polled := make(chan error, 1)
		go func() {
			_, err := k.ReceiveMessage(context.Background(), &sqsserver.ReceiveMessageInput{QueueUrl: k.url("empty"), WaitTimeSeconds: sqsserver.Int(20)})
			polled <- err
		}()
		release := k.journal.block()
		waiting := make(chan error, 2)
		go func() { waiting <- k.trySend("q", "b") }() // in the group that fails
		synctest.Wait()
		go func() { waiting <- k.deleteMessage("q", handle) }() // in the one behind it
		synctest.Wait()
		broken := errors.New("the disk is broken")
		k.journal.fail(broken)
		release()

		for range 2 {
			wantStorageError(t, "a waiting request", <-waiting)
		}
		wantStorageError(t, "the long poll", <-polled)
		<-k.Failed()
		if err := k.Err(); !errors.Is(err, broken) {
			t.Errorf("Err() = %v, want the journal's", err)
		}
		_, err := k.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: k.url("q")})
		wantStorageError(t, "a later receive", err)
		wantStorageError(t, "a later send", k.trySend("q", "c"))
		wantStorageError(t, "a later change", k.changeVisibility("q", handle, 0))
		_, err = k.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "new"})
		wantStorageError(t, "a later queue", err)
		_, err = k.ListQueues(t.Context(), &sqsserver.ListQueuesInput{})
		wantStorageError(t, "a later list", err)
	})
}

func wantStorageError(t *testing.T, who string, err error) {
	t.Helper()
	var e *sqsserver.Error
	if !errors.As(err, &e) || e.Code != "InternalFailure" || e.HTTPStatus() != 500 || !strings.Contains(e.Message, "start the server again") {
		t.Errorf("%s got %v, want InternalFailure with the remedy", who, err)
	}
}

// On a disk that is almost full nothing is taken, and everything can be worked
// off.
func TestLowOnSpace(t *testing.T) {
	k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
	k.create("q", nil)
	k.send("q", "a")
	k.journal.mu.Lock()
	k.journal.full = true
	k.journal.mu.Unlock()
	batch := &sqsserver.SendMessageBatchInput{QueueUrl: k.url("q"), Entries: make([]sqsserver.SendMessageBatchRequestEntry, 1)}
	batch.Entries[0].Id, batch.Entries[0].MessageBody = "1", "x"
	_, batchErr := k.SendMessageBatch(t.Context(), batch)
	for _, err := range []error{k.trySend("q", "b"), batchErr} {
		var e *sqsserver.Error
		if !errors.As(err, &e) || e.HTTPStatus() != 503 || !strings.Contains(e.Message, "almost full") {
			t.Errorf("a send got %v, want 503 with the reason", err)
		}
	}
	if err := k.deleteMessage("q", k.receive("q", 1, 60)[0].ReceiptHandle); err != nil {
		t.Errorf("delete: %v", err)
	}
	k.journal.mu.Lock()
	k.journal.full = false
	k.journal.mu.Unlock()
	k.send("q", "c")
}
