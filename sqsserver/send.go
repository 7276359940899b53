package sqsserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// content is the part of a message that the engine stores without reading it. It never changes.
type content struct {
	body           body
	bodyMD5        MD5
	attributes     []MessageAttribute // in ascending order of their names
	attributesMD5  MD5
	traceHeader    string
	traceHeaderMD5 MD5 // MD5OfMessageSystemAttributes
	sender         string
}

// SendMessage sends a message.
func (s *Server) SendMessage(ctx context.Context, in *SendMessageInput) (*SendMessageOutput, error) {
	from := s.callerOf(ctx)
	r, err := s.lookup(ctx, in.QueueUrl, actionSendMessage)
	if err != nil {
		return nil, err
	}
	entry := in.SendMessageEntry // check may put its attributes in order
	if err := checkMessage(r.attributes, from, &entry, false); err != nil {
		return nil, err
	}
	if err := checkFIFO(r.attributes, &entry, false); err != nil {
		return nil, err
	}
	if err := s.checkSpace(); err != nil {
		return nil, err
	}
	m := newMessage(r.attributes, from, &entry)

	var sent engine.Sent
	var synced *commitGroup
	err = s.underLock(r.queue, func(now time.Time) {
		sent = s.send(now, r.queue, &m)
		synced = s.pendingCommit()
	})
	if err != nil {
		return nil, err
	}
	if err := synced.wait(ctx); err != nil {
		return nil, err
	}

	out := sendOutput(sent, m.Payload.(*content))
	return &out, r.delayOrLose(ctx)
}

// SendMessageBatch sends up to ten messages.
func (s *Server) SendMessageBatch(ctx context.Context, in *SendMessageBatchInput) (*SendMessageBatchOutput, error) {
	from := s.callerOf(ctx)
	r, err := s.lookup(ctx, in.QueueUrl, actionSendMessageBatch)
	if err != nil {
		return nil, err
	}
	if err := checkSendBatch(r.attributes, in.Entries); err != nil {
		return nil, err
	}
	if err := s.checkSpace(); err != nil {
		return nil, err
	}

	var messages [maxBatchEntries]engine.Message
	var failures [maxBatchEntries]error
	for i := range in.Entries {
		entry := in.Entries[i].SendMessageEntry
		if s.faults.entry(r.queue.name, actionSendMessageBatch).kind == FaultFailEntry {
			failures[i] = errInternalError(injectedMessage)
		} else if failures[i] = checkMessage(r.attributes, from, &entry, true); failures[i] == nil {
			messages[i] = newMessage(r.attributes, from, &entry)
		}
	}

	var sent [maxBatchEntries]engine.Sent
	var synced *commitGroup
	err = s.underLock(r.queue, func(now time.Time) {
		for i := range in.Entries {
			if failures[i] == nil {
				sent[i] = s.send(now, r.queue, &messages[i])
			}
		}
		synced = s.pendingCommit()
	})
	if err != nil {
		return nil, err
	}
	if err := synced.wait(ctx); err != nil {
		return nil, err
	}

	out := &SendMessageBatchOutput{Successful: make([]SendMessageBatchResultEntry, 0, len(in.Entries))}
	for i := range in.Entries {
		id := in.Entries[i].Id
		if failures[i] != nil {
			out.Failed = append(out.Failed, failedEntry(id, failures[i]))
			continue
		}
		out.Successful = append(out.Successful, SendMessageBatchResultEntry{
			Id: id, SendMessageOutput: sendOutput(sent[i], messages[i].Payload.(*content))})
	}
	return out, r.delayOrLose(ctx)
}

// checkSendBatch returns the error with which SQS refuses a batch as a whole, or nil.
func checkSendBatch(a *attributes, entries []SendMessageBatchRequestEntry) error {
	id := func(i int) string { return entries[i].Id }
	if err := checkBatch("SendMessageBatchRequestEntry", len(entries), id); err != nil {
		return err
	}
	size := 0
	for i := range entries {
		entry := &entries[i].SendMessageEntry
		if err := checkFIFO(a, entry, true); err != nil {
			return err
		}
		size += entry.size()
	}
	if size > maxBatchSize {
		return errBatchTooLong(size)
	}
	return nil
}

