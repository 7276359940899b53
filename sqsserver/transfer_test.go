package sqsserver_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// sendWith sends a message with attributes.
func (k *journalServer) sendWith(queue, body, group string, attributes ...sqsserver.MessageAttribute) {
	k.t.Helper()
	in := &sqsserver.SendMessageInput{QueueUrl: k.url(queue)}
	in.MessageBody, in.MessageGroupId, in.MessageAttributes = body, group, attributes
	if strings.HasSuffix(queue, ".fifo") {
		in.MessageDeduplicationId = body[:min(len(body), 100)]
	}
	if _, err := k.SendMessage(k.t.Context(), in); err != nil {
		k.t.Fatal(err)
	}
}

// shown returns all messages of a queue as transfers to another one.
func (k *journalServer) shown(queue, to string, without ...string) (all []sqsserver.Transfer) {
	k.t.Helper()
	infos, err := k.Messages(queue, sqsserver.Page{WithoutBodies: true})
	if err != nil {
		k.t.Fatal(err)
	}
	for i := range infos {
		if infos[i].Body != "" {
			k.t.Errorf("a page without bodies has %q", infos[i].Body)
		}
		all = append(all, sqsserver.Transfer{Shown: sqsserver.Shown{Number: infos[i].Number, Receives: infos[i].Receives}, To: to, Without: without})
	}
	return all
}

func stringAttribute(name, value string) sqsserver.MessageAttribute {
	return sqsserver.MessageAttribute{Name: name, DataType: "String", StringValue: value}
}

// servers runs a test with a server in memory, and with one that has a journal and is restarted before
// the results are looked at.
func servers(t *testing.T, test func(t *testing.T, k *journalServer, restart func() *journalServer)) {
	t.Run("memory", func(t *testing.T) {
		k := &journalServer{newServer(t), t, nil, sqsserver.Config{}}
		test(t, k, func() *journalServer { return k })
	})
	for _, cache := range []int{0, -1} {
		t.Run(fmt.Sprint("journal, cache ", cache), func(t *testing.T) {
			k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{BodyCache: cache})
			test(t, k, k.restart)
		})
	}
}

// A transferred message is a new one, with the attributes that it keeps and digests that fit, whether
// its content changes or not.
func TestTransfer(t *testing.T) {
	servers(t, func(t *testing.T, k *journalServer, restart func() *journalServer) {
		k.create("from", nil)
		k.create("to", nil)
		for _, body := range []string{"plain", `{"quoted": "é\n"}`} {
			k.sendWith("from", body, "tenant", stringAttribute("a", "1"), stringAttribute("story", "s"))
			k.sendWith("from", body+"2", "", stringAttribute("a", "1"))
		}
		before, err := k.Messages("from", sqsserver.Page{})
		if err != nil {
			t.Fatal(err)
		}
		results, err := k.Transfer("from", k.shown("from", k.url("to"), "story", "other"))
		if err != nil || !slices.Equal(results, make([]error, 4)) {
			t.Fatal(results, err)
		}
		k = restart()
		if left, err := k.Messages("from", sqsserver.Page{}); err != nil || len(left) != 0 {
			t.Errorf("%d messages are left, %v", len(left), err)
		}
		got := k.receive("to", 10, 60)
		if len(got) != 4 {
			t.Fatalf("received %d messages", len(got))
		}
		for i, m := range got {
			a := m.Attributes
			if m.Body != before[i].Body || m.MessageId.String() == before[i].ID || a.ApproximateReceiveCount != 1 || a.MessageGroupId != before[i].Group || a.DeadLetterQueueSourceArn != "" {
				t.Errorf("message %d: %+v", i, m)
			}
			if len(m.MessageAttributes) != 1 || m.MessageAttributes[0].Name != "a" || m.MD5OfMessageAttributes != got[1].MD5OfMessageAttributes {
				t.Errorf("message %d has the attributes %v with the digest %x", i, m.MessageAttributes, m.MD5OfMessageAttributes)
			}
		}
		if k.journal != nil {
			if bodies := k.journal.keys('b'); len(bodies) != 4 {
				t.Errorf("the journal has %d bodies, want 4", len(bodies))
			}
		}
	})
}

