package sqsserver

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// The records of the journal. The first byte of a key is its kind; numbers in keys are
// big-endian, so that keys are in the order of the numbers.
//
//	v                                  the version of the format as a whole
//	s                                  the sequence number of the newest message
//	n <account> 0 <region> 0 <name>    when a queue of that name was deleted
//	q <queue>                          a queue: its names, times, tags, attributes
//	t <queue>                          the move tasks out of it
//	d <queue> <sequence number>        a message that a FIFO queue must recognize as a duplicate
//	m <queue> <sequence number>        a message without its content
//	b <send number>                    the content of a message
//
// Keys that begin with another byte belong to other users of the journal; the server neither reads
// nor changes them.
//
// A queue is known by the number that its receipt handles carry. The content is written once, under
// the number of the message's send, and stays there when the message moves; only receives and
// inspections read it.
//
// A value begins with a byte for the version of its encoding: this one, or the one before, which
// [upgrade] rewrites. Numbers are varints, texts
// have their length before them, and instants are nanoseconds of Unix time, 0 for none. A
// decoder accepts exactly what the encoder writes, and never guesses.
const (
	versionKey    = 'v'
	sequenceKey   = 's'
	nameKey       = 'n'
	queueKey      = 'q'
	movesKey      = 't'
	acceptanceKey = 'd'
	messageKey    = 'm'
	bodyKey       = 'b'

	// recordVersion is the version that is written. The next version reads this one, and
	// previousVersion no longer. The last change: content says whether its body is quoted.
	recordVersion   = 2
	previousVersion = recordVersion - 1

	bodyKeySize = 1 + 8
)

// The flags of a message.
const (
	wasFirstReceived = 1 << iota
	wasReceived
	isHidden
	wasMoved // its send number is not its sequence number
	wasDeadLettered

	allMessageFlags = 1<<iota - 1
)

// messageFlags returns which optional fields a message's record has: those that differ from
// their defaults.
func messageFlags(s *engine.State) byte {
	var flags byte
	if s.FirstReceived != engine.Never {
		flags |= wasFirstReceived
	}
	if s.Received != engine.Never {
		flags |= wasReceived
	}
	if s.HiddenUntil != engine.Never {
		flags |= isHidden
	}
	if s.SendNumber != s.Sequence {
		flags |= wasMoved
	}
	if s.Source != "" {
		flags |= wasDeadLettered
	}
	return flags
}

func appendState(dst []byte, s *engine.State) []byte {
	flags := messageFlags(s)
	dst = append(dst, recordVersion, flags)
	dst = append(dst, s.ID[:]...)
	dst = binary.AppendUvarint(dst, uint64(s.Slot))
	dst = binary.AppendVarint(dst, s.SentAt)
	dst = binary.AppendUvarint(dst, uint64(s.Receives))
	dst = binary.AppendUvarint(dst, uint64(s.Before))
	dst = appendText(dst, s.Group)
	dst = appendText(dst, s.Dedup)
	if flags&wasFirstReceived != 0 {
		dst = binary.AppendVarint(dst, s.FirstReceived)
	}
	if flags&wasReceived != 0 {
		dst = binary.AppendVarint(dst, s.Received)
	}
	if flags&isHidden != 0 {
		dst = binary.AppendVarint(dst, s.HiddenUntil)
	}
	if flags&wasMoved != 0 {
		dst = binary.AppendUvarint(dst, s.SendNumber)
	}
	if flags&wasDeadLettered != 0 {
		dst = appendText(dst, s.Source)
	}
	return dst
}

// decodeState reads a message's record into s, whose Sequence is that of the key.
func decodeState(value []byte, s *engine.State) error {
	r := newRecord(value)
	flags := r.byte()
	if flags&^allMessageFlags != 0 {
		r.fail(fmt.Errorf("it has the flags %#x, of which not all are known", flags))
	}
	copy(s.ID[:], r.bytes(len(s.ID)))
	s.Slot = r.uint32()
	s.SentAt = r.varint()
	s.Receives = r.uint32()
	s.Before = r.uint32()
	s.Group = r.text()
	s.Dedup = r.text()
	s.FirstReceived, s.Received, s.HiddenUntil = engine.Never, engine.Never, engine.Never
	if flags&wasFirstReceived != 0 {
		s.FirstReceived = r.varint()
	}
	if flags&wasReceived != 0 {
		s.Received = r.varint()
	}
	if flags&isHidden != 0 {
		s.HiddenUntil = r.varint()
	}
	s.SendNumber = s.Sequence
	if flags&wasMoved != 0 {
		s.SendNumber = r.uvarint()
	}
	s.Source = ""
	if flags&wasDeadLettered != 0 {
		s.Source = r.text()
	}
	if want := messageFlags(s); want != flags {
		r.fail(fmt.Errorf("it has the flags %#x, and its fields have %#x", flags, want))
	}
	return r.end()
}

func appendAcceptance(dst []byte, a *engine.Acceptance) []byte {
	dst = append(dst, recordVersion)
	dst = append(dst, a.ID[:]...)
	dst = binary.AppendVarint(dst, a.At)
	dst = appendText(dst, a.Group)
	return appendText(dst, a.Dedup)
}

func decodeAcceptance(value []byte, a *engine.Acceptance) error {
	r := newRecord(value)
	copy(a.ID[:], r.bytes(len(a.ID)))
	a.At = r.varint()
	a.Group = r.text()
	a.Dedup = r.text()
	return r.end()
}

