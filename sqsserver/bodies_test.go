package sqsserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Bodies that are in memory no more come back from the journal, wherever their
// messages have moved.
func TestColdBodies(t *testing.T) {
	for _, cache := range []int{-1, 1500, 0} {
		t.Run(fmt.Sprintf("cache=%d", cache), func(t *testing.T) {
			k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{BodyCache: cache, NoCooldown: true})
			k.create("dead", nil)
			k.create("q", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + k.arn("dead") + `","maxReceiveCount":1}`})
			in := &sqsserver.SendMessageInput{QueueUrl: k.url("q")}
			in.MessageBody = strings.Repeat("body", 100)
			in.MessageAttributes = []sqsserver.MessageAttribute{
				{Name: "binary", DataType: "Binary.x", BinaryValue: []byte{0, 1, 2}},
				{Name: "text", DataType: "String", StringValue: "value"},
			}
			in.MessageSystemAttributes = []sqsserver.MessageAttribute{
				{Name: "AWSTraceHeader", DataType: "String", StringValue: "Root=1-5759e988-bd862e3fe1be46a994272793"}}
			sent, err := k.SendMessage(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				k.send("q", strings.Repeat(fmt.Sprint(i), 400))
			}
			check := func(k *journalServer, queue string) {
				t.Helper()
				m := k.receive(queue, 1, 0)[0]
				if m.Body != in.MessageBody || m.MD5OfBody != sent.MD5OfMessageBody || m.MD5OfMessageAttributes != sent.MD5OfMessageAttributes ||
					m.Attributes.AWSTraceHeader != in.MessageSystemAttributes[0].StringValue || m.Attributes.SenderId != "000000000000" {
					t.Errorf("received %+v, want what was sent", m)
				}
				if diff := cmp.Diff(in.MessageAttributes, m.MessageAttributes); diff != "" {
					t.Errorf("attributes (-want +got):\n%s", diff)
				}
			}
			check(k, "q")
			k = k.restart()
			for range 6 { // the first to the dead-letter queue, the others once through
				k.receive("q", 1, 0)
			}
			check(k, "dead")
			messages, err := k.Messages("dead", sqsserver.Page{})
			if err != nil || len(messages) == 0 || messages[0].Body != in.MessageBody {
				t.Errorf("an inspection shows %v, %v", messages, err)
			}
			k = k.restart()
			check(k, "dead")

			for _, queue := range []string{"q", "dead"} {
				if err := k.PurgeQueue(t.Context(), &sqsserver.PurgeQueueInput{QueueUrl: k.url(queue)}); err != nil {
					t.Fatal(err)
				}
			}
			if left := len(k.journal.keys('b')) + len(k.journal.keys('m')); left != 0 {
				t.Errorf("%d records of messages left after a purge", left)
			}
		})
	}
}

// TestOrderOfBodies: the messages of a receive come in their order with their bodies,
// some of them from the journal, where bodies are in the order of their sending.
func TestOrderOfBodies(t *testing.T) {
	for _, cache := range []int{-1, 500, 0} { // none is in memory, the latest, all
		t.Run(fmt.Sprintf("cache=%d", cache), func(t *testing.T) {
			k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{BodyCache: cache})
			k.create("q", nil)
			var sent []string
			for _, body := range []string{"a", "b", "c", "d"} {
				k.send("q", body)
			}
			received := k.receive("q", 10, 60)
			for _, i := range []int{2, 0, 3, 1} { // visible again, and to be received, in that order
				sent = append(sent, received[i].MessageId.String()+" "+received[i].Body)
				if err := k.changeVisibility("q", received[i].ReceiptHandle, 0); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, m := range k.receive("q", 10, 60) {
				got = append(got, m.MessageId.String()+" "+m.Body)
			}
			if diff := cmp.Diff(sent, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// A body that is missing, or damaged, stops the server rather than being served
// as something else.
func TestDamagedBody(t *testing.T) {
	for name, damage := range map[string]func(string) (string, bool){
		"missing":   func(string) (string, bool) { return "", false },
		"truncated": func(v string) (string, bool) { return v[:len(v)-1], true },
		"longer":    func(v string) (string, bool) { return v + "x", true },
		"newer":     func(v string) (string, bool) { return "\x03" + v[1:], true },
	} {
		t.Run(name, func(t *testing.T) {
			k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
			k.create("q", nil)
			for _, body := range []string{"a", "b", "c"} {
				k.send("q", body)
			}
			messages, err := k.Messages("q", sqsserver.Page{})
			if err != nil {
				t.Fatal(err)
			}
			k.Close()
			journal := k.journal.reopened()
			key := slices.Sorted(slices.Values(journal.keys('b')))[1]
			if v, kept := damage(journal.data[key]); kept {
				journal.data[key] = v
			} else {
				delete(journal.data, key)
			}
			k = openJournalServer(t, journal, k.config)
			in := &sqsserver.ReceiveMessageInput{QueueUrl: k.url("q"), MaxNumberOfMessages: sqsserver.Int(10)}
			_, err = k.ReceiveMessage(t.Context(), in)
			wantStorageError(t, "the receive", err)
			if err := k.Err(); err == nil || !strings.Contains(err.Error(), messages[1].ID) {
				t.Errorf("Err() = %v, want the message %s", err, messages[1].ID)
			}
		})
	}
}

// A message that is deleted while its body is read is left out of the reply.
func TestBodyDeletedDuringReceive(t *testing.T) {
	k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{BodyCache: -1})
	k.create("q", nil)
	for _, body := range []string{"a", "b", "c"} {
		k.send("q", body)
	}
	infos, err := k.Messages("q", sqsserver.Page{})
	if err != nil {
		t.Fatal(err)
	}
	k.journal.beforeGet = func() {
		k.journal.beforeGet = nil
		if err := k.Delete("q", infos[1].ID); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	if got := bodies(k.receive("q", 10, 60)); got != "a c" {
		t.Errorf("received %q, want a c", got)
	}
	if err := k.Err(); err != nil {
		t.Errorf("the server stopped: %v", err)
	}
}

// A server that is closed while a receive reads its bodies closes its journal when
// they are read.
func TestCloseDuringReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{BodyCache: -1})
		k.create("q", nil)
		k.send("q", "a")
		k.send("q", "b")
		reading, read := make(chan struct{}), make(chan struct{})
		k.journal.beforeGet = func() {
			k.journal.beforeGet = nil
			close(reading)
			<-read
		}
		received := make(chan string, 1)
		go func() { received <- bodies(k.receive("q", 10, 60)) }()
		<-reading
		closed := make(chan error, 1)
		go func() { closed <- k.Close() }()
		synctest.Wait()
		if k.journal.isClosed() {
			t.Error("the journal is closed while a body is read")
		}
		close(read)
		if err := <-closed; err != nil {
			t.Errorf("Close = %v", err)
		}
		if got := <-received; got != "a b" {
			t.Errorf("received %q, want a b", got)
		}
		if k.Err() != nil {
			t.Errorf("Err = %v after Close", k.Err())
		}
	})
}