// What is not as it was shown stays, and so does what its queue does not take; the others go.
func TestTransferRefuses(t *testing.T) {
	servers(t, func(t *testing.T, k *journalServer, _ func() *journalServer) {
		k.create("from", nil)
		k.create("to", map[string]string{"MaximumMessageSize": "1024"})
		for _, body := range []string{"taken", "deleted", strings.Repeat("x", 1025), strings.Repeat("\u00e9", 512), "nowhere", "itself", "goes"} {
			k.send("from", body)
		}
		batch := k.shown("from", "to")
		batch[4].To, batch[5].To = "missing", k.arn("from")
		held := k.receive("from", 2, 60)
		if err := k.deleteMessage("from", held[1].ReceiptHandle); err != nil {
			t.Fatal(err)
		}
		batch = append(batch, batch[6]) // twice
		results, err := k.Transfer("from", batch)
		if err != nil || len(results) != len(batch) {
			t.Fatal(results, err)
		}
		for i, want := range []string{"somebody", "somebody", "too long", "", "does not exist", "in this queue already", "", "somebody"} {
			text := fmt.Sprint(results[i])
			if want == "somebody" && !errors.Is(results[i], sqsserver.ErrTaken) || want == "" && results[i] != nil || !strings.Contains(strings.ToLower(text), want) && want != "" && want != "too long" || want == "too long" && !strings.Contains(text, "1024") {
				t.Errorf("message %d: %v, want %q", i, results[i], want)
			}
		}
		if got := bodies(k.receive("to", 10, 60)); got != strings.Repeat("\u00e9", 512)+" goes" {
			t.Errorf("moved are %.100q", got)
		}
		if _, err := k.Transfer("missing", batch); err == nil {
			t.Error("a queue that does not exist has messages")
		}
		// Deletes have the same rule.
		rest := k.shown("from", "")
		released := k.changeVisibility("from", held[0].ReceiptHandle, 0)
		again := k.receive("from", 1, 0)
		var shown []sqsserver.Shown
		for i := range rest {
			shown = append(shown, rest[i].Shown)
		}
		results, err = k.DeleteShown("from", shown)
		if err != nil || released != nil || len(again) != 1 {
			t.Fatal(results, err, released)
		}
		refused := 0
		for _, why := range results {
			if errors.Is(why, sqsserver.ErrTaken) {
				refused++
			}
		}
		if left, err := k.Messages("from", sqsserver.Page{}); err != nil || refused != 1 || len(left) != 1 || left[0].Receives != again[0].Attributes.ApproximateReceiveCount {
			t.Errorf("%d were refused, and %d are left", refused, len(left))
		}
	})
}

