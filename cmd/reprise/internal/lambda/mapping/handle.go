package mapping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

const (
	// The wait before an event that did not reach the function is sent again.
	firstInvokePause = 100 * time.Millisecond
	maxInvokePause   = 5 * time.Second

	// Deletes are tried so often, with pauses that double, for at most 6 s.
	maxDeletes       = 8
	firstDeletePause = 50 * time.Millisecond

	codeQueueGone = "AWS.SimpleQueueService.NonExistentQueue"

	// maxErrorText is how much of a function's error is logged: stacks may be long, and are in
	// the function's own log.
	maxErrorText = 500
)

var (
	errNotInvoked = errors.New("the function was not reached")
	errFunction   = errors.New("the function failed")
)

// handle invokes the function with a batch and settles it. It reports whether the
// function may get as many batches as before.
func (m *Mapping) handle(ctx context.Context, b *batch) (well bool) {
	well = true
	stopped := make(map[string]bool) // groups with a failed message
	for n, part := range b.parts() {
		if m.fifo {
			part = slices.DeleteFunc(slices.Clone(part), func(next message) bool { return stopped[next.group] })
		}
		if len(part) == 0 || n > 0 && !m.mayFollow(ctx, part, b.until) {
			continue
		}
		failed, err := m.attempt(ctx, part, b.until)
		if errors.Is(err, errNotInvoked) || errors.Is(err, errFunction) && !m.cfg.ReportBatchItemFailures {
			well = false
		}
		var succeeded []message
		for _, next := range part {
			if err != nil || failed[next.id] {
				stopped[next.group] = true
			} else {
				succeeded = append(succeeded, next)
			}
		}
		m.delete(succeeded)
	}
	return well
}

// mayFollow reports whether the next part of a batch may still be sent after the earlier parts.
// It releases the messages if the mapping ends.
func (m *Mapping) mayFollow(ctx context.Context, messages []message, until time.Time) bool {
	switch {
	case !m.inFlight(until):
		m.log.Warn("messages were too many for one event, and came again before it had been answered", "messages", len(messages))
		return false
	case ctx.Err() != nil:
		m.release(messages)
		return false
	}
	return true
}

// attempt invokes the function with messages and returns the ids of those that failed; an error
// means that all failed. It leaves their visibility unchanged, since the function may have set
// it.
func (m *Mapping) attempt(ctx context.Context, messages []message, until time.Time) (failed map[string]bool, err error) {
	reply, err := m.invokeUntil(ctx, messages, until)
	if err == nil {
		failed, err = m.failures(reply, messages)
	}
	if err != nil {
		m.log.Warn("an event failed; its messages come again when their visibility timeout ends", "messages", len(messages), "error", err)
	}
	return failed, err
}

// failures returns the ids that reply names as failed, unless the mapping ignores them: then Lambda
// deletes those messages, too, which the log says.
func (m *Mapping) failures(reply []byte, messages []message) (map[string]bool, error) {
	failed, err := failures(reply, messages)
	if m.cfg.ReportBatchItemFailures {
		return failed, err
	}
	if len(failed) > 0 && err == nil {
		m.log.Warn("the function's reply names messages that failed, and they are deleted with the others: give the mapping FunctionResponseTypes: [ReportBatchItemFailures]",
			"failed", len(failed), "messages", len(messages))
	}
	return nil, nil
}

