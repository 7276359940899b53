package sqsserver_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// A machine crashes under load, again and again, at random moments, with any part of the
// unsynced writes on its disk. Then every acknowledged message is there, once, and in order;
// deleted messages do not come back; and a receive is counted if a later request was
// acknowledged.
func TestCrashes(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newCrashWorld(t, uint64(seed))
			for range 5 {
				w.run()
				w.crash()
				w.audit()
			}
			w.drain()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// crashWorld is a server under load and what its clients know.
type crashWorld struct {
	*journalServer
	random *rand.Rand // of the goroutine of the test

	mu      sync.Mutex // guards what follows
	crashed bool
	sent    map[string]*fate
	names   int
	held    []heldMessage
	// received are the receives in their order; so many of them came before an
	// operation that has been acknowledged.
	received []receivedMessage
	safe     int
	acked    int // operations, lest the test tests nothing
}

// fate is what the test knows of a message, which its body identifies.
type fate struct {
	queue                     string
	sent, deleting, isDeleted bool // acknowledged; tried; acknowledged
}

type heldMessage struct{ queue, body, handle string }

type receivedMessage struct {
	body  string
	count int
}

const crashWorkers = 6

func newCrashWorld(t *testing.T, seed uint64) *crashWorld {
	journal := newMemoryJournal()
	delays := rand.New(rand.NewPCG(seed, 1))
	journal.delay = func() time.Duration { return time.Duration(delays.Int64N(int64(2 * time.Millisecond))) }
	cache := []int{-1, 200, 0}[seed%3]
	k := openJournalServer(t, journal, sqsserver.Config{BodyCache: cache, NoCooldown: true, Seed: seed + 1})
	k.create("dead", nil)
	k.create("q", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + k.arn("dead") + `","maxReceiveCount":2}`})
	k.create("f.fifo", map[string]string{"FifoQueue": "true"})
	return &crashWorld{journalServer: k, random: rand.New(rand.NewPCG(seed, 2)), sent: map[string]*fate{}}
}

// run loads the server for some milliseconds and then crashes the machine.
func (w *crashWorld) run() {
	var workers sync.WaitGroup
	for id := range crashWorkers {
		random := rand.New(rand.NewPCG(w.random.Uint64(), 3))
		workers.Go(func() {
			for w.isUp() {
				time.Sleep(time.Duration(random.Int64N(int64(time.Millisecond))))
				w.step(id, random)
			}
		})
	}
	time.Sleep(time.Duration(w.random.Int64N(int64(40 * time.Millisecond))))
	w.mu.Lock()
	w.crashed = true
	w.mu.Unlock()
	// The journal is crashed while the workers go on; what they are told from now
	// on must be an error.
	left := w.journal.crash(func(unsynced int) int { return w.random.IntN(unsynced + 1) })
	workers.Wait()
	w.Close()
	w.journal = left
}

func (w *crashWorld) isUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.crashed
}

func (w *crashWorld) step(id int, random *rand.Rand) {
	switch op := random.IntN(10); {
	case op < 3:
		w.sendSome(id, []string{"q", "f.fifo"}[op%2], 1+random.IntN(4))
	case op < 7:
		w.receiveSome([]string{"q", "q", "f.fifo", "dead"}[op-3])
	case op < 9:
		if m, ok := w.take(random); ok {
			w.deleteOne(m)
		}
	default:
		if m, ok := w.take(random); ok {
			w.outcome(w.changeVisibility(m.queue, m.handle, 0))
		}
	}
}

// outcome reports whether an operation was acknowledged. Before the crash nothing
// may fail.
func (w *crashWorld) outcome(err error) bool {
	if err == nil {
		return true
	}
	if w.isUp() {
		w.t.Errorf("before the crash: %v", err)
	}
	return false
}