// A FIFO queue takes each transferred message, in the order given, and pages show messages by number.
func TestTransferToFIFO(t *testing.T) {
	servers(t, func(t *testing.T, k *journalServer, restart func() *journalServer) {
		fifo := map[string]string{"FifoQueue": "true"}
		k.create("from.fifo", fifo)
		k.create("plain", nil)
		k.create("to.fifo", fifo)
		for i := range 5 { // so that slots are used again
			k.send("from.fifo", fmt.Sprint("old", i))
		}
		for _, m := range k.receive("from.fifo", 5, 60)[1:] {
			if err := k.deleteMessage("from.fifo", m.ReceiptHandle); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 20 {
			k.sendWith("from.fifo", fmt.Sprint(i), fmt.Sprint("g", i%2))
		}
		k.send("plain", "alone")
		infos, err := k.Messages("from.fifo", sqsserver.Page{})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(infos, func(a, b sqsserver.MessageInfo) int { return int(a.Sequence) - int(b.Sequence) })
		numbers := []uint64{1<<60 + 1}
		for i := range infos {
			numbers = append(numbers, infos[i].Number)
		}
		infos, err = k.Messages("from.fifo", sqsserver.Page{Numbers: numbers})
		if err != nil || len(infos) != 21 {
			t.Fatalf("%d messages, %v", len(infos), err)
		}
		var batch []sqsserver.Transfer
		for i := range infos {
			batch = append(batch, sqsserver.Transfer{Shown: sqsserver.Shown{Number: infos[i].Number, Receives: infos[i].Receives}, To: "to.fifo"})
		}
		results, err := k.Transfer("from.fifo", batch)
		if err != nil || !errors.Is(results[0], sqsserver.ErrTaken) || slices.ContainsFunc(results[1:], func(err error) bool { return err != nil }) {
			t.Fatal(results, err)
		}
		if results, err = k.Transfer("plain", k.shown("plain", "to.fifo")); err != nil || results[0] != nil {
			t.Fatal(results, err)
		}
		k = restart()
		arrived, err := k.Messages("to.fifo", sqsserver.Page{})
		if err != nil || len(arrived) != 21 {
			t.Fatalf("%d messages, %v", len(arrived), err)
		}
		for i := range 20 {
			if m := &arrived[i]; m.Body != fmt.Sprint(i) || m.Group != fmt.Sprint("g", i%2) || m.Deduplication != infos[i+1].ID {
				t.Errorf("message %d is %+v", i, m)
			}
		}
		// Behind one that is refused nothing of its group goes.
		k.create("small.fifo", map[string]string{"FifoQueue": "true", "MaximumMessageSize": "1024"})
		for i, body := range []string{"a", strings.Repeat("b", 2000), "c", "d"} {
			k.sendWith("from.fifo", body, fmt.Sprint("g", i/3))
		}
		results, err = k.Transfer("from.fifo", k.shown("from.fifo", "small.fifo"))
		results = results[1:] // of what is in flight
		if err != nil || results[0] != nil || results[1] == nil || !errors.Is(results[2], sqsserver.ErrBehind) || results[3] != nil {
			t.Error(results, err)
		}
		if alone := arrived[20]; alone.Group == "" || alone.Deduplication != alone.Group {
			t.Errorf("a message without a group: %+v", alone)
		}
	})
}

// A crash at any point leaves each message in exactly one queue, and what was reported as moved in the
// other one.
func TestTransferCrash(t *testing.T) {
	for kept := range 12 {
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		k.create("from", nil)
		k.create("to", nil)
		const all = 100
		for i := range all {
			k.sendWith("from", fmt.Sprint(i), "", stringAttribute("story", "s"))
		}
		batch := k.shown("from", "to", "story")
		if _, err := k.Transfer("from", batch[:40]); err != nil {
			t.Fatal(err)
		}
		// What follows is under way when the process dies.
		release := k.journal.block()
		done := make(chan struct{})
		go func() { defer close(done); _, _ = k.Transfer("from", batch[40:]) }()
		for n, err := 1, error(nil); n > 0; {
			infos, problem := k.Messages("from", sqsserver.Page{WithoutBodies: true})
			if n, err = len(infos), problem; err != nil {
				t.Fatal(err)
			}
		}
		after := openJournalServer(t, k.journal.crash(func(unsynced int) int { return min(kept, unsynced) }), sqsserver.Config{})
		release()
		<-done
		count := make(map[string]int)
		for _, queue := range []string{"from", "to"} {
			infos, err := after.Messages(queue, sqsserver.Page{})
			if err != nil {
				t.Fatal(err)
			}
			if queue == "to" && len(infos) < 40 {
				t.Errorf("%d messages are there of 40 that were moved", len(infos))
			}
			for i := range infos {
				count[infos[i].Body]++
				if stripped := len(infos[i].Attributes) == 0; stripped != (queue == "to") {
					t.Errorf("%s in %s has the attributes %v", infos[i].Body, queue, infos[i].Attributes)
				}
			}
		}
		for i := range all {
			if n := count[fmt.Sprint(i)]; n != 1 {
				t.Errorf("message %d is there %d times", i, n)
			}
		}
	}
}

// TestTransferIsOnDisk: what Transfer and DeleteShown have reported is in the journal, however slow the disk is.
func TestTransferIsOnDisk(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		k.create("from", nil)
		k.create("to", nil)
		const all = 10
		for i := range all {
			k.sendWith("from", fmt.Sprint(i), "")
		}
		batch := k.shown("from", "to")
		shown := make([]sqsserver.Shown, all)
		for i := range batch {
			shown[i] = batch[i].Shown
		}
		k.journal.delay = func() time.Duration { return 50 * time.Millisecond }
		carryOut, arrived := func() ([]error, error) { return k.Transfer("from", batch) }, all
		if deletes {
			carryOut, arrived = func() ([]error, error) { return k.DeleteShown("from", shown) }, 0
		}
		results, err := carryOut()
		after := openJournalServer(t, k.journal.crash(func(int) int { return 0 }), sqsserver.Config{})
		if err != nil || slices.ContainsFunc(results, func(err error) bool { return err != nil }) {
			t.Fatal(results, err)
		}
		if from, to := len(after.shown("from", "")), len(after.shown("to", "")); from != 0 || to != arrived {
			t.Errorf("deletes %v: after a crash %d messages are in the queue and %d in the other, want none and %d", deletes, from, to, arrived)
		}
	}
}