// invokeUntil invokes the function and returns its reply. An event that did not reach
// it, because it is throttled or does not exist, is sent again while its messages are in
// flight, and released if ctx ends meanwhile.
func (m *Mapping) invokeUntil(ctx context.Context, messages []message, until time.Time) ([]byte, error) {
	text := event(messages)
	for pause := firstInvokePause; ; pause = min(2*pause, maxInvokePause) {
		// When the mapping ends, a running event is still answered.
		result, err := m.invoke(context.WithoutCancel(ctx), text)
		if err == nil && result.FunctionError != "" {
			return nil, fmt.Errorf("%w (%s): %.*s", errFunction, result.FunctionError, maxErrorText, result.Payload)
		}
		if err == nil {
			return result.Payload, nil
		}
		if pause == firstInvokePause {
			m.log.Info("an event did not reach the function; it is sent again while its messages are in flight", "messages", len(messages), "error", err)
		}
		sleep(ctx, pause)
		switch {
		case !m.inFlight(until):
			return nil, fmt.Errorf("%w while its messages were in flight: %w", errNotInvoked, err)
		case ctx.Err() != nil:
			m.release(messages)
			return nil, fmt.Errorf("%w before the mapping ended: %w", errNotInvoked, err)
		}
	}
}

// inFlight reports whether messages hidden until then are still hidden.
func (m *Mapping) inFlight(until time.Time) bool { return m.server.Now().Before(until) }

// visibility is the queue's visibility timeout.
func (m *Mapping) visibility() time.Duration {
	out, err := m.server.GetQueueAttributes(sqsserver.WithoutFaults(context.Background()),
		&sqsserver.GetQueueAttributesInput{QueueUrl: m.url, AttributeNames: []string{"VisibilityTimeout"}})
	if err != nil {
		return 0 // the queue has gone, and its messages with it
	}
	seconds, err := strconv.Atoi(out.Attributes["VisibilityTimeout"])
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// delete deletes messages. Those that cannot be deleted come again, as on AWS.
func (m *Mapping) delete(messages []message) {
	for some := range slices.Chunk(messages, maxReceive) {
		left, err := some, error(nil)
		pause := firstDeletePause
		for try := 1; ; try++ {
			if left, err = m.deleteBatch(left); len(left) == 0 {
				break
			}
			if refusal, refused := errors.AsType[*sqsserver.Error](err); refused && refusal.Code == codeQueueGone {
				return // the queue has gone, and its messages with it
			}
			if try == maxDeletes {
				m.log.Warn("messages of an event that succeeded could not be deleted and come again", "messages", len(left), "error", err)
				break
			}
			time.Sleep(pause)
			pause *= 2
		}
	}
}

// deleteBatch deletes up to ten messages and returns those that remain, with the reason. If the
// server no longer accepts a receipt handle, another receive has the message: the handle deletes
// nothing.
func (m *Mapping) deleteBatch(messages []message) (left []message, err error) {
	in := &sqsserver.DeleteMessageBatchInput{QueueUrl: m.url}
	for i, next := range messages {
		in.Entries = append(in.Entries, sqsserver.DeleteMessageBatchRequestEntry{Id: strconv.Itoa(i), ReceiptHandle: next.receipt})
	}
	out, err := m.server.DeleteMessageBatch(context.Background(), in)
	if err != nil {
		return messages, err
	}
	for _, entry := range out.Failed {
		i, _ := strconv.Atoi(entry.Id)
		if entry.SenderFault {
			m.log.Warn("a message of an event that succeeded cannot be deleted and comes again",
				"message", messages[i].id, "error", entry.Code+": "+entry.Message)
			continue
		}
		left = append(left, messages[i])
		err = fmt.Errorf("%s: %s", entry.Code, entry.Message)
	}
	return left, err
}

// release makes messages visible that no function has seen. If that fails, they become visible
// when their visibility timeout ends.
func (m *Mapping) release(messages []message) {
	for some := range slices.Chunk(messages, maxReceive) {
		in := &sqsserver.ChangeMessageVisibilityBatchInput{QueueUrl: m.url}
		for i, next := range some {
			in.Entries = append(in.Entries, sqsserver.ChangeMessageVisibilityBatchRequestEntry{
				Id: strconv.Itoa(i), ReceiptHandle: next.receipt, VisibilityTimeout: sqsserver.Int(0),
			})
		}
		if _, err := m.server.ChangeMessageVisibilityBatch(context.Background(), in); err != nil {
			m.log.Debug("messages of a mapping that ended stay hidden until their visibility timeout ends", "messages", len(some), "error", err)
		}
	}
}
