package reprise

import (
	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/plan"
)

// FIFO says what becomes of a message group of a FIFO queue while one of its
// messages, the head, has failed. Whatever it says, the order within the group
// holds: nothing behind the head runs before the head has succeeded or been given
// up. A head whose attempts or age are used up is dead-lettered, and its group goes
// on.
type FIFO uint8

const (
	// FIFOHold keeps the head and what was received behind it here, under lease, for
	// waits of up to a minute, and runs the head again when it is due. That uses up
	// no receives, of which a FIFO queue has few: every message behind a failing one
	// is received with it. The cost: renewals of the leases; if this process dies,
	// the group waits for the end of them; and memory for as many messages as there
	// are places otherwise (Concurrency plus Prefetch, ten at least). Beyond that
	// number, and for longer waits, the group is blocked.
	FIFOHold = FIFO(consumer.FIFOHold)
	// FIFOBlock gives all back to the queue: the head is hidden until it is due, and
	// so is what was received behind it. Nothing is kept, and any consumer can go on
	// with the group. The cost: each wait uses up a receive of every message that
	// comes back, so that maxReceiveCount must be a multiple of MaxAttempts, and
	// attempts are counted only as far as this process has seen them.
	FIFOBlock = FIFO(consumer.FIFOBlock)
	// FIFOSkip dead-letters the head at its first failure, with its story, and the
	// group goes on: no group ever waits. The cost: there are no retries, what comes
	// behind must do without the message, and a redriven one comes out of order. An
	// open breaker and a [Release] are no failures: they hold. Without a dead-letter
	// queue it is FIFOHold.
	FIFOSkip = FIFO(consumer.FIFOSkip)

	fifoChoices = FIFOSkip + 1
)

var fifoNames = [fifoChoices]string{"hold", "block", "skip"}

// String returns hold, block or skip.
func (f FIFO) String() string { return nameOf(fifoNames[:], uint8(f), "FIFO") }

// codeSkipNowhere is the code of the finding that FIFOSkip has nowhere to put what
// it skips.
const codeSkipNowhere = "fifo-skip-without-dead-letter-queue"

// checkChoice reports a Config.FIFO that the queue does not permit. The caller does
// not hold c.mu.
func (c *Consumer) checkChoice(deadLetter queueURL) {
	if !c.queue.fifo || c.cfg.FIFO != FIFOSkip || deadLetter.url != "" {
		return
	}
	c.found(plan.Finding{
		Severity: plan.Error,
		Code:     codeSkipNowhere,
		Problem:  "Config.FIFO is to skip what fails, but there is no dead-letter queue to put it in: failed messages are retried, and their groups wait.",
		Remedy:   "give the queue a RedrivePolicy, or set Config.DeadLetterURL.",
	})
}
