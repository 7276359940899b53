package reprise

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/retry"
)

// lastingTries is how many requests a message is in before it is given up for a
// reason that lasts. The first may fail by a clock that the SDK then corrects, or
// because the queue is a second old.
const lastingTries = 3

// sendBackoff says when what SQS failed to take is sent again.
var sendBackoff = retry.Policy{
	Backoff: retry.Exponential{Base: minSettleBackoff, Max: maxSettleBackoff},
	Jitter:  retry.Equal,
}

// dispatch starts the requests whose time has come, as many as may be under way,
// and sees to it that it is called again for the rest. The caller holds s.mu.
func (s *Sender) dispatch(now time.Time) {
	if s.gaveUp {
		return
	}
	for p := s.backoff.first; p != nil && !p.due.After(now); p = s.backoff.first {
		s.backoff.remove(p)
		s.makeReady(p)
	}
	for s.requests < s.cfg.Requests && s.isDue(now) {
		batch := s.cut()
		s.requests++
		s.tasks.Add(1)
		s.crew.run(&s.mu, func() {
			defer s.tasks.Done()
			s.carry(batch)
		})
	}
	if s.ready.first != nil && s.requests < s.cfg.Requests {
		s.wakeBy(s.flushAt, now)
	}
	if s.backoff.first != nil {
		s.wakeBy(s.backoff.first.due, now)
	}
}

// isDue says that a batch should go: it is full, or has lingered enough, or
// somebody waits for its room. The caller holds s.mu.
func (s *Sender) isDue(now time.Time) bool {
	if s.ready.first == nil {
		return false
	}
	return s.ready.count >= maxBatch || s.ready.bytes >= maxSendBytes || s.outside.first != nil || !now.Before(s.flushAt)
}

// cut takes the next batch from what is ready. The caller holds s.mu.
func (s *Sender) cut() []*parcel {
	batch := make([]*parcel, 0, min(maxBatch, s.ready.count))
	bytes := 0
	for p := s.ready.first; p != nil && len(batch) < maxBatch && bytes+p.size <= maxSendBytes; p = s.ready.first {
		if p.alone && len(batch) > 0 {
			break
		}
		s.ready.remove(p)
		p.inRequest = true
		batch = append(batch, p)
		bytes += p.size
		if p.alone {
			break
		}
	}
	if s.ready.first == nil {
		s.flushAt = time.Time{}
	}
	return batch
}

// wakeBy sets the timer, unless it fires by then in any case: under load batches
// fill long before, and it would be set for each in vain. The caller holds s.mu.
func (s *Sender) wakeBy(at, now time.Time) {
	switch {
	case s.timer == nil:
		s.tasks.Add(1)
		s.timer = time.AfterFunc(at.Sub(now), s.tick)
	case s.firesAt.IsZero():
		s.tasks.Add(1)
		s.timer.Reset(at.Sub(now))
	case !at.Before(s.firesAt) || !s.timer.Stop():
		return // tick looks again
	default:
		s.timer.Reset(at.Sub(now))
	}
	s.firesAt = at
}

// tick is called when the timer fires.
func (s *Sender) tick() {
	defer s.tasks.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firesAt = time.Time{}
	s.dispatch(time.Now())
}

// carry sends a batch and passes the answers on. If the user's code, a client or a
// context, ends this goroutine, the request has failed.
func (s *Sender) carry(batch []*parcel) {
	var sent [maxBatch]Sent
	for i := range batch {
		sent[i].Err = errUnanswered
	}
	failed := errUnanswered // the request as a whole
	defer func() { s.passOn(batch, &sent, failed) }()
	if ended := causes(batch); ended != nil {
		batch = s.dropEnded(batch, ended)
	}
	if len(batch) > 0 {
		sent, failed = s.request(batch)
	}
}

// passOn passes the answers to a batch on, and has what failed sent again.
func (s *Sender) passOn(batch []*parcel, sent *[maxBatch]Sent, failed error) {
	s.mu.Lock()
	now := time.Now()
	s.requests--
	again := s.settle(batch, sent, failed, now)
	complain := again != nil && now.Sub(s.saidAt) >= complaintEvery
	if complain {
		s.saidAt = now
	}
	s.dispatch(now)
	untold := s.untold
	s.untold = nil
	s.mu.Unlock()

	if complain {
		s.log.Error("sending failed; trying again", "error", again)
	}
	s.tell(untold)
}

