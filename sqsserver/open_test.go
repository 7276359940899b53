package sqsserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// snapshot is all that can be asked of a server without changing it.
type snapshot struct {
	Queues     []sqsserver.QueueInfo
	Attributes map[string]map[string]string
	Messages   map[string][]sqsserver.MessageInfo
	Moves      map[string][]sqsserver.ListMessageMoveTasksResultEntry
}

func (k *journalServer) snapshot() snapshot {
	k.t.Helper()
	s := snapshot{
		Queues:     k.Queues(),
		Attributes: map[string]map[string]string{},
		Messages:   map[string][]sqsserver.MessageInfo{},
		Moves:      map[string][]sqsserver.ListMessageMoveTasksResultEntry{},
	}
	ctx := context.Background()
	for _, q := range s.Queues {
		attributes, err := k.GetQueueAttributes(ctx, &sqsserver.GetQueueAttributesInput{QueueUrl: q.URL, AttributeNames: []string{"All"}})
		if err != nil {
			k.t.Fatal(err)
		}
		s.Attributes[q.Name] = attributes.Attributes
		if s.Messages[q.Name], err = k.Messages(q.Name, sqsserver.Page{}); err != nil {
			k.t.Fatal(err)
		}
		for i := range s.Messages[q.Name] { // in-memory times know their place
			m := &s.Messages[q.Name][i]
			m.Due, m.Sent, m.FirstReceived = m.Due.UTC(), m.Sent.UTC(), m.FirstReceived.UTC()
		}
		moves, err := k.ListMessageMoveTasks(ctx, &sqsserver.ListMessageMoveTasksInput{SourceArn: q.ARN, MaxResults: sqsserver.Int(10)})
		if err != nil {
			k.t.Fatal(err)
		}
		s.Moves[q.Name] = moves.Results
	}
	for i := range s.Queues {
		s.Queues[i].Created = s.Queues[i].Created.Round(0).UTC()
	}
	return s
}

func TestRestartBringsEverythingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		k.create("dead", map[string]string{"MessageRetentionPeriod": "1209600", "RedriveAllowPolicy": `{"redrivePermission":"allowAll"}`})
		_, err := k.CreateQueue(ctx, &sqsserver.CreateQueueInput{QueueName: "q", Tags: map[string]string{"team": "a", "Ü": ""}, Attributes: map[string]string{
			"DelaySeconds": "1", "MaximumMessageSize": "2048", "MessageRetentionPeriod": "7200", "ReceiveMessageWaitTimeSeconds": "0",
			"VisibilityTimeout": "600", "KmsMasterKeyId": "alias/key", "KmsDataKeyReusePeriodSeconds": "600",
			"RedrivePolicy": `{"deadLetterTargetArn":"` + k.arn("dead") + `","maxReceiveCount":2}`,
		}})
		must(err)
		must(k.addPermission())
		k.create("f.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true",
			"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"})
		must(k.SetQueueAttributes(ctx, &sqsserver.SetQueueAttributesInput{QueueUrl: k.url("f.fifo"), Attributes: map[string]string{"VisibilityTimeout": "5"}}))
		must(k.TagQueue(ctx, &sqsserver.TagQueueInput{QueueUrl: k.url("dead"), Tags: map[string]string{"k": "v", "gone": "x"}}))
		must(k.UntagQueue(ctx, &sqsserver.UntagQueueInput{QueueUrl: k.url("dead"), TagKeys: []string{"gone"}}))

		for i := range 30 {
			k.send("q", fmt.Sprint("m", i))
			k.send("f.fifo", fmt.Sprint("f", i))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		for range 6 { // all are received twice, and go to the dead-letter queue with the next
			k.receive("q", 10, 0)
		}
		for i := range 10 {
			k.send("q", fmt.Sprint("n", i))
		}
		time.Sleep(time.Second)
		held := k.receive("q", 5, 600)
		must(k.deleteMessage("q", held[0].ReceiptHandle))
		must(k.changeVisibility("q", held[1].ReceiptHandle, 0))
		must(k.changeVisibility("q", held[2].ReceiptHandle, 7000))
		heldFIFO := k.receive("f.fifo", 2, 600)
		must(k.deleteMessage("f.fifo", heldFIFO[0].ReceiptHandle))
		k.send("q", "delayed")
		if _, err = k.StartMessageMoveTask(ctx, &sqsserver.StartMessageMoveTaskInput{
			SourceArn: k.arn("dead"), MaxNumberOfMessagesPerSecond: sqsserver.Int(1)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // one is moved

		before := k.snapshot()
		if n := len(before.Messages["dead"]); n == 0 || before.Moves["dead"][0].ApproximateNumberOfMessagesMoved != 1 {
			t.Fatalf("%d dead letters, tasks %+v: the test does not test what it should", n, before.Moves["dead"])
		}
		k = k.restart()
		if diff := cmp.Diff(before, k.snapshot()); diff != "" {
			t.Fatalf("after the restart (-before +after):\n%s", diff)
		}

		// The servers behave the same afterwards, too.
		k.send("f.fifo", "f0") // a duplicate of a deleted message
		if n := len(k.snapshot().Messages["f.fifo"]); n != 29 {
			t.Errorf("%d messages in the FIFO queue, want 29: a duplicate is recognized", n)
		}
		must(k.deleteMessage("q", held[3].ReceiptHandle))
		must(k.changeVisibility("q", held[2].ReceiptHandle, 1))
		must(k.deleteMessage("f.fifo", heldFIFO[1].ReceiptHandle))
		if got := bodies(k.receive("f.fifo", 3, 600)); got != "f2 f3 f4" {
			t.Errorf("received %q from the FIFO queue, want what comes next", got)
		}
		seen := map[uint64]bool{}
		for _, m := range before.Messages["q"] {
			seen[m.Number] = true
		}
		k.send("q", "new")
		after := k.snapshot().Messages["q"]
		for _, m := range after {
			if m.Body == "new" && seen[m.Number] {
				t.Errorf("a new message has the number %d of one before", m.Number)
			}
		}
		time.Sleep(time.Minute)
		if task := k.snapshot().Moves["dead"][0]; task.Status != "COMPLETED" {
			t.Errorf("the move task is %+v, want it completed after the restart", task)
		}
	})
}