// beginDurable returns what to call when an operation that begins now has been
// acknowledged: then all receives that had ended before are safe.
func (w *crashWorld) beginDurable() (acknowledged func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.received)
	return func() {
		w.safe = max(w.safe, before)
		w.acked++
	}
}

func (w *crashWorld) sendSome(id int, queue string, n int) {
	in := &sqsserver.SendMessageBatchInput{QueueUrl: w.url(queue)}
	w.mu.Lock()
	for range n {
		w.names++
		body := fmt.Sprintf("%s-%d-%06d", queue, id, w.names)
		w.sent[body] = &fate{queue: queue}
		in.Entries = append(in.Entries, crashEntry(queue, id, body))
	}
	w.mu.Unlock()
	acknowledged := w.beginDurable()
	_, err := w.SendMessageBatch(context.Background(), in)
	if !w.outcome(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	acknowledged()
	for i := range in.Entries {
		w.sent[in.Entries[i].MessageBody].sent = true
	}
}

// crashEntry is a message of a worker, whose messages are one group.
func crashEntry(queue string, id int, body string) sqsserver.SendMessageBatchRequestEntry {
	entry := sqsserver.SendMessageBatchRequestEntry{Id: body[strings.LastIndexByte(body, '-')+1:]}
	entry.MessageBody = body
	if queue == "f.fifo" {
		entry.MessageGroupId, entry.MessageDeduplicationId = fmt.Sprint("worker-", id), body
	}
	return entry
}

func (w *crashWorld) receiveSome(queue string) {
	out, err := w.ReceiveMessage(context.Background(), &sqsserver.ReceiveMessageInput{
		QueueUrl: w.url(queue), MaxNumberOfMessages: sqsserver.Int(3), VisibilityTimeout: sqsserver.Int(3600),
		MessageSystemAttributeNames: []string{"ApproximateReceiveCount"},
	})
	if !w.outcome(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range out.Messages {
		f := w.sent[m.Body]
		if f == nil || f.isDeleted {
			w.t.Errorf("received %q, which is %+v", m.Body, f)
		}
		w.received = append(w.received, receivedMessage{m.Body, m.Attributes.ApproximateReceiveCount})
		w.held = append(w.held, heldMessage{queue, m.Body, m.ReceiptHandle})
	}
}

func (w *crashWorld) take(random *rand.Rand) (heldMessage, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return heldMessage{}, false
	}
	i := random.IntN(len(w.held))
	m := w.held[i]
	w.held = slices.Delete(w.held, i, i+1)
	return m, true
}

func (w *crashWorld) deleteOne(m heldMessage) {
	w.mu.Lock()
	w.sent[m.body].deleting = true
	w.mu.Unlock()
	acknowledged := w.beginDurable()
	if !w.outcome(w.deleteMessage(m.queue, m.handle)) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	acknowledged()
	w.sent[m.body].isDeleted = true
}

// crash brings the server up again on what the crash has left.
func (w *crashWorld) crash() {
	w.journalServer = openJournalServer(w.t, w.journal, w.config)
	w.crashed = false
}

// present lists the messages in the queues, by body, and fails if a body is there twice, or a
// FIFO group is out of order.
func (w *crashWorld) present() map[string]sqsserver.MessageInfo {
	all := map[string]sqsserver.MessageInfo{}
	for _, queue := range []string{"q", "f.fifo", "dead"} {
		messages, err := w.Messages(queue, sqsserver.Page{})
		if err != nil {
			w.t.Fatal(err)
		}
		slices.SortFunc(messages, func(a, b sqsserver.MessageInfo) int { return cmp.Compare(a.Sequence, b.Sequence) })
		last := map[string]string{}
		for _, m := range messages {
			if _, twice := all[m.Body]; twice {
				w.t.Errorf("%s is there twice", m.Body)
			}
			if m.Group != "" && m.Body <= last[m.Group] {
				w.t.Errorf("%s comes after %s in its group", m.Body, last[m.Group])
			}
			last[m.Group] = m.Body
			all[m.Body] = m
		}
	}
	return all
}

// audit compares the messages that are there with those that were acknowledged.
func (w *crashWorld) audit() {
	present := w.present()
	for body := range present {
		if w.sent[body] == nil {
			w.t.Errorf("%s is there, which nobody sent, or which an earlier crash had lost", body)
		}
	}
	for _, r := range w.received[:w.safe] {
		if m, there := present[r.body]; there && m.Receives < r.count {
			w.t.Errorf("%s was received %d times before something was acknowledged, and now counts %d", r.body, r.count, m.Receives)
		}
	}
	// Handles of receives that are safe still hold their messages.
	safe := map[string]bool{}
	for _, r := range w.received[:w.safe] {
		safe[r.body] = true
	}
	for _, r := range w.received[w.safe:] {
		safe[r.body] = false
	}
	w.received, w.safe = nil, 0
	w.held = slices.DeleteFunc(w.held, func(m heldMessage) bool { return !safe[m.body] })

	for body, f := range w.sent {
		_, there := present[body]
		switch {
		case there && f.isDeleted:
			w.t.Errorf("%s was deleted, acknowledged, and is back", body)
		case !there && f.sent && !f.deleting:
			w.t.Errorf("%s was sent, acknowledged, and is lost", body)
		}
	}
	w.resend()
	present = w.present()
	for body, f := range w.sent { // the crash has decided about requests without a reply
		_, there := present[body]
		f.sent, f.deleting, f.isDeleted = true, !there, !there
	}
}

// resend does what producers do that were not told whether their messages had
// been taken. A FIFO queue has them once, whether they had or not.
func (w *crashWorld) resend() {
	var unknown []string
	for body, f := range w.sent {
		if f.queue == "f.fifo" && !f.sent && !f.deleting {
			unknown = append(unknown, body)
		}
	}
	slices.Sort(unknown)
	for _, body := range unknown {
		var id int
		if _, err := fmt.Sscanf(body, "f.fifo-%d-", &id); err != nil {
			w.t.Fatal(err)
		}
		in := &sqsserver.SendMessageInput{QueueUrl: w.url("f.fifo"), SendMessageEntry: crashEntry("f.fifo", id, body).SendMessageEntry}
		if _, err := w.SendMessage(context.Background(), in); err != nil {
			w.t.Fatal(err)
		}
	}
	present := w.present()
	for _, body := range unknown {
		if _, there := present[body]; !there {
			w.t.Errorf("%s was sent again and is not there", body)
		}
	}
}

// drain receives and deletes all that is left: it is what the audits have seen.
func (w *crashWorld) drain() {
	if w.acked < 20 {
		w.t.Errorf("only %d operations were acknowledged: the test does not test what it should", w.acked)
	}
	want := w.present()
	time.Sleep(2 * time.Hour) // every lease ends
	last := map[string]string{}
	for _, queue := range []string{"q", "f.fifo", "dead"} {
		for messages := w.receive(queue, 10, 600); len(messages) > 0; messages = w.receive(queue, 10, 600) {
			for _, m := range messages {
				if _, there := want[m.Body]; !there {
					w.t.Errorf("received %s, which was not there", m.Body)
				}
				delete(want, m.Body)
				group := m.Attributes.MessageGroupId
				if group != "" && m.Body <= last[group] {
					w.t.Errorf("received %s after %s", m.Body, last[group])
				}
				last[group] = m.Body
				if err := w.deleteMessage(queue, m.ReceiptHandle); err != nil {
					w.t.Error(err)
				}
			}
		}
	}
	for body := range want {
		w.t.Errorf("%s was there and is not received", body)
	}
	for _, kind := range []byte{'m', 'b'} {
		if keys := w.journal.keys(kind); len(keys) > 0 {
			w.t.Errorf("records of %d messages are left of an empty server", len(keys))
		}
	}
}
