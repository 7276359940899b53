package reprise

import (
	"github.com/reprise-sqs/reprise/internal/consumer"
)

// FIFO says what happens to a message group of a FIFO queue while one of its messages, the
// head, has failed. With every choice the order within the group is kept: no message behind
// the head runs before the head has succeeded or been given up. A head whose attempts or age
// are used up is dead-lettered, and its group goes on.
type FIFO uint8

const (
	// FIFOHold holds the head and the received messages behind it under lease, for waits of
	// up to a minute, and runs the head again when it is due. That uses up no receives; on
	// a FIFO queue they are used up fast, because every message behind a failing one is
	// received with it. The cost: heartbeats; if this process dies, the group waits until
	// the leases end; and memory for up to Concurrency plus Prefetch more messages, ten at
	// least. Beyond that number, and for longer waits, the group is blocked.
	FIFOHold = FIFO(consumer.FIFOHold)
	// FIFOBlock gives all of them back to the queue: the head is hidden until it is due, and
	// so are the received messages behind it. No message is held, and any consumer can
	// continue with the group. The cost: each wait uses up a receive of every message that was
	// given back, so that maxReceiveCount must be a multiple of MaxAttempts, and attempts are
	// counted only as far as this process has seen them.
	FIFOBlock = FIFO(consumer.FIFOBlock)
	// FIFOSkip dead-letters the head at its first failure, with its story, and the group
	// goes on: no group ever waits. The cost: there are no retries, the messages behind it
	// run without it, and if it is redriven it comes out of order. An open breaker and a
	// [Release] do not count as failures: the message is held. Without a dead-letter queue
	// FIFOSkip works as FIFOHold.
	FIFOSkip = FIFO(consumer.FIFOSkip)

	fifoChoices = FIFOSkip + 1
)

var fifoNames = [fifoChoices]string{"hold", "block", "skip"}

// String returns hold, block or skip.
func (f FIFO) String() string { return nameOf(fifoNames[:], uint8(f), "FIFO") }

// codeSkipWithoutDeadLetter is the code of the finding that FIFOSkip has no dead-letter queue.
const codeSkipWithoutDeadLetter = "fifo-skip-without-dead-letter-queue"