// Cooldowns, retention and the memory of duplicates go by the clock, not by how
// long the server ran.
func TestTimeGoesOnWhileDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		k.create("q", map[string]string{"MessageRetentionPeriod": "3600"})
		k.create("gone", nil)
		k.create("f.fifo", map[string]string{"FifoQueue": "true"})
		purge := &sqsserver.PurgeQueueInput{QueueUrl: k.url("q")}
		if err := k.PurgeQueue(ctx, purge); err != nil {
			t.Fatal(err)
		}
		if err := k.DeleteQueue(ctx, &sqsserver.DeleteQueueInput{QueueUrl: k.url("gone")}); err != nil {
			t.Fatal(err)
		}
		k.send("f.fifo", "once")
		k.send("q", "hidden")
		k.receive("q", 1, 30)
		k.send("q", "old")

		k = k.restart()
		_, err := k.CreateQueue(ctx, &sqsserver.CreateQueueInput{QueueName: "gone"})
		if !hasCode(err, "AWS.SimpleQueueService.QueueDeletedRecently") {
			t.Errorf("to create a queue deleted a moment ago: %v", err)
		}
		if err := k.PurgeQueue(ctx, purge); !hasCode(err, "AWS.SimpleQueueService.PurgeQueueInProgress") {
			t.Errorf("to purge twice within 60 seconds: %v", err)
		}
		time.Sleep(time.Minute)
		k = k.restart()
		k.create("gone", nil)
		if got := bodies(k.receive("q", 10, 0)); got != "old hidden" && got != "hidden old" {
			t.Errorf("received %q, want also what was hidden until its lease ended", got)
		}
		k.send("f.fifo", "once")
		if n := len(k.snapshot().Messages["f.fifo"]); n != 1 {
			t.Errorf("%d messages after a duplicate, want 1", n)
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}

		time.Sleep(time.Hour)
		k = openJournalServer(t, k.journal.reopened(), k.config)
		if got := bodies(k.receive("q", 10, 0)); got != "" {
			t.Errorf("received %q, whose retention ended while the server was down", got)
		}
		k.send("f.fifo", "once")
		if n := len(k.snapshot().Messages["f.fifo"]); n != 2 {
			t.Errorf("%d messages, want 2: the memory of duplicates ended while the server was down", n)
		}
		if err := k.PurgeQueue(ctx, purge); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		for _, kind := range []byte{'b', 'm'} {
			if n := len(k.journal.keys(kind)); n != 2 {
				t.Errorf("%d records %c, want those of 2 messages: what expired is gone", n, kind)
			}
		}
	})
}

func hasCode(err error, code string) bool {
	var e *sqsserver.Error
	return errors.As(err, &e) && e.Code == code
}

// A deleted message leaves nothing on disk.
func TestNothingIsLeftOfWhatIsGone(t *testing.T) {
	k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{NoCooldown: true})
	k.create("q", nil)
	k.create("f.fifo", map[string]string{"FifoQueue": "true"})
	for _, queue := range []string{"q", "f.fifo"} {
		k.send(queue, "a")
		k.send(queue, "b")
		if err := k.deleteMessage(queue, k.receive(queue, 1, 60)[0].ReceiptHandle); err != nil {
			t.Fatal(err)
		}
		if err := k.DeleteQueue(t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: k.url(queue)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []byte("qtdmb") {
		if keys := k.journal.keys(kind); len(keys) > 0 {
			t.Errorf("records %q are left", keys)
		}
	}
}

// A server that starts again and again, and crashes at once, gives no number and
// no id twice, even from the same seed.
func TestNumbersAreNotUsedAgain(t *testing.T) {
	k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{Seed: 1})
	k.create("q", nil)
	numbers, ids := map[uint64]bool{}, map[string]bool{}
	for range 5 {
		release := k.journal.block()
		sent := make(chan error)
		go func() { sent <- k.trySend("q", "x") }()
		var messages []sqsserver.MessageInfo
		for len(messages) == 0 {
			messages, _ = k.Messages("q", sqsserver.Page{})
			time.Sleep(time.Millisecond)
		}
		m := messages[0]
		if numbers[m.Number] || ids[m.ID] {
			t.Errorf("message %s, number %d, came before", m.ID, m.Number)
		}
		numbers[m.Number], ids[m.ID] = true, true
		left := k.journal.crash(func(int) int { return 0 })
		release()
		<-sent
		k.Close()
		k = openJournalServer(t, left, k.config)
	}
}

func TestOpenRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(j *memoryJournal)
		want   string
	}{
		{"a newer format", func(j *memoryJournal) { j.data["v"] = "\x03" }, "format"},
		{"a much older format", func(j *memoryJournal) { j.data["v"] = "\x00" }, "reads formats 1 and 2"},
		{"a newer format, half converted", func(j *memoryJournal) { j.data["v"] = "\x03\x02" }, "have the format [3 2]"},
		{"records without a format", func(j *memoryJournal) { delete(j.data, "v") }, "none that states their format"},
		{"a newer queue", func(j *memoryJournal) { j.change('q', func(v string) string { return "\x03" + v[1:] }) }, "version is 3"},
		{"half a queue", func(j *memoryJournal) { j.change('q', func(v string) string { return v[:len(v)/2] }) }, "ends early"},
		{"an unknown attribute", func(j *memoryJournal) {
			j.change('q', func(v string) string { return strings.Replace(v, "DelaySeconds", "DelayMinutes", 1) })
		}, "DelayMinutes"},
		{"no queue", func(j *memoryJournal) {
			for _, key := range j.keys('q') {
				delete(j.data, key)
			}
		}, "no record"},
		{"a newer message", func(j *memoryJournal) { j.change('m', func(v string) string { return "\x03" + v[1:] }) }, "version is 3"},
		{"half a message", func(j *memoryJournal) { j.change('m', func(v string) string { return v[:len(v)/2] }) }, "ends early"},
		{"more than a message", func(j *memoryJournal) { j.change('m', func(v string) string { return v + "x" }) }, "follow its end"},
		{"an unknown flag", func(j *memoryJournal) { j.change('m', func(v string) string { return v[:1] + "\xff" + v[2:] }) }, "flags"},
		{"a key that is too long", func(j *memoryJournal) { j.data[j.keys('m')[0]+"x"] = "" }, "bytes"},
		{"half an acceptance", func(j *memoryJournal) { j.change('d', func(v string) string { return v[:9] }) }, "ends early"},
		{"half a deletion", func(j *memoryJournal) { j.change('n', func(v string) string { return v[:1] }) }, "ends early"},
		{"a deletion of nothing", func(j *memoryJournal) { j.data["nx"] = "\x02\x02" }, "names no queue"},
		{"half a number", func(j *memoryJournal) { j.data["s"] = "\x02\x80" }, "ends early"},
		{"half a task", func(j *memoryJournal) { j.change('t', func(v string) string { return v[:20] }) }, "ends early"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
			k.create("gone", nil)
			if err := k.DeleteQueue(t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: k.url("gone")}); err != nil {
				t.Fatal(err)
			}
			k.create("f.fifo", map[string]string{"FifoQueue": "true"})
			k.create("s.fifo", map[string]string{"FifoQueue": "true",
				"RedrivePolicy": `{"deadLetterTargetArn":"` + k.arn("f.fifo") + `","maxReceiveCount":1}`})
			k.send("f.fifo", "a")
			if _, err := k.StartMessageMoveTask(t.Context(), &sqsserver.StartMessageMoveTaskInput{
				SourceArn: k.arn("f.fifo"), DestinationArn: k.arn("s.fifo"), MaxNumberOfMessagesPerSecond: sqsserver.Int(1)}); err != nil {
				t.Fatal(err)
			}
			k.Close()
			journal := k.journal.reopened()
			test.damage(journal)
			if s, err := sqsserver.Open(journal, k.config); err == nil {
				s.Close()
				t.Fatal("opened")
			} else if !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %q, want it to say %q", err, test.want)
			}
			if commits, _ := journal.writes(); commits > 0 || journal.closed {
				t.Errorf("the journal had %d commits, closed: %v; want it left alone", commits, journal.closed)
			}
		})
	}
}

// change changes every value of a kind.
func (j *memoryJournal) change(kind byte, f func(string) string) {
	for _, key := range j.keys(kind) {
		j.data[key] = f(j.data[key])
	}
}

// A server that was meant to keep things must not keep them in memory without a word.
func TestOpenNeedsAJournal(t *testing.T) {
	if s, err := sqsserver.Open(nil, sqsserver.Config{}); err == nil {
		s.Close()
		t.Error("opened without a journal")
	} else if !strings.Contains(err.Error(), "no journal") || !strings.Contains(err.Error(), "New") {
		t.Errorf("the error is %q: it should name the problem and the remedy", err)
	}
}
