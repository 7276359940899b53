package consumer

import (
	"math"
	"time"
)

// collector decides which of the ready messages make a batch. It holds none of them: until
// a worker takes it, the next batch is the beginning of Machine.ready.
type collector struct {
	Batch

	ready   load // in Machine.ready
	held    int  // bytes of all messages that are held
	typical int  // moving average of the bytes of a message
	running int  // batches
}

// load is an amount of messages.
type load struct{ messages, bytes int }

func (l *load) add(messages, bytes int) {
	l.messages += messages
	l.bytes += bytes
}

// lingers returns how long the ready messages wait for more, before a handler gets them as
// a batch. first is the first of them.
func (c *Machine) lingers(first *Delivery, now time.Time) time.Duration {
	b, behind := c.batches, c.groups.Counts()
	full := b.ready.messages+behind.Along >= b.Size || b.ready.bytes+behind.AlongBytes >= b.Bytes
	if full || c.draining || first.gate != nil {
		return 0
	}
	return first.Received.Add(b.Linger).Sub(now)
}

// countBytes counts the bytes of a message that is held from now on.
func (c *Machine) countBytes(d *Delivery) {
	if b := c.batches; b != nil {
		d.size = d.Size
		b.held += d.size
		b.typical += (d.size - b.typical) / 8
	}
}

// uncountBytes counts the bytes of a message that is no longer held.
func (c *Machine) uncountBytes(d *Delivery) {
	if c.batches != nil {
		c.batches.held -= d.size
	}
}

// heldAtMost returns how many bytes of messages may be held: see BatchConfig.Bytes.
func (c *Machine) heldAtMost() int {
	batches := c.concurrency + 1
	return batches * min(c.batches.Bytes, math.MaxInt/batches)
}

// withinBytes lowers the results of room if many bytes are held. free is the room by the
// number of messages alone.
func (c *Machine) withinBytes(free, worthwhile int) (int, int) {
	b := c.batches
	if b == nil || b.held == 0 {
		return free, worthwhile
	}
	size := max(1, b.typical)
	left := c.heldAtMost() - b.held - c.reserved*size
	if left <= 0 {
		return 0, worthwhile
	}
	return min(free, max(1, left/size)), min(worthwhile, max(1, c.heldAtMost()/size/2))
}

// capacity returns how many messages may be in handlers at once.
func (c *Machine) capacity() int { return c.concurrency * c.batchSize() }

// handlers returns how many handlers run.
func (c *Machine) handlers() int {
	if c.batches == nil {
		return c.running
	}
	return c.batches.running
}
