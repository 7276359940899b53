package sqsserver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// keptServer is a server with a journal in memory.
type keptServer struct {
	*sqsserver.Server
	t       *testing.T
	journal *memoryJournal
	config  sqsserver.Config
}

func openKept(t *testing.T, journal *memoryJournal, config sqsserver.Config) *keptServer {
	t.Helper()
	config.Journal = journal
	config.Logger = slog.New(slog.DiscardHandler)
	s, err := sqsserver.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	k := &keptServer{s, t, journal, config}
	t.Cleanup(func() { k.Close() })
	return k
}

// restart closes the server and opens another one on what it leaves.
func (k *keptServer) restart() *keptServer {
	k.t.Helper()
	if err := k.Close(); err != nil {
		k.t.Fatalf("close: %v", err)
	}
	return openKept(k.t, k.journal.reopened(), k.config)
}

func (k *keptServer) url(name string) string {
	return "http://sqs.us-east-1.localhost/000000000000/" + name
}
func (k *keptServer) arn(name string) string { return "arn:aws:sqs:us-east-1:000000000000:" + name }

func (k *keptServer) create(name string, attributes map[string]string) {
	k.t.Helper()
	_, err := k.CreateQueue(context.Background(), &sqsserver.CreateQueueInput{QueueName: name, Attributes: attributes})
	if err != nil {
		k.t.Fatalf("create %s: %v", name, err)
	}
}

func (k *keptServer) send(queue, body string) {
	k.t.Helper()
	if err := k.trySend(queue, body); err != nil {
		k.t.Fatalf("send %s: %v", body, err)
	}
}

func (k *keptServer) trySend(queue, body string) error {
	in := &sqsserver.SendMessageInput{QueueUrl: k.url(queue)}
	in.MessageBody = body
	if strings.HasSuffix(queue, ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = "g", body
	}
	_, err := k.SendMessage(context.Background(), in)
	return err
}

// receive returns up to n messages, for the lease given in seconds.
func (k *keptServer) receive(queue string, n, lease int32) []sqsserver.Message {
	k.t.Helper()
	out, err := k.ReceiveMessage(context.Background(), &sqsserver.ReceiveMessageInput{
		QueueUrl: k.url(queue), MaxNumberOfMessages: sqsserver.Int(n), VisibilityTimeout: sqsserver.Int(lease),
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []string{"All"},
	})
	if err != nil {
		k.t.Fatalf("receive: %v", err)
	}
	return out.Messages
}

func (k *keptServer) deleteMessage(queue, handle string) error {
	return k.DeleteMessage(context.Background(), &sqsserver.DeleteMessageInput{QueueUrl: k.url(queue), ReceiptHandle: handle})
}

func (k *keptServer) changeVisibility(queue, handle string, seconds int32) error {
	return k.ChangeMessageVisibility(context.Background(), &sqsserver.ChangeMessageVisibilityInput{
		QueueUrl: k.url(queue), ReceiptHandle: handle, VisibilityTimeout: sqsserver.Int(seconds)})
}

func bodies(messages []sqsserver.Message) string {
	var all []string
	for _, m := range messages {
		all = append(all, m.Body)
	}
	return strings.Join(all, " ")
}

