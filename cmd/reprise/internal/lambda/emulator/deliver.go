package emulator

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// finish sends the record of e's end to its destinations. It reports false if it was stopped
// before that, and e abandoned.
func (q *events) finish(e *event) bool {
	f, known := q.function(e.function)
	if !known {
		q.abandon(e, "its function has been removed")
		return false
	}
	target := f.Async.OnFailure
	if e.ended == succeeded {
		target = f.Async.OnSuccess
	} else if !q.giveUp(e, f.Async) {
		return false
	}
	if target == "" {
		return true
	}
	return q.deliver(e, target)
}

// deliver sends the record of e's end to target. It reports false if it was stopped
// before that, and e abandoned.
func (q *events) deliver(e *event, target string) bool {
	text, err := newRecord(e, e.ended, q.cfg.functionARN(e.function), time.Now())
	if err != nil {
		q.undelivered(e, "DestinationDeliveryFailures", target, err)
		return true
	}
	d, err := parseDestination(target)
	switch {
	case err != nil:
		q.undelivered(e, "DestinationDeliveryFailures", target, err)
	case len(text) > maxAsyncPayload:
		q.undelivered(e, "DestinationDeliveryFailures", target,
			fmt.Errorf("the record has %d bytes, of which %d are the request's and %d the response's, and the limit is %d", len(text), len(e.payload), len(e.last.Payload), maxAsyncPayload))
	case d.service == "lambda":
		return q.chain(e, target, d.name, text)
	default:
		return q.send(e, "DestinationDeliveryFailures", target, text, nil)
	}
	return true
}

// giveUp logs that Lambda stops retrying an event, and sends it to the function's dead-letter
// queue if there is one. The log does not call the event lost, since the receiver of its record
// may run it again. It reports false if it was stopped before that, and e abandoned.
func (q *events) giveUp(e *event, async AsyncConfig) bool {
	text := fmt.Sprintf("Lambda stops retrying the asynchronous event: %s after %s", e.ended, plural.Of(e.invokes, "invoke"))
	if async.OnFailure == "" && async.DeadLetter == "" {
		q.log(e, SourceTrouble, text+"; it is dropped, as the function has neither an OnFailure destination nor a dead-letter queue")
		return true
	}
	if async.OnFailure != "" {
		text += "; its record goes to " + async.OnFailure
	}
	if async.DeadLetter != "" {
		text += "; it goes to " + async.DeadLetter
	}
	q.log(e, SourcePlatform, text)
	if async.DeadLetter == "" || e.deadLettered {
		return true
	}
	e.deadLettered = q.send(e, "DeadLetterErrors", async.DeadLetter, e.payload, deadLetterAttributes(e))
	return e.deadLettered
}

// chain invokes the function called name with the record of e. It reports false if it was
// stopped before that, and e abandoned.
func (q *events) chain(e *event, target, name string, text []byte) bool {
	inv, err := newInvocation(q.cfg.functionARN(name), text, maxAsyncPayload)
	if err == nil {
		if _, known := q.function(name); !known {
			err = notFound("Function not found: " + inv.arn)
		}
	}
	if err == nil {
		inv.trace = e.trace
		err = q.accept(name, inv)
	}
	switch {
	case errors.Is(err, errClosing):
		q.kept(e, q.store.put(e))
		q.abandon(e, "the local Lambda was stopped before its record was delivered to "+target)
		return false
	case err != nil:
		q.undelivered(e, "DestinationDeliveryFailures", target, err)
	}
	return true
}

// codeThrottled is SQS's code for throttling. Its status is that of a client error, but the
// message is not at fault.
const codeThrottled = "RequestThrottled"

// send sends a message to a queue, repeatedly, until the queue accepts or refuses it. It reports
// false if it was stopped before that, and e abandoned. If the queue does not accept it at once, the store gets to
// know that e has ended: otherwise a start meanwhile would have it invoked again.
func (q *events) send(e *event, metric, queueARN string, body []byte, attributes []sqsserver.MessageAttribute) bool {
	for failures := 1; ; failures++ {
		err := q.cfg.Send(q.killed, queueARN, string(body), attributes)
		refusal, refused := errors.AsType[*sqsserver.Error](err)
		switch {
		case err == nil:
			return true
		case refused && refusal.SenderFault() && refusal.Code != codeThrottled:
			q.undelivered(e, metric, queueARN, err)
			return true
		}
		if failures == 1 {
			q.kept(e, q.store.put(e))
		}
		wait := time.Duration(float64(throttleWait(failures)) / q.cfg.TimeScale)
		q.log(e, SourcePlatform, fmt.Sprintf("sending to %s failed and is tried again in %v: %v", queueARN, wait, err))
		if !sleep(q.stopping, wait) {
			q.abandon(e, fmt.Sprintf("the local Lambda was stopped before %s took it: %v", queueARN, err))
			return false
		}
	}
}

// undelivered logs a failure that Lambda itself only counts, in the metric of that name.
func (q *events) undelivered(e *event, metric, target string, err error) {
	q.log(e, SourceTrouble, fmt.Sprintf("%s: nothing was delivered to %s: %v", metric, target, err))
}
