//go:build unix

package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestKilled kills the program with SIGKILL under load, again and again, at random moments: while
// it works, while it starts, while it stops. Every acknowledgement must hold: see world.audit.
//
// REPRISE_KILLS is the number of kills. Default: 20 times when CI is set, else 3.
func TestKilled(t *testing.T) {
	t.Parallel()
	kills := 3
	if os.Getenv("CI") != "" {
		kills = 20
	}
	if text := os.Getenv("REPRISE_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil || kills < 1 {
			t.Fatalf("REPRISE_KILLS is %q: set it to a number of kills", text)
		}
	}
	seed := rand.Uint64()
	t.Logf("%d kills, seed %d", kills, seed)
	w := newWorld(t, seed)
	w.start()
	for range kills {
		w.load()
		w.restart()
		w.audit()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	w.drain()
	t.Logf("killed %d times, and %d times while starting; acknowledged %d sends and %d deletes, received %d",
		kills, w.killedStarts, w.tally.sent, w.tally.deleted, w.tally.received)
	if w.tally.sent < kills || w.tally.received < kills {
		t.Error("there was too little load to test anything")
	}
}

// The queues of a world. Leases are short, so that an audit need not wait long for
// what the load has left in flight.
const (
	standardQueue = "orders"
	fifoQueue     = "jobs.fifo"
	shortLease    = ",VisibilityTimeout=1"
)

// world is a server under load, with the records of its clients.
type world struct {
	t       *testing.T
	dir     string
	random  *rand.Rand // of the goroutine of the test
	process *process
	client  *sqs.Client
	rounds  int

	endpoint     string
	killedStarts int
	tally        struct{ sent, deleted, received int } // acknowledged

	mu       sync.Mutex // guards what follows
	dying    bool       // errors are to be expected
	clock    int        // counts what has happened
	messages map[string]*message
	groups   map[string][]*message // of the FIFO queue, in the order of their sending
	held     []held                // of the standard queue, for deletes after the restart
	received []counted             // in their order
	safe     int                   // so many receives came before an acknowledged operation
}

// message is what is known of a message, which is known by its body.
type message struct {
	body, group string
	sent        bool // acknowledged
	deleting    bool // tried
	deletedAt   int  // acknowledged then; 0: not
}

type held struct {
	m      *message
	handle *string
	until  time.Time // the lease lasts at least so long
}

type counted struct {
	m     *message
	count int
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{
		t: t, dir: filepath.Join(t.TempDir(), "data"), random: rand.New(rand.NewPCG(seed, 0)),
		messages: map[string]*message{}, groups: map[string][]*message{},
	}
}

func (w *world) args() []string {
	return []string{
		"serve", "--addr", "127.0.0.1:0", "--data", w.dir, "--min-free", "0",
		"--queue", standardQueue + shortLease, "--queue", fifoQueue + shortLease,
	}
}

func (w *world) start() {
	w.t.Helper()
	w.process = start(w.t, w.args()...)
	w.endpoint = w.process.await("SQS endpoint")
	w.process.await("queue         ") // all of the directory has been read
	// The SDK must not repeat sends: the test could not distinguish the two messages.
	w.client = sqs.New(client(w.endpoint).Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	w.dying = false
}

// restart starts the program that was killed, sometimes at the second attempt only.
func (w *world) restart() {
	w.t.Helper()
	if w.random.IntN(3) == 0 {
		cmd := exec.Command(program(w.t), w.args()...)
		cmd.Env = environment()
		if err := cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(time.Duration(w.random.Int64N(int64(80 * time.Millisecond))))
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // of course it fails
		w.killedStarts++
	}
	w.start()
}

// load lets clients work for a moment and then kills the program, sometimes while
// it is about to stop.
func (w *world) load() {
	w.rounds++
	var clients sync.WaitGroup
	for id, work := range []func(*rand.Rand, int){
		w.sendStandard, w.sendStandard, w.sendStandard,
		w.sendFIFO, w.sendFIFO, w.sendFIFO,
		w.consumeStandard, w.consumeStandard, w.consumeStandard,
		w.consumeFIFO, w.consumeFIFO,
	} {
		random := rand.New(rand.NewPCG(w.random.Uint64(), 1))
		clients.Go(func() {
			for w.isUp() {
				work(random, id)
			}
		})
	}
	time.Sleep(time.Duration(w.random.Int64N(int64(400 * time.Millisecond))))
	w.mu.Lock()
	w.dying = true
	w.mu.Unlock()
	if w.random.IntN(4) == 0 {
		w.process.signal(syscall.SIGTERM)
		time.Sleep(time.Duration(w.random.Int64N(int64(30 * time.Millisecond))))
	}
	_ = w.process.cmd.Process.Kill() // after a SIGTERM it may have ended
	_ = w.process.cmd.Wait()         // of course it fails
	clients.Wait()
}

func (w *world) isUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.dying
}

// failed reports whether err is an error. Before the kill none is permitted.
func (w *world) failed(what string, err error) bool {
	if err != nil && w.isUp() {
		w.t.Errorf("%s: %v", what, err)
	}
	return err != nil
}

// beginDurable returns a function to call, with the lock, when an operation that begins now is
// acknowledged: then all receives that had ended before are on disk.
func (w *world) beginDurable() (acknowledged func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.received)
	return func() {
		w.clock++
		w.safe = max(w.safe, before)
	}
}

func (w *world) sendStandard(random *rand.Rand, id int) {
	w.mu.Lock()
	batch := make([]*message, 1+random.IntN(10))
	for i := range batch {
		batch[i] = w.newMessage(fmt.Sprintf("%d-%d-%d", w.rounds, id, len(w.messages)), "")
	}
	w.mu.Unlock()
	w.send(standardQueue, batch)
	time.Sleep(time.Duration(random.Int64N(int64(5 * time.Millisecond))))
}