// Behind a sync that blocks no acknowledgement may escape of what must survive,
// and what need not survive goes on.
func TestNothingIsAcknowledgedBeforeItIsSynced(t *testing.T) {
	ctx := context.Background()
	handleOf := func(k *keptServer) string { return k.receive("q", 1, 60)[0].ReceiptHandle }
	messageID := func(k *keptServer) string {
		messages, err := k.Messages("q", sqsserver.Page{Limit: 1})
		if err != nil || len(messages) != 1 {
			t.Errorf("messages: %v, %v", messages, err)
		}
		return messages[0].ID
	}
	for _, test := range []struct {
		name  string
		waits bool
		do    func(k *keptServer) func() error
	}{
		{"SendMessage", true, func(k *keptServer) func() error {
			return func() error { return k.trySend("q", "x") }
		}},
		{"SendMessageBatch", true, func(k *keptServer) func() error {
			in := &sqsserver.SendMessageBatchInput{QueueUrl: k.url("q"), Entries: make([]sqsserver.SendMessageBatchRequestEntry, 1)}
			in.Entries[0].Id, in.Entries[0].MessageBody = "1", "x"
			return func() error { _, err := k.SendMessageBatch(ctx, in); return err }
		}},
		{"SendMessage of a duplicate under way", true, func(k *keptServer) func() error {
			go k.trySend("f.fifo", "same")
			synctest.Wait()
			return func() error { return k.trySend("f.fifo", "same") }
		}},
		{"DeleteMessage", true, func(k *keptServer) func() error {
			handle := handleOf(k)
			return func() error { return k.deleteMessage("q", handle) }
		}},
		{"DeleteMessage of what is being deleted", true, func(k *keptServer) func() error {
			handle := handleOf(k)
			go k.deleteMessage("q", handle)
			synctest.Wait()
			return func() error { return k.deleteMessage("q", handle) }
		}},
		{"DeleteMessageBatch", true, func(k *keptServer) func() error {
			in := &sqsserver.DeleteMessageBatchInput{QueueUrl: k.url("q"), Entries: []sqsserver.DeleteMessageBatchRequestEntry{{Id: "1", ReceiptHandle: handleOf(k)}}}
			return func() error { _, err := k.DeleteMessageBatch(ctx, in); return err }
		}},
		{"CreateQueue", true, func(k *keptServer) func() error {
			return func() error {
				_, err := k.CreateQueue(ctx, &sqsserver.CreateQueueInput{QueueName: "new"})
				return err
			}
		}},
		{"CreateQueue of one that is being created", true, func(k *keptServer) func() error {
			create := func() error {
				_, err := k.CreateQueue(ctx, &sqsserver.CreateQueueInput{QueueName: "new"})
				return err
			}
			go create()
			synctest.Wait()
			return create
		}},
		{"SetQueueAttributes", true, func(k *keptServer) func() error {
			return func() error {
				return k.SetQueueAttributes(ctx, &sqsserver.SetQueueAttributesInput{QueueUrl: k.url("q"), Attributes: map[string]string{"DelaySeconds": "1"}})
			}
		}},
		{"PurgeQueue", true, func(k *keptServer) func() error {
			return func() error { return k.PurgeQueue(ctx, &sqsserver.PurgeQueueInput{QueueUrl: k.url("q")}) }
		}},
		{"DeleteQueue", true, func(k *keptServer) func() error {
			return func() error { return k.DeleteQueue(ctx, &sqsserver.DeleteQueueInput{QueueUrl: k.url("q")}) }
		}},
		{"TagQueue", true, func(k *keptServer) func() error {
			return func() error {
				return k.TagQueue(ctx, &sqsserver.TagQueueInput{QueueUrl: k.url("q"), Tags: map[string]string{"a": "b"}})
			}
		}},
		{"UntagQueue", true, func(k *keptServer) func() error {
			return func() error {
				return k.UntagQueue(ctx, &sqsserver.UntagQueueInput{QueueUrl: k.url("q"), TagKeys: []string{"a"}})
			}
		}},
		{"AddPermission", true, func(k *keptServer) func() error {
			return func() error { return k.addPermission() }
		}},
		{"RemovePermission", true, func(k *keptServer) func() error {
			k.inBackground(k.addPermission)
			return func() error {
				return k.RemovePermission(ctx, &sqsserver.RemovePermissionInput{QueueUrl: k.url("q"), Label: "label"})
			}
		}},
		{"StartMessageMoveTask", true, func(k *keptServer) func() error { return k.startMove }},
		{"CancelMessageMoveTask", true, func(k *keptServer) func() error {
			k.inBackground(k.startMove)
			return func() error {
				tasks, err := k.ListMessageMoveTasks(ctx, &sqsserver.ListMessageMoveTasksInput{SourceArn: k.arn("dead")})
				if err != nil {
					return err
				}
				_, err = k.CancelMessageMoveTask(ctx, &sqsserver.CancelMessageMoveTaskInput{TaskHandle: tasks.Results[0].TaskHandle})
				return err
			}
		}},
		{"an operator's Delete", true, func(k *keptServer) func() error {
			return func() error { return k.Delete("q", messageID(k)) }
		}},
		{"an operator's DeadLetter", true, func(k *keptServer) func() error {
			return func() error { return k.DeadLetter("q", messageID(k)) }
		}},

		{"ReceiveMessage", false, func(k *keptServer) func() error {
			return func() error {
				if got := bodies(k.receive("q", 10, 60)); got != "a b" {
					return fmt.Errorf("received %q, want a and b", got)
				}
				return nil
			}
		}},
		{"ReceiveMessage of what is being sent", false, func(k *keptServer) func() error {
			go k.trySend("dead", "x")
			synctest.Wait()
			return func() error {
				if got := bodies(k.receive("dead", 10, 60)); got != "x" {
					return fmt.Errorf("received %q, want x", got)
				}
				return nil
			}
		}},
		{"ChangeMessageVisibility", false, func(k *keptServer) func() error {
			handle := handleOf(k)
			return func() error { return k.changeVisibility("q", handle, 0) }
		}},
		{"GetQueueAttributes", false, func(k *keptServer) func() error {
			return func() error {
				_, err := k.GetQueueAttributes(ctx, &sqsserver.GetQueueAttributesInput{QueueUrl: k.url("q"), AttributeNames: []string{"All"}})
				return err
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := openKept(t, newMemoryJournal(), sqsserver.Config{BodyCache: -1})
				k.create("dead", nil)
				k.create("q", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + k.arn("dead") + `","maxReceiveCount":5}`})
				k.create("f.fifo", map[string]string{"FifoQueue": "true"})
				k.send("q", "a")
				k.send("q", "b")
				release := k.journal.block()

				do := test.do(k)
				result := make(chan error, 1)
				go func() { result <- do() }()
				time.Sleep(time.Hour) // of the bubble: whatever can happen has happened
				synctest.Wait()
				select {
				case err := <-result:
					if test.waits {
						t.Errorf("acknowledged (%v) before the sync", err)
					} else if err != nil {
						t.Error(err)
					}
					release()
				default:
					if !test.waits {
						t.Error("waits for the sync")
					}
					release()
					if err := <-result; err != nil {
						t.Errorf("after the sync: %v", err)
					}
				}
			})
		})
	}
}