// causes returns why the contexts of a batch's messages have ended, by position;
// nil if none has. A context may be the user's own code: s.mu is not held.
func causes(batch []*parcel) (ended []error) {
	for i, p := range batch {
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

// dropEnded takes the messages out of batch whose context has ended.
func (s *Sender) dropEnded(batch []*parcel, ended []error) []*parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := batch[:0]
	for i, p := range batch {
		if ended[i] == nil {
			live = append(live, p)
			continue
		}
		p.inRequest = false
		s.answer(p, Sent{Err: p.givenUp(ended[i])})
	}
	return live
}

// request sends up to ten messages. failed is why it failed as a whole: nothing
// in sent is then acknowledged.
func (s *Sender) request(batch []*parcel) (sent [maxBatch]Sent, failed error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i, p := range batch {
		entries[i] = p.message.entry()
		entries[i].Id = &positions[i]
	}
	ctx := s.limit.context(s.ctx)
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
		sent[i].Err = results[i]
	}
	for i := range out.Successful {
		entry := &out.Successful[i]
		if at, ok := position(entry.Id, len(batch)); ok && results[at] == nil {
			sent[at] = Sent{ID: deref(entry.MessageId), SequenceNumber: deref(entry.SequenceNumber)}
		}
	}
	return sent, failed
}

// entry is m as SQS takes it, but for its id.
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

// settle answers the messages of a request, or has them sent again; it returns the
// error of one for which that is not the first time. The caller holds s.mu.
func (s *Sender) settle(batch []*parcel, sent *[maxBatch]Sent, failed error, now time.Time) (again error) {
	var backoff parcels
	for i, p := range batch {
		p.inRequest = false
		p.tries++
		p.err = sent[i].Err
		p.unsure = p.unsure || mayHaveSent(p.err)
		switch {
		case p.err == nil:
			s.answer(p, sent[i])
		case s.gaveUp:
			s.answer(p, Sent{Err: p.givenUp(ErrSenderClosed)})
		case p.abandoned:
			s.answer(p, Sent{Err: p.err})
		case failed != nil && unacceptable(failed) && len(batch) > 1:
			p.alone = true // whichever it is, it must not take the others with it
			s.makeReady(p)
		case s.final(p, failed):
			s.answer(p, Sent{Err: p.failure(fmt.Errorf("sending to the queue %s: %w", s.queue.name, p.err))})
		default:
			if p.tries > 1 {
				again = p.err
			}
			backoff.push(p)
		}
	}
	s.waitOut(&backoff, now)
	return again
}

// final says that p is not to be sent again. The caller holds s.mu.
func (s *Sender) final(p *parcel, failed error) bool {
	if said, ok := errors.AsType[*refusal](p.err); ok {
		return said.ours
	}
	return failed != nil && (unacceptable(failed) || lasting(failed) && p.tries >= lastingTries)
}

// mayHaveSent says that a request that ended with err may have been carried out.
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

// waitOut moves messages into backoff: together those that have failed equally
// often, so that they share a request again. The caller holds s.mu.
func (s *Sender) waitOut(failed *parcels, now time.Time) {
	if failed.first == nil {
		return
	}
	s.retries++
	seed := s.host + " " + s.queue.name + " " + strconv.Itoa(s.retries)
	for p := failed.first; p != nil; p = failed.first {
		failed.remove(p)
		p.due = now.Add(sendBackoff.Wait(seed, p.tries))
		behind := s.backoff.last
		for behind != nil && behind.due.After(p.due) {
			behind = behind.prev
		}
		s.backoff.insert(p, behind)
	}
}

// tell calls back those who submitted messages.
func (s *Sender) tell(answers []told) {
	if len(answers) == 0 {
		return
	}
	defer func() { // the goroutine may be ending
		s.mu.Lock()
		defer s.mu.Unlock()
		s.telling -= len(answers)
		for i := range answers {
			s.passed(answers[i].number)
		}
	}()
	s.callBack(answers)
}

// callBack calls functions, which are the user's code. One that panics, or ends its
// goroutine, keeps nobody else's answer back.
func (s *Sender) callBack(answers []told) {
	if len(answers) == 0 {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("a function that was told of a sent message panicked", "panic", v, "stack", string(debug.Stack()))
		}
		s.callBack(answers)
	}()
	for len(answers) > 0 {
		next := answers[0]
		answers = answers[1:]
		next.tell(next.sent)
	}
}