// checkFIFO checks that a message for a FIFO queue has a group and a deduplication id. If one
// has not, the whole batch is refused. The ids themselves are checked for each entry: they must
// be valid, and not empty.
func checkFIFO(a *attributes, entry *SendMessageEntry, inBatch bool) error {
	switch {
	case !a.fifo:
		return nil
	case entry.MessageGroupId == "" && !entry.emptyGroupID:
		return errNoGroup(inBatch)
	case entry.MessageDeduplicationId == "" && !entry.emptyDeduplicationID && !a.contentDeduplication:
		return errNoDeduplication()
	}
	return nil
}

// checkMessage checks a message for a queue with the attributes.
func checkMessage(a *attributes, from *caller, entry *SendMessageEntry, inBatch bool) error {
	if err := entry.check(); err != nil {
		return err
	}
	switch {
	case from.traceHeader != "" && !validTraceHeader(from.traceHeader):
		return errTraceHeader()
	case entry.size() > int(a.maxSize):
		return errMessageTooLong(int(a.maxSize), inBatch)
	case a.fifo && entry.DelaySeconds.Value > 0:
		return errDelayOnFIFO(entry.DelaySeconds.Value)
	case !a.fifo && entry.MessageDeduplicationId != "":
		return errNeedsFIFO("MessageDeduplicationId", entry.MessageDeduplicationId)
	}
	return nil
}

// newMessage returns a checked entry as the engine's message, without an id.
func newMessage(a *attributes, from *caller, entry *SendMessageEntry) engine.Message {
	c := &content{
		body:          entry.body.body,
		bodyMD5:       entry.body.md5,
		attributes:    entry.MessageAttributes,
		attributesMD5: digestAttributes(entry.MessageAttributes),
		sender:        from.account,
		traceHeader:   from.traceHeader,
	}
	if len(entry.MessageSystemAttributes) > 0 { // SQS has only one
		c.traceHeader = entry.MessageSystemAttributes[0].StringValue
		c.traceHeaderMD5 = digestAttributes(entry.MessageSystemAttributes)
	}
	m := engine.Message{
		Group:   entry.MessageGroupId,
		Dedup:   entry.MessageDeduplicationId,
		Delay:   -1,
		Payload: c,
	}
	// On a FIFO queue a delay of 0 still means the queue's.
	if entry.DelaySeconds.Set && !a.fifo {
		m.Delay = seconds(entry.DelaySeconds.Value)
	}
	if a.fifo && m.Dedup == "" {
		hash := sha256.Sum256(bytesOf(c.body.plain()))
		m.Dedup = hex.EncodeToString(hash[:])
	}
	return m
}

// send puts a message into the queue. If there is a journal, it keeps the content, and the
// engine has none. The lock is held.
func (s *Server) send(now time.Time, q *queue, m *engine.Message) engine.Sent {
	m.ID = s.newMessageID()
	if s.writer == nil {
		return s.engine.Send(now, q.engine, *m)
	}
	bare := *m
	bare.Payload = nil
	sent := s.engine.Send(now, q.engine, bare)
	if !sent.Duplicate {
		s.writer.recordBody(sent.SendNumber, m.Payload.(*content))
	}
	return sent
}

// newMessageID is called under the lock.
func (s *Server) newMessageID() engine.ID {
	return engine.ID(newUUID(s.random.Uint64(), s.random.Uint64()))
}

func sendOutput(sent engine.Sent, c *content) SendMessageOutput {
	return SendMessageOutput{
		MessageId:                    UUID(sent.ID),
		MD5OfMessageBody:             c.bodyMD5,
		MD5OfMessageAttributes:       c.attributesMD5,
		MD5OfMessageSystemAttributes: c.traceHeaderMD5,
		SequenceNumber:               publicSequence(sent.Sequence),
	}
}

// publicSequence turns the engine's number into one of 20 digits, as AWS's have, so that
// numbers can be compared as text.
func publicSequence(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return 1e19 + n
}
