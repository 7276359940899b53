package reprise

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Wake makes messages visible before the end of their backoff, if this process has hidden
// them: all of them, or those of the given keys (see Config.Outage.Key). It is for an
// operator who knows that the cause of the failures is fixed. Wake returns how many messages
// it will wake; it does so as fast as the handlers can run them. Their attempts still count.
// Open breakers probe at once. The end of an outage also wakes the messages that were hidden
// because of it, but not those whose handler has set the wait by [RetryAfter].
//
// Some messages are not woken, and become visible when their time has passed: those of FIFO
// queues, because later messages of their groups wait with them; those that are due within
// 15 s; those that are being hidden or copied at the moment; those that another process has
// hidden; and those beyond the 50,000 that this process remembers.
func (c *Consumer) Wake(keys ...string) int {
	inRetryLane := 0 // where retries wait, if there is one
	if c.retryLane != nil {
		inRetryLane = c.retryLane.Wake(keys...)
	}
	woken := 0
	c.enter(func(m *consumer.Machine) { woken = m.Wake(keys...) })
	return inRetryLane + woken
}

// WakeMessage makes one message visible before the end of its backoff, if this process has hidden
// it, and reports whether it will. The id is the one that SQS has given the message, as in
// [Message.ID]. The request is sent at once or, while messages of an earlier Wake wait for their
// turn, before these; the attempt still counts. WakeMessage does not ask breakers to probe.
//
// It reports false, and changes nothing, for the messages that [Consumer.Wake] does not wake, for
// those whose breaker is open or half-open, and when the consumer stops. A message that it reports
// true for may still become visible by itself only, if SQS refuses the request or its reply is
// lost: another consumer may have the message then. It may be called at any time from any goroutine.
func (c *Consumer) WakeMessage(id string) bool {
	woken := false
	c.enter(func(m *consumer.Machine) { woken = m.WakeMessage(id) })
	return woken || c.retryLane != nil && c.retryLane.WakeMessage(id)
}

// RetryOnReceive has the consumer start the next attempt of one message when it receives it next,
// even if its retry is not due by then, and reports whether it will. The id is that of the message
// that waits, as in [Message.ID]: a copy has its own. It is for copies that wait with a delay, as in
// a retry lane: WakeMessage cannot make them visible, and a consumer that receives one too early hides
// it again until it is due. RetryOnReceive makes nothing visible itself. On an sqsserver.Server call
// RetryOnReceive first and Server.EndDelay next; SQS delivers a delayed message only when its delay
// has ended.
//
// The attempt counts like any other. If it fails and the message is hidden for its next retry,
// another process that receives it then takes this attempt for a receive that came too early: so
// the message may have one attempt more than its policy permits, never one less.
//
// RetryOnReceive holds for one receive by this consumer or its retry lane, within an hour. If another
// process receives the message, that hides it again. RetryOnReceive reports false, and remembers
// nothing, for messages of FIFO queues; for those that this consumer holds, has done or
// has given up; while the breaker that they wait for is open or half-open; when the consumer stops; and
// while 10,000 other messages are expected. The key of a message's breaker (see Config.Outage.Key) is
// known only if this process has hidden the message: otherwise it is received, and held without an
// attempt until its breaker closes. It may be called at any time from any goroutine.
func (c *Consumer) RetryOnReceive(id string) bool {
	if c.retryLane != nil && !c.retryLane.RetryOnReceive(id) {
		return false
	}
	expected := false
	c.look(func(m *consumer.Machine) {
		if expected = m.RetryOnReceive(id); !expected {
			m.RetryWhenDue(id) // the retry lane would have retried it
		}
	})
	return expected
}

// Probe makes the open breakers of the given keys, or all open breakers if no key is given,
// probe their dependency at once, and returns how many will. Unlike [Consumer.Wake], Probe
// wakes no messages itself: the end of the outage does, if the probe succeeds.
func (c *Consumer) Probe(keys ...string) int {
	inRetryLane := 0
	if c.retryLane != nil {
		inRetryLane = c.retryLane.Probe(keys...)
	}
	probed := 0
	c.enter(func(m *consumer.Machine) { probed = m.Probe(keys...) })
	return inRetryLane + probed
}

// wakeTimeout is the time limit of a request that wakes messages. It is far below the time
// for which they are still hidden.
const wakeTimeout = 5 * time.Second

// makeVisible makes w's messages visible.
func (c *Consumer) makeVisible(w *consumer.Waking) {
	replied := unanswered(len(w.Handles))
	defer func() { // even if the user's code ends this goroutine
		c.enter(func(m *consumer.Machine) { m.Woken(w, &replied) })
	}()
	asked := make([]consumer.Entry, len(w.Handles))
	for i, handle := range w.Handles {
		asked[i].Handle = handle
	}
	ctx, cancel := context.WithTimeout(c.settleCtx, wakeTimeout)
	defer cancel()
	replied = c.changeVisibility(ctx, OpVisibility, asked, withoutRetries)
}
