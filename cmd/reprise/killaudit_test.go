//go:build unix

package main_test

import (
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// auditLease is longer than an audit, so that no message comes twice in it.
const auditLease = 600

// audit receives everything after a restart, and compares:
//
//   - A message whose send was acknowledged is there, once, unless its delete was tried.
//   - A message whose delete was acknowledged is not there.
//   - A message's receive count is at least what it was told to be in a receive
//     that ended before an operation began which was acknowledged.
//   - A FIFO group has its messages in the order of their sending, and one that is
//     sent again since nobody knew, once.
func (w *world) audit() {
	w.t.Helper()
	counts := w.safeCounts()
	w.deleteHeld()
	w.resend()

	present := w.receiveAll(standardQueue, counts)
	w.settle(present, func(m *message) bool { return m.group == "" })
	// Some go on, through the next crash.
	kept := min(len(present), w.random.IntN(300))
	w.inTens(present[kept:], w.delete)
	w.inTens(present[:kept], w.release)
	w.sync()

	if w.rounds%2 == 0 { // else they go through more than one crash
		w.drainFIFO(counts)
	}
}

// drain ends with empty queues.
func (w *world) drain() {
	w.drainFIFO(nil)
	w.inTens(w.receiveAll(standardQueue, nil), w.delete)
	for _, queue := range []string{standardQueue, fifoQueue} {
		if n := w.waiting(queue); n != 0 {
			w.t.Errorf("%s still has %d messages", queue, n)
		}
	}
}

// safeCounts returns the receive counts that are on disk at least, and forgets the
// receives before the crash.
func (w *world) safeCounts() map[*message]int {
	counts := map[*message]int{}
	for _, r := range w.received[:w.safe] {
		counts[r.m] = max(counts[r.m], r.count)
	}
	w.received, w.safe = nil, 0
	return counts
}

// deleteHeld deletes with receipt handles of before the crash. Acknowledged deletes must hold,
// whether the receive was on disk or not.
func (w *world) deleteHeld() {
	w.inTens(w.held, w.delete)
	w.held = nil
}

// resend repeats the sends to the FIFO queue whose outcome is unknown, as producers do.
// Afterwards the queue has each message once.
func (w *world) resend() {
	for _, group := range w.groups {
		var unknown []*message
		for _, m := range group {
			if !m.sent {
				unknown = append(unknown, m)
			}
		}
		for batch := range slices.Chunk(unknown, 10) {
			w.send(fifoQueue, batch)
		}
	}
}

// receiveAll receives what a standard queue has.
func (w *world) receiveAll(queue string, counts map[*message]int) []held {
	w.t.Helper()
	var all []held
	for deadline := time.Now().Add(patience); len(all) != w.waiting(queue); {
		all = append(all, w.counted(w.receive(queue, 10, auditLease), counts)...)
		if time.Now().After(deadline) {
			w.t.Fatalf("%d messages of %s came, which has %d", len(all), queue, w.waiting(queue))
		}
	}
	seen := map[*message]bool{}
	for _, l := range all {
		if seen[l.m] {
			w.t.Errorf("%s is there twice", l.m.body)
		}
		seen[l.m] = true
	}
	return all
}

// drainFIFO receives and deletes what the FIFO queue has. receive checks for deleted messages,
// and the order.
func (w *world) drainFIFO(counts map[*message]int) {
	w.t.Helper()
	var all []held
	for deadline := time.Now().Add(patience); w.waiting(fifoQueue) > 0; {
		leased := w.counted(w.receive(fifoQueue, 10, auditLease), counts)
		all = append(all, leased...)
		w.delete(fifoQueue, leased)
		if time.Now().After(deadline) {
			w.t.Fatalf("%s still has %d messages", fifoQueue, w.waiting(fifoQueue))
		}
	}
	w.settle(all, func(m *message) bool { return m.group != "" })
}

// counted checks what has just been received against the counts on disk.
func (w *world) counted(leased []held, counts map[*message]int) []held {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.received[len(w.received)-len(leased):] {
		if r.count <= counts[r.m] {
			w.t.Errorf("%s is received for the %dth time, and had been received %d times before something was acknowledged", r.m.body, r.count, counts[r.m])
		}
	}
	return leased
}

// sync returns when all earlier operations are on disk. Otherwise a crash could lose releases,
// which no request waits for, and messages would stay hidden for the audit's whole lease.
func (w *world) sync() {
	w.t.Helper()
	acknowledged := w.beginDurable()
	_, err := w.client.TagQueue(w.t.Context(), &sqs.TagQueueInput{
		QueueUrl: queueURL(w.endpoint, standardQueue), Tags: map[string]string{"round": strconv.Itoa(w.rounds)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	acknowledged()
}

// settle compares the messages with the acknowledgements. It settles the operations whose outcome
// was unknown.
func (w *world) settle(present []held, of func(*message) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	there := map[*message]bool{}
	for _, l := range present {
		there[l.m] = true
	}
	for _, m := range w.messages {
		switch {
		case !of(m) || m.deletedAt > 0: // receive has an eye on deleted ones
		case there[m]:
			m.sent = true
		case m.sent && !m.deleting:
			w.t.Errorf("%s is lost: its send was acknowledged, and nobody has tried to delete it", m.body)
		default:
			m.deletedAt = w.clock
		}
	}
}

// waiting is how many messages a queue has.
func (w *world) waiting(queue string) int {
	w.t.Helper()
	out, err := w.client.GetQueueAttributes(w.t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queueURL(w.endpoint, queue), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	total := 0
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		n, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			w.t.Fatal(err)
		}
		total += n
	}
	return total
}

func (w *world) inTens(all []held, f func(queue string, leased []held)) {
	for leased := range slices.Chunk(all, 10) {
		f(standardQueue, leased)
	}
}