// sendFIFO continues a group of its own.
func (w *world) sendFIFO(random *rand.Rand, id int) {
	group := "group-" + strconv.Itoa(id)
	w.mu.Lock()
	batch := make([]*message, 1+random.IntN(3))
	for i := range batch {
		batch[i] = w.newMessage(fmt.Sprintf("%s-%d", group, len(w.groups[group])), group)
		w.groups[group] = append(w.groups[group], batch[i])
	}
	w.mu.Unlock()
	w.send(fifoQueue, batch)
	time.Sleep(time.Duration(random.Int64N(int64(5 * time.Millisecond))))
}

// newMessage is called with the lock.
func (w *world) newMessage(body, group string) *message {
	m := &message{body: body, group: group}
	w.messages[body] = m
	return m
}

// send sends messages, again if they are FIFO and have been sent before.
func (w *world) send(queue string, batch []*message) {
	in := &sqs.SendMessageBatchInput{QueueUrl: queueURL(w.endpoint, queue)}
	for i, m := range batch {
		entry := types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &m.body}
		if m.group != "" {
			entry.MessageGroupId, entry.MessageDeduplicationId = &m.group, &m.body
		}
		in.Entries = append(in.Entries, entry)
	}
	acknowledged := w.beginDurable()
	out, err := w.client.SendMessageBatch(context.Background(), in)
	if w.failed("sending", err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	acknowledged()
	for _, m := range batch {
		m.sent = true
	}
	w.tally.sent += len(batch)
	if len(out.Failed) > 0 {
		w.t.Errorf("%d messages were not taken: %s", len(out.Failed), *out.Failed[0].Message)
	}
}

// heldLease is longer than a restart and shorter than an audit waits: a receive can be on disk
// whose reply was lost, so that no client has its handles.
const heldLease = 20

func (w *world) consumeStandard(random *rand.Rand, _ int) {
	most := int32(1 + random.IntN(10))
	switch random.IntN(6) {
	case 0: // the consumer dies
		w.receive(standardQueue, most, 1)
	case 1:
		w.release(standardQueue, w.receive(standardQueue, most, 1))
	case 2: // it goes on after the restart
		leased := w.receive(standardQueue, most, heldLease)
		w.mu.Lock()
		w.held = append(w.held, leased...)
		w.mu.Unlock()
	default:
		w.delete(standardQueue, w.receive(standardQueue, most, 1))
	}
}

func (w *world) consumeFIFO(random *rand.Rand, _ int) {
	leased := w.receive(fifoQueue, int32(1+random.IntN(10)), 1)
	if random.IntN(4) > 0 {
		w.delete(fifoQueue, leased)
	} else {
		w.release(fifoQueue, leased)
	}
}

// receive receives for lease seconds. No deleted message may come, and none before the earlier
// messages of its group.
func (w *world) receive(queue string, most, lease int32) []held {
	w.mu.Lock()
	begin := w.clock
	w.mu.Unlock()
	until := time.Now().Add(time.Duration(lease) * time.Second)
	out, err := w.client.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{
		QueueUrl: queueURL(w.endpoint, queue), MaxNumberOfMessages: most, VisibilityTimeout: lease, WaitTimeSeconds: 1,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if w.failed("receiving", err) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var leased []held
	for _, received := range out.Messages {
		m := w.messages[*received.Body]
		count, err := strconv.Atoi(received.Attributes["ApproximateReceiveCount"])
		switch {
		case m == nil || err != nil:
			w.t.Errorf("received %q, count %q, which was never sent", *received.Body, received.Attributes)
			continue
		case m.deletedAt > 0 && m.deletedAt <= begin:
			w.t.Errorf("received %s, whose delete had been acknowledged", m.body)
		}
		leased = append(leased, held{m, received.ReceiptHandle, until})
		w.received = append(w.received, counted{m, count})
		w.tally.received++
	}
	w.checkOrder(leased)
	return leased
}

// checkOrder is called with the lock.
func (w *world) checkOrder(leased []held) {
	for i, l := range leased {
		for _, before := range w.groups[l.m.group] {
			if before == l.m {
				break
			}
			if !before.deleting && !slices.ContainsFunc(leased[:i], func(l held) bool { return l.m == before }) {
				w.t.Errorf("received %s before %s, which nobody has deleted", l.m.body, before.body)
				break
			}
		}
	}
}

// delete deletes received messages. When the lease has ended a FIFO queue refuses; a standard
// queue acknowledges, and another receive may have the message.
func (w *world) delete(queue string, leased []held) {
	if len(leased) == 0 {
		return
	}
	in := &sqs.DeleteMessageBatchInput{QueueUrl: queueURL(w.endpoint, queue)}
	w.mu.Lock()
	for i, l := range leased {
		l.m.deleting = true
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: l.handle})
	}
	w.mu.Unlock()
	acknowledged := w.beginDurable()
	out, err := w.client.DeleteMessageBatch(context.Background(), in)
	if w.failed("deleting", err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	acknowledged()
	for _, entry := range out.Successful {
		i, _ := strconv.Atoi(*entry.Id) // our own
		if queue == fifoQueue || time.Now().Before(leased[i].until) {
			leased[i].m.deletedAt = w.clock
			w.tally.deleted++
		}
	}
}

// release makes visible what was received.
func (w *world) release(queue string, leased []held) {
	if len(leased) == 0 {
		return
	}
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: queueURL(w.endpoint, queue)}
	for i, l := range leased {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: l.handle})
	}
	// Messages that are not released come back by themselves, so errors do not matter here.
	_, err := w.client.ChangeMessageVisibilityBatch(context.Background(), in)
	w.failed("releasing", err)
}