func (k *keptServer) addPermission() error {
	return k.AddPermission(context.Background(), &sqsserver.AddPermissionInput{
		QueueUrl: k.url("q"), Label: "label", AWSAccountIds: []string{"123456789012"}, Actions: []string{"SendMessage"}})
}

func (k *keptServer) startMove() error {
	_, err := k.StartMessageMoveTask(context.Background(), &sqsserver.StartMessageMoveTaskInput{
		SourceArn: k.arn("dead"), DestinationArn: k.arn("q"), MaxNumberOfMessagesPerSecond: sqsserver.Int(1)})
	return err
}

// inBackground begins what a blocked journal holds up.
func (k *keptServer) inBackground(do func() error) {
	go do()
	synctest.Wait()
}

// Receives are written in a moment even if nobody waits for them, without sync;
// then the server is at rest.
func TestReceivesAreWrittenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openKept(t, newMemoryJournal(), sqsserver.Config{})
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
		k := openKept(t, newMemoryJournal(), sqsserver.Config{})
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

// After its journal has failed a server acknowledges nothing, and says so.
func TestFailStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openKept(t, newMemoryJournal(), sqsserver.Config{})
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
	k := openKept(t, newMemoryJournal(), sqsserver.Config{})
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

// Bodies that are in memory no more come back from the journal, wherever their
// messages have moved.
func TestColdBodies(t *testing.T) {
	for _, cache := range []int{-1, 1500, 0} {
		t.Run(fmt.Sprintf("cache=%d", cache), func(t *testing.T) {
			k := openKept(t, newMemoryJournal(), sqsserver.Config{BodyCache: cache, NoCooldown: true})
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
			check := func(k *keptServer, queue string) {
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

// A body that is missing, or damaged, stops the server rather than being served
// as something else.
func TestDamagedBody(t *testing.T) {
	for name, damage := range map[string]func(string) (string, bool){
		"missing":   func(string) (string, bool) { return "", false },
		"truncated": func(v string) (string, bool) { return v[:len(v)-1], true },
		"longer":    func(v string) (string, bool) { return v + "x", true },
		"newer":     func(v string) (string, bool) { return "\x02" + v[1:], true },
	} {
		t.Run(name, func(t *testing.T) {
			k := openKept(t, newMemoryJournal(), sqsserver.Config{})
			k.create("q", nil)
			k.send("q", "a")
			k.Close()
			journal := k.journal.reopened()
			for _, key := range journal.keys('b') {
				if v, kept := damage(journal.data[key]); kept {
					journal.data[key] = v
				} else {
					delete(journal.data, key)
				}
			}
			k = openKept(t, journal, k.config)
			_, err := k.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: k.url("q")})
			wantStorageError(t, "the receive", err)
			if k.Err() == nil {
				t.Error("Err() = nil")
			}
		})
	}
}

// A message that is deleted while its body is read is left out of the reply.
func TestBodyDeletedDuringReceive(t *testing.T) {
	k := openKept(t, newMemoryJournal(), sqsserver.Config{BodyCache: -1})
	k.create("q", nil)
	k.send("q", "a")
	k.send("q", "b")
	infos, err := k.Messages("q", sqsserver.Page{})
	if err != nil {
		t.Fatal(err)
	}
	k.journal.beforeGet = func() {
		k.journal.beforeGet = nil
		if err := k.Delete("q", infos[0].ID); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	if got := bodies(k.receive("q", 10, 60)); got != "b" {
		t.Errorf("received %q, want b", got)
	}
	if err := k.Err(); err != nil {
		t.Errorf("the server stopped: %v", err)
	}
}

// The conformance suite on a server whose bodies are in its journal only, and on
// one that is started anew before each request.
func TestConformanceWithJournal(t *testing.T) {
	for _, c := range allCases(t) {
		if !c.fits("typed") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := openKept(t, newMemoryJournal(), sqsserver.Config{Seed: 1, BodyCache: -1})
				c.run(t, typedDoor{k.Server})
			})
		})
		t.Run(c.name+"/restarting", func(t *testing.T) {
			for prefix, why := range notKept {
				if strings.HasPrefix(c.name, prefix) {
					t.Skip(why)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				k := openKept(t, newMemoryJournal(), sqsserver.Config{Seed: 1})
				c.run(t, &restartingDoor{k})
			})
		})
	}
}

// notKept are the cases, by the beginning of their names, that a server started
// anew does not pass, and why.
var notKept = map[string]string{
	"attempts/": "the attempts of receives are not kept",
	"fifo/a group that was served goes behind the others": "whose turn it is among groups is not kept",
	"receive/what was returned goes behind what is there": "the order among visible messages is not kept",
	"movetasks/": "the pause of a move task begins anew",
}

// restartingDoor is a door into a server that was started a moment ago.
type restartingDoor struct{ k *keptServer }

func (d *restartingDoor) call(ctx context.Context, action string, input []byte) ([]byte, string, string, error) {
	d.k = d.k.restart()
	return typedDoor{d.k.Server}.call(ctx, action, input)
}
