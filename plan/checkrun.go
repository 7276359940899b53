package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
)

// checkHandler compares the handler's time with leases.
func (e *examination) checkHandler() {
	timeout := e.s.HandlerTimeout
	if timeout <= 0 {
		return
	}
	if timeout > carry.LongestHide {
		e.add(Error, CodeHandlerTimeout,
			fmt.Sprintf("one attempt may take %s, and SQS lets no consumer hold a message for 12 hours: the lease of a longer one is lost, and another consumer runs the message too.", short(timeout)),
			"set a handler timeout below 12h.")
	}
	if e.q.Visibility > 0 && e.q.Visibility < timeout {
		e.add(Info, CodeVisibility,
			fmt.Sprintf("the queue's own visibility timeout (%s) is shorter than one attempt may take (%s).", short(e.q.Visibility), short(timeout)),
			"nothing for this consumer, which asks for and renews its own lease; raise VisibilityTimeout if others read the queue.")
	}
	// A lease of a minute is the default, and costs little to wait out.
	if e.s.Lease > time.Minute && e.s.Lease > timeout {
		e.add(Info, CodeLease,
			fmt.Sprintf("a lease lasts %s, longer than any attempt (%s): for so long the messages of a process that died stay hidden.", short(e.s.Lease), short(timeout)),
			"lower the lease: it is renewed while a handler runs.")
	}
}

// The quotas of a FIFO queue without high throughput: calls of each action a
// second, each of up to ten messages.
const (
	fifoCalls = 300
	batchSize = 10
)

// checkFIFO reports the cost of order.
func (e *examination) checkFIFO() {
	if !e.q.FIFO {
		return
	}
	if e.s.Via == ViaRequeue {
		e.add(Error, CodeFIFORequeue,
			"the settings ask for retries by copies, and on a FIFO queue a copy would come behind its group: messages are hidden instead.",
			"leave the choice to the consumer, or use a standard queue.")
	}
	if e.longestWait > 0 {
		e.add(Info, CodeFIFOBlocks,
			fmt.Sprintf("while a failed message waits, its group waits with it: up to %s at a time, and %s in all.", short(e.longestWait), short(min(e.lastAttempt, e.q.retention()))),
			"use many message groups, or limit the policy's waits and attempts.")
	}
	if limit := float64(fifoCalls * batchSize); !e.q.HighThroughput && e.s.Rate > limit {
		e.add(Warning, CodeFIFOThroughput,
			fmt.Sprintf("%g messages a second are expected, and SQS permits %d calls of each action a second, %g messages in batches of ten.", e.s.Rate, fifoCalls, limit),
			"set FifoThroughputLimit to perMessageGroupId and DeduplicationScope to messageGroup.")
	}
	if e.q.ContentDeduplication {
		e.add(Info, CodeContentDeduplication,
			"SQS treats messages with equal bodies within 5 minutes as one message, whatever their attributes: messages that are sent or redriven again in that time may be dropped without an error.",
			"send a MessageDeduplicationId with every message.")
	}
}

// What AWS recommends for a queue that a function handles. See
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html.
const (
	functionVisibilityFactor = 6
	functionMinReceives      = 5
)

// checkFunction compares the queue with the needs of a Lambda function.
func (e *examination) checkFunction() {
	timeout, visibility := e.s.FunctionTimeout, e.q.Visibility
	if timeout <= 0 {
		return
	}
	if visibility > 0 {
		recommended := functionVisibilityFactor * timeout
		remedy := fmt.Sprintf("set the queue's VisibilityTimeout to %s, six times the function's timeout.", short(recommended))
		switch {
		case visibility < timeout:
			e.add(Error, CodeFunctionVisibility,
				fmt.Sprintf("the queue's visibility timeout of %s is shorter than the function's timeout of %s: Lambda refuses the event source mapping.", short(visibility), short(timeout)), remedy)
		case visibility < recommended:
			e.add(Warning, CodeFunctionVisibility,
				fmt.Sprintf("the queue's visibility timeout of %s is less than six times the function's timeout of %s: while Lambda throttles, messages come back before they were handled.", short(visibility), short(timeout)), remedy)
		}
		e.add(Info, CodeFunctionCrash,
			fmt.Sprintf("a function that crashes or times out reports nothing: its messages come back after the queue's visibility timeout of %s, whatever the policy says.", short(visibility)),
			"lower the function's timeout and the queue's VisibilityTimeout together if that is too long.")
	}
	if e.q.MaxReceives > 0 && e.q.MaxReceives < functionMinReceives {
		e.add(Warning, CodeFunctionReceives,
			fmt.Sprintf("the queue gives a message up after %d receives, and Lambda uses receives up while it throttles.", e.q.MaxReceives),
			fmt.Sprintf("raise maxReceiveCount in the queue's RedrivePolicy to at least %d.", functionMinReceives))
	}
}

// checkKMS names the keys that a consumer needs.
func (e *examination) checkKMS() {
	var needs []string
	if managedByCustomer(e.q.KMSKey) {
		need := "kms:Decrypt"
		if e.copies() {
			need += " and kms:GenerateDataKey"
		}
		needs = append(needs, fmt.Sprintf("%s on the queue's key %s", need, e.q.KMSKey))
	}
	if managedByCustomer(e.q.DeadLetterKMSKey) {
		needs = append(needs, fmt.Sprintf("kms:Decrypt and kms:GenerateDataKey on the dead-letter queue's key %s", e.q.DeadLetterKMSKey))
	}
	if len(needs) == 0 {
		return
	}
	e.add(Info, CodeKMS,
		"messages are encrypted with keys of your own, which SQS uses in the consumer's name: it needs "+strings.Join(needs, ", and ")+".",
		"allow it in the consumer's IAM policy, or in the policies of the keys.")
}
