package reprise

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/sending"
	"github.com/reprise-sqs/reprise/retry"
)

// lastingTries is how many requests with a message are made before it is given up for a
// lasting reason. The first may fail because our clock is wrong, which the SDK then corrects,
// or because the queue was created only a second ago.
const lastingTries = 3

// sendBackoff says when a message that SQS did not accept is sent again.
var sendBackoff = retry.Policy{
	Backoff: retry.Exponential{Base: 100 * time.Millisecond, Max: 5 * time.Second},
	Jitter:  retry.Equal,
}

// deliver sends a batch and passes the results on. If the user's code, a client or a context,
// ends this goroutine, the request has failed.
func (s *Sender) deliver(batch []*sending.Message) {
	defer s.tasks.Done()
	var sent [maxBatch]Sent
	for i := range batch {
		sent[i].Err = consumer.ErrUnanswered
	}
	failed := consumer.ErrUnanswered // the request as a whole
	var dropped []*parcel
	defer func() { s.passOn(batch, &sent, failed, dropped) }()
	if ended := causes(batch); ended != nil {
		batch, dropped = s.dropEnded(batch, ended)
	}
	if len(batch) > 0 {
		sent, failed = s.request(batch)
	}
}

// passOn gives the machine the results of a batch, which decides what is sent again, and calls
// the submitters. dropped are messages that were taken out of the batch, and whose submitters
// have not been called yet.
func (s *Sender) passOn(batch []*sending.Message, sent *[maxBatch]Sent, failed error, dropped []*parcel) {
	var results [sending.MaxEntries]sending.Result
	for i := range batch {
		results[i] = sending.Result{Verdict: verdictOf(sent[i].Err, failed), Unsure: mayHaveSent(sent[i].Err)}
	}
	calls := s.step(ErrSenderClosed, func(now time.Time) {
		for i, m := range batch {
			parcelOf(m).sent = sent[i]
		}
		s.machine.Replied(now, batch, &results)
	})
	if dropped != nil {
		calls.answered = append(dropped, calls.answered...)
	}
	s.call(calls)
}

// causes returns why the contexts of a batch's messages have ended, by position; nil if none
// has. A context may be the user's own code: the caller does not hold s.mu.
func causes(batch []*sending.Message) (ended []error) {
	for i, m := range batch {
		p := parcelOf(m)
		if p.ctx == nil || p.ctx.Err() == nil {
			continue
		}
		if ended == nil {
			ended = make([]error, len(batch))
		}
		ended[i] = context.Cause(p.ctx)
	}
	return ended
}

// dropEnded takes the messages whose context has ended out of batch.
func (s *Sender) dropEnded(batch []*sending.Message, ended []error) (live []*sending.Message, dropped []*parcel) {
	live = batch[:0]
	for i, m := range batch {
		if ended[i] == nil {
			live = append(live, m)
			continue
		}
		calls := s.step(ended[i], func(now time.Time) { s.machine.Drop(now, m) })
		dropped = append(dropped, calls.answered...)
	}
	return live, dropped
}

// request sends up to ten messages. failed is why the request failed as a whole: then no
// message in sent is acknowledged.
func (s *Sender) request(batch []*sending.Message) (sent [maxBatch]Sent, failed error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i, m := range batch {
		entries[i] = parcelOf(m).message.entry()
		entries[i].Id = &positions[i]
	}
	ctx := s.limit.context(s.ctx)
	s.requests.Add(1)
	var out *sqs.SendMessageBatchOutput
	_, failed = guard(func() (int, error) {
		var err error
		out, err = s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &s.queue.url, Entries: entries}, withoutRetries)
		if err != nil {
			return 0, err
		}
		return len(out.Failed), nil
	})
	if failed != nil {
		out = &sqs.SendMessageBatchOutput{}
	}
	results := sortReply(len(batch), len(out.Successful), func(i int) *string { return out.Successful[i].Id }, out.Failed, failed)
	for i := range batch {
		sent[i].Err = results[i].Err
	}
	for i := range out.Successful {
		entry := &out.Successful[i]
		if at, ok := position(entry.Id, len(batch)); ok && results[at].Err == nil {
			sent[at] = Sent{ID: deref(entry.MessageId), SequenceNumber: deref(entry.SequenceNumber)}
		}
	}
	return sent, failed
}

// entry returns m as an entry of a request, without the entry's id.
func (m *Outgoing) entry() types.SendMessageBatchRequestEntry {
	entry := types.SendMessageBatchRequestEntry{
		MessageBody:       &m.Body,
		MessageAttributes: m.Attributes,
		DelaySeconds:      int32((m.Delay + time.Second - 1) / time.Second),
	}
	if m.GroupID != "" {
		entry.MessageGroupId = &m.GroupID
	}
	if m.DeduplicationID != "" {
		entry.MessageDeduplicationId = &m.DeduplicationID
	}
	if m.TraceHeader != "" {
		entry.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
			string(types.MessageSystemAttributeNameForSendsAWSTraceHeader): {DataType: aws.String("String"), StringValue: &m.TraceHeader},
		}
	}
	return entry
}

// verdictOf returns what err, a message's result in a request, means for the message; failed
// is why the request failed as a whole.
func verdictOf(err, failed error) sending.Verdict {
	if err == nil {
		return sending.Taken
	}
	if said, ok := errors.AsType[*refusal](err); ok {
		if said.ours {
			return sending.Refused
		}
		return sending.Failed
	}
	switch {
	case failed == nil:
		return sending.Failed
	case unacceptable(failed):
		return sending.Unacceptable
	case lasting(failed):
		return sending.Lasting
	}
	return sending.Failed
}

// mayHaveSent reports whether a request that ended with err may have been carried out.
func mayHaveSent(err error) bool {
	if err == nil {
		return false
	}
	if _, ok := errors.AsType[*refusal](err); ok {
		return false
	}
	reply, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err)
	return !ok || reply.HTTPStatusCode() < 400 || reply.HTTPStatusCode() > 499
}

// call logs a complaint, and calls the functions of those who submitted messages.
func (s *Sender) call(calls userCalls) {
	if calls.complaint != nil {
		s.log.Error("sending failed; trying again", "error", calls.complaint)
	}
	if len(calls.answered) == 0 {
		return
	}
	defer s.step(nil, func(now time.Time) { // the goroutine may be ending
		for _, p := range calls.answered {
			s.machine.Told(now, &p.Message)
		}
	})
	s.callBack(calls.answered)
}

// callBack calls the functions that were passed to Submit. If one panics or ends this
// goroutine, the others are called all the same.
func (s *Sender) callBack(answers []*parcel) {
	if len(answers) == 0 {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("a function passed to Submit panicked", "panic", v, "stack", string(debug.Stack()))
		}
		s.callBack(answers)
	}()
	for len(answers) > 0 {
		next := answers[0]
		answers = answers[1:]
		next.tell(next.sent)
	}
}
