package main_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

const (
	crowdOrders  = "orders"
	crowdLetters = "letters" // has a dead-letter queue
	crowdDead    = "letters-dead"
	crowdSide    = "side" // to which operators move letters
	crowdJobs    = "jobs.fifo"
	crowdBin     = "bin" // of the operators alone

	crowdReceives = 3   // of letters
	crowdBacklog  = 500 // messages; from then on clients only receive
)

// crowdDriver decides what a client does. It is used by one goroutine.
type crowdDriver struct {
	c      *crowd
	door   *crowdDoor
	random *rand.Rand
	number int
	stale  []crowdHeld  // what was received and kept
	sent   []crowdInput // to the FIFO queue, of late
}

// crowdHeld is a message that was received.
type crowdHeld struct{ queue, handle string }

// run acts until ctx ends.
func (d *crowdDriver) run(ctx context.Context) {
	for ctx.Err() == nil && !d.c.t.Failed() {
		d.act(ctx)
		time.Sleep(time.Duration(d.random.Int64N(int64(2 * d.c.pause))))
	}
}

func (d *crowdDriver) act(ctx context.Context) {
	draw := d.random.IntN(100)
	if draw < 40 && d.c.backlog.Load() > crowdBacklog {
		draw = 40
	}
	switch {
	case draw < 12:
		d.send(d.standardQueue(), 1)
	case draw < 24:
		d.send(d.standardQueue(), 2+d.random.IntN(9))
	case draw < 37:
		d.sendJobs(ctx)
	case draw < 40:
		d.sendAgain()
	case draw < 88:
		d.receive()
	case draw < 96:
		d.settleStale()
	default:
		d.call("GetQueueAttributes", crowdInput{QueueURL: d.c.url(d.standardQueue()), AttributeNames: []string{"All"}})
	}
}

// call carries out a request; nil: it failed.
func (d *crowdDriver) call(action string, input crowdInput) *crowdReply {
	l, err := d.door.call(action, input)
	if err != nil {
		d.c.t.Error(err)
		return nil
	}
	return l.Reply
}

func (d *crowdDriver) standardQueue() string {
	if d.random.IntN(2) == 0 {
		return crowdOrders
	}
	return crowdLetters
}

// message makes a new one, whose body no other has.
func (d *crowdDriver) message() crowdInput {
	d.number++
	body, err := json.Marshal(map[string]any{
		"key": d.door.name + "-" + strconv.Itoa(d.number), "n": d.number % 10, "text": "שלום 🚀 <&>'\"\\\t" + strings.Repeat("x", d.random.IntN(500)),
	})
	if err != nil {
		panic(err) // of texts and a number
	}
	m := crowdInput{MessageBody: string(body)}
	if d.random.IntN(2) == 0 {
		m.MessageAttributes = map[string]crowdAttribute{
			"tenant": {DataType: "String", StringValue: "ж & <" + strconv.Itoa(d.number) + ">"},
			"size":   {DataType: "Number.int", StringValue: strconv.Itoa(d.number)},
			"raw":    {DataType: "Binary", BinaryValue: base64.StdEncoding.EncodeToString([]byte{0, 255, byte(d.number)})},
		}
	}
	return m
}

func (d *crowdDriver) send(queue string, n int) {
	var batch []crowdInput
	for i := range n {
		m := d.message()
		m.ID = "e" + strconv.Itoa(i)
		if d.random.IntN(5) == 0 {
			m.DelaySeconds = 1 + d.random.IntN(4)
		}
		batch = append(batch, m)
	}
	d.sendAll(queue, batch)
}

// sendAll sends messages in one request, and reports whether the server has acknowledged all of them.
func (d *crowdDriver) sendAll(queue string, batch []crowdInput) bool {
	sent := 0
	if len(batch) == 1 {
		m := batch[0]
		m.ID, m.QueueURL = "", d.c.url(queue)
		if d.call("SendMessage", m) != nil {
			sent = 1
		}
	} else if reply := d.call("SendMessageBatch", crowdInput{QueueURL: d.c.url(queue), Entries: batch}); reply != nil {
		sent = len(reply.Successful)
	}
	return sent == len(batch)
}