func appendContent(dst []byte, c *content) []byte {
	dst = append(dst, recordVersion)
	dst = append(dst, c.bodyMD5[:]...)
	dst = appendText(dst, c.sender)
	dst = appendText(dst, c.traceHeader)
	dst = append(dst, c.traceHeaderMD5[:]...)
	dst = append(dst, c.attributesMD5[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(c.attributes)))
	for i := range c.attributes {
		a := &c.attributes[i]
		dst = appendText(dst, a.Name)
		dst = appendText(dst, a.DataType)
		if a.isBinary() {
			dst = appendText(dst, a.BinaryValue)
		} else {
			dst = appendText(dst, a.StringValue)
		}
	}
	dst = appendFlag(dst, c.body.quoted)
	return appendText(dst, c.body.text)
}

// decodeContent keeps nothing of the record.
func decodeContent(value []byte) (*content, error) {
	r := newRecord(value)
	c := new(content)
	copy(c.bodyMD5[:], r.bytes(len(c.bodyMD5)))
	c.sender = r.text()
	c.traceHeader = r.text()
	copy(c.traceHeaderMD5[:], r.bytes(len(c.traceHeaderMD5)))
	copy(c.attributesMD5[:], r.bytes(len(c.attributesMD5)))
	for range r.count() {
		a := MessageAttribute{Name: r.text(), DataType: r.text()}
		if a.isBinary() {
			a.BinaryValue = slices.Clone(r.bytes(r.length()))
		} else {
			a.StringValue = r.text()
		}
		c.attributes = append(c.attributes, a)
	}
	if r.version >= 2 { // before, no body was quoted
		c.body.quoted = r.flag()
	}
	c.body.text = r.text()
	if err := r.end(); err != nil {
		return nil, err
	}
	return c, nil
}

// queueRecord is the content of a queue's record.
type queueRecord struct {
	name                      queueName
	created, modified, purged int64
	dedupPerGroup             bool // of the engine: fixed when the queue was created
	tags                      map[string]string
	attributes                map[string]string // as SetQueueAttributes takes them
}

func appendQueue(dst []byte, q *queue) []byte {
	record := queueRecord{
		name:    q.queueName,
		created: instantOf(q.created), modified: instantOf(q.modified), purged: instantOf(q.purged),
		dedupPerGroup: q.engine.Settings().DedupPerGroup,
		tags:          q.tags,
		attributes:    q.attributes.settable(),
	}
	return record.append(dst)
}

func (q *queueRecord) append(dst []byte) []byte {
	dst = append(dst, recordVersion)
	dst = appendText(dst, q.name.account)
	dst = appendText(dst, q.name.region)
	dst = appendText(dst, q.name.name)
	dst = binary.AppendVarint(dst, q.created)
	dst = binary.AppendVarint(dst, q.modified)
	dst = binary.AppendVarint(dst, q.purged)
	dst = appendFlag(dst, q.dedupPerGroup)
	dst = appendTexts(dst, q.tags)
	return appendTexts(dst, q.attributes)
}

func decodeQueue(value []byte) (*queueRecord, error) {
	r := newRecord(value)
	q := &queueRecord{
		name:    queueName{account: r.text(), region: r.text(), name: r.text()},
		created: r.varint(), modified: r.varint(), purged: r.varint(),
		dedupPerGroup: r.flag(),
		tags:          r.texts(),
		attributes:    r.texts(),
	}
	return q, r.end()
}

func appendMoves(dst []byte, tasks []*moveTask) []byte {
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, uint64(len(tasks)))
	for _, task := range tasks {
		dst = append(dst, task.id[:]...)
		dst = appendText(dst, task.source)
		dst = appendText(dst, task.destination)
		dst = binary.AppendVarint(dst, int64(task.rate))
		dst = binary.AppendVarint(dst, instantOf(task.started))
		dst = appendText(dst, task.status)
		dst = appendText(dst, task.reason)
		dst = binary.AppendVarint(dst, task.moved)
		dst = binary.AppendVarint(dst, task.toMove)
	}
	return dst
}

func decodeMoves(value []byte) ([]*moveTask, error) {
	r := newRecord(value)
	var tasks []*moveTask
	for range r.count() {
		task := new(moveTask)
		copy(task.id[:], r.bytes(len(task.id)))
		task.source = r.text()
		task.destination = r.text()
		task.rate = r.int32()
		task.started = timeOf(r.varint())
		task.begun = task.started // a server with a journal has the machine's time
		task.status = r.text()
		task.reason = r.text()
		task.moved = r.varint()
		task.toMove = r.varint()
		tasks = append(tasks, task)
	}
	return tasks, r.end()
}

func appendDeletion(dst []byte, at time.Time) []byte {
	return binary.AppendVarint(append(dst, recordVersion), instantOf(at))
}

func decodeDeletion(value []byte) (time.Time, error) {
	r := newRecord(value)
	at := timeOf(r.varint())
	return at, r.end()
}

func appendSequence(dst []byte, sequence uint64) []byte {
	return binary.AppendUvarint(append(dst, recordVersion), sequence)
}

func decodeSequence(value []byte) (uint64, error) {
	r := newRecord(value)
	sequence := r.uvarint()
	return sequence, r.end()
}