// Transfer returns when all moved messages are on disk. Here the first ones are moved and written without a sync,
// and the last ones are not moved.
func TestTransferIsOnDiskAfterLaterRefusals(t *testing.T) {
	t.Parallel()
	k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
	k.create("from", nil)
	k.create("to", nil)
	large := strings.Repeat("x", 900<<10) // ten are more than a group of changes
	for range 10 {
		k.sendWith("from", large, "", stringAttribute("story", "s"))
	}
	for range 10 {
		k.sendWith("from", "taken", "")
	}
	batch := k.shown("from", k.url("to"), "story")
	k.receive("from", 10, 0) // the large ones, which stay visible
	k.receive("from", 10, 600)
	for i := range batch[:10] {
		batch[i].Receives = 1
	}
	results, err := k.Transfer("from", batch)
	if err != nil || results[9] != nil || !errors.Is(results[10], sqsserver.ErrTaken) || !errors.Is(results[19], sqsserver.ErrTaken) {
		t.Fatal(results, err)
	}
	left := openJournalServer(t, k.journal.crash(func(int) int { return 0 }), sqsserver.Config{})
	if messages, err := left.Messages("to", sqsserver.Page{}); err != nil || len(messages) != 10 {
		t.Errorf("%d messages are there after a crash, %v; want the 10 that were transferred", len(messages), err)
	}
}

// TestDeleteShownLeavesWhatWasReceived: a message that somebody has received since it was shown is left,
// although it is visible again.
func TestDeleteShownLeavesWhatWasReceived(t *testing.T) {
	b := newTestServer(t, nil)
	b.send("a")
	b.send("b")
	infos, err := b.server.Messages("q", sqsserver.Page{})
	if err != nil || len(infos) != 2 {
		t.Fatal(infos, err)
	}
	received := b.receiveOne()[0]
	if err := b.changeVisibility(received.ReceiptHandle, 0); err != nil {
		t.Fatal(err)
	}
	var shown []sqsserver.Shown
	for i := range infos {
		shown = append(shown, sqsserver.Shown{Number: infos[i].Number, Receives: infos[i].Receives})
	}
	results, err := b.server.DeleteShown("q", shown)
	if err != nil {
		t.Fatal(err)
	}
	for i := range infos {
		if taken := infos[i].ID == received.MessageId.String(); errors.Is(results[i], sqsserver.ErrTaken) != taken || !taken && results[i] != nil {
			t.Errorf("%s, received since %v: %v", infos[i].Body, taken, results[i])
		}
	}
	if left, err := b.server.Messages("q", sqsserver.Page{}); err != nil || len(left) != 1 || left[0].ID != received.MessageId.String() {
		t.Errorf("left are %+v, %v", left, err)
	}
}