// sendJobs sends to groups of this client. What is not acknowledged is sent again, with the same deduplication ids, as
// producers do who want their order kept.
func (d *crowdDriver) sendJobs(ctx context.Context) {
	var batch []crowdInput
	for i := range 1 + d.random.IntN(4) {
		m := d.message()
		m.ID = "e" + strconv.Itoa(i)
		m.MessageGroupID = fmt.Sprintf("%s-%d", d.door.name, d.random.IntN(3))
		m.MessageDeduplicationID = fmt.Sprintf("%s-%d", d.door.name, d.number)
		batch = append(batch, m)
	}
	for !d.sendAll(crowdJobs, batch) {
		if ctx.Err() != nil || d.c.t.Failed() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.sent = append(d.sent, batch...)
	d.sent = d.sent[max(0, len(d.sent)-20):]
}

// sendAgain sends what was acknowledged before: the queue must not take it a second time.
func (d *crowdDriver) sendAgain() {
	if len(d.sent) == 0 {
		return
	}
	m := d.sent[d.random.IntN(len(d.sent))]
	m.ID, m.QueueURL = "", d.c.url(crowdJobs)
	d.call("SendMessage", m)
}

func (d *crowdDriver) receive() {
	queue := []string{crowdOrders, crowdOrders, crowdLetters, crowdLetters, crowdDead, crowdSide, crowdJobs, crowdJobs, crowdJobs}[d.random.IntN(9)]
	hidden := 2 + d.random.IntN(7)
	in := crowdInput{
		QueueURL: d.c.url(queue), MaxNumberOfMessages: 1 + d.random.IntN(10), VisibilityTimeout: &hidden,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []string{"All"},
	}
	if d.random.IntN(2) == 0 {
		in.WaitTimeSeconds = 1 + d.random.IntN(2)
	}
	reply := d.call("ReceiveMessage", in)
	if reply == nil || len(reply.Messages) == 0 {
		return
	}
	var held []crowdHeld
	for _, m := range reply.Messages {
		held = append(held, crowdHeld{queue, m.ReceiptHandle})
	}
	switch draw := d.random.IntN(20); {
	case draw < 11:
		d.delete(held)
	case draw < 13: // twice
		d.delete(held)
		d.delete(held)
	case draw < 15: // again at once
		d.change(held, 0)
	case draw < 17: // longer, and then done
		d.change(held, 5+d.random.IntN(10))
		d.delete(held)
	case draw < 18: // some
		d.delete(held[:len(held)/2])
		fallthrough
	default: // its lease ends
		d.stale = append(d.stale, held...)
		d.stale = d.stale[max(0, len(d.stale)-30):]
	}
}

// settleStale deletes or changes with handles of receives that may long be over.
func (d *crowdDriver) settleStale() {
	if len(d.stale) == 0 {
		return
	}
	i := d.random.IntN(len(d.stale))
	var held []crowdHeld // of one queue
	for _, h := range d.stale[i:] {
		if h.queue == d.stale[i].queue && len(held) < 10 {
			held = append(held, h)
		}
	}
	if d.random.IntN(4) == 0 {
		d.change(held, d.random.IntN(6))
		return
	}
	d.delete(held)
}

// delete deletes in one request, or one by one.
func (d *crowdDriver) delete(held []crowdHeld) {
	switch {
	case len(held) == 0:
	case d.random.IntN(2) == 0:
		for _, h := range held {
			d.call("DeleteMessage", crowdInput{QueueURL: d.c.url(h.queue), ReceiptHandle: h.handle})
		}
	default:
		d.call("DeleteMessageBatch", crowdInput{QueueURL: d.c.url(held[0].queue), Entries: entriesOf(held, nil)})
	}
}

func (d *crowdDriver) change(held []crowdHeld, seconds int) {
	if d.random.IntN(3) == 0 {
		h := held[0]
		d.call("ChangeMessageVisibility", crowdInput{QueueURL: d.c.url(h.queue), ReceiptHandle: h.handle, VisibilityTimeout: &seconds})
		return
	}
	d.call("ChangeMessageVisibilityBatch", crowdInput{QueueURL: d.c.url(held[0].queue), Entries: entriesOf(held, &seconds)})
}

func entriesOf(held []crowdHeld, seconds *int) (entries []crowdInput) {
	for i, h := range held {
		entries = append(entries, crowdInput{ID: "e" + strconv.Itoa(i), ReceiptHandle: h.handle, VisibilityTimeout: seconds})
	}
	return entries
}
