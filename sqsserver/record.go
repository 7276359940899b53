package sqsserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// The records of the journal. A key begins with the byte that says its kind;
// numbers in keys are big-endian, so that keys are in the order of the numbers.
//
//	v                                  the version of the format as a whole
//	s                                  the sequence number of the newest message
//	n <account> 0 <region> 0 <name>    when a queue of that name was deleted
//	q <queue>                          a queue: its names, times, tags, attributes
//	t <queue>                          the move tasks out of it
//	d <queue> <sequence number>        what a FIFO queue must recognize
//	m <queue> <sequence number>        a message but for its content
//	b <origin>                         the content of a message
//
// A queue is known by the number that its receipt handles carry. The content is
// written once and stays under the number of the message's sending, wherever the
// message moves; nothing but a receive reads it.
//
// A value begins with a byte for the version of its encoding. Numbers are
// varints, texts have their length before them, and instants are nanoseconds of
// Unix time, 0 for none. A decoder accepts exactly what the encoder writes: what
// it does not understand must not be guessed.
const (
	versionKey    = 'v'
	sequenceKey   = 's'
	nameKey       = 'n'
	queueKey      = 'q'
	movesKey      = 't'
	acceptanceKey = 'd'
	messageKey    = 'm'
	bodyKey       = 'b'

	recordVersion = 1
	bodyKeySize   = 1 + 8
)

func appendQueueKey(dst []byte, kind byte, queue uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, kind), queue)
}

func appendMessageKey(dst []byte, queue, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(appendQueueKey(dst, messageKey, queue), sequence)
}

func appendAcceptanceKey(dst []byte, queue, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(appendQueueKey(dst, acceptanceKey, queue), sequence)
}

func appendBodyKey(dst []byte, origin uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, bodyKey), origin)
}

func appendNameKey(dst []byte, name queueName) []byte {
	dst = append(dst, nameKey)
	dst = append(dst, name.account...)
	dst = append(append(dst, 0), name.region...)
	return append(append(dst, 0), name.name...)
}

func parseNameKey(key []byte) (queueName, error) {
	account, rest, _ := strings.Cut(string(key[1:]), "\x00")
	region, name, found := strings.Cut(rest, "\x00")
	if !found || name == "" {
		return queueName{}, errors.New("its key names no queue")
	}
	return queueName{account: account, region: region, name: name}, nil
}

// following returns the first key that does not begin with the prefix. No prefix
// is all 0xff, for it begins with the kind.
func following(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
}

// parseKey reads the numbers of a key.
func parseKey(key []byte, numbers ...*uint64) error {
	if len(key) != 1+8*len(numbers) {
		return fmt.Errorf("the key has %d bytes, want %d", len(key), 1+8*len(numbers))
	}
	for i, n := range numbers {
		*n = binary.BigEndian.Uint64(key[1+8*i:])
	}
	return nil
}

// The flags of a message.
const (
	wasFirstReceived = 1 << iota
	wasReceived
	isHidden
	wasMoved // its origin is another number than its own
	wasDeadLettered

	allMessageFlags = 1<<iota - 1
)

// messageFlags says which of its optional fields a message's record has: those
// that are not what a decoder takes them for without being told.
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
	if s.Origin != s.Sequence {
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
		dst = binary.AppendUvarint(dst, s.Origin)
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
	s.Origin = s.Sequence
	if flags&wasMoved != 0 {
		s.Origin = r.uvarint()
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
	return appendText(dst, c.body)
}

// decodeContent copies what it takes out of the record.
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
	c.body = r.text()
	if err := r.end(); err != nil {
		return nil, err
	}
	return c, nil
}

// queueRecord is what a queue's record says.
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

func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendTexts(dst []byte, texts map[string]string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		dst = appendText(appendText(dst, name), texts[name])
	}
	return dst
}

func appendFlag(dst []byte, flag bool) []byte {
	if flag {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// record reads a value. After its first error it reads zeros, and end reports
// that error.
type record struct {
	rest []byte
	err  error
}

var errShortRecord = errors.New("it ends early")

func newRecord(value []byte) *record {
	r := &record{rest: value}
	if version := r.byte(); r.err == nil && version != recordVersion {
		r.fail(fmt.Errorf("its version is %d, this program reads version %d only: open it with the program that wrote it", version, recordVersion))
	}
	return r
}

func (r *record) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

func (r *record) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("it goes on for %d bytes after its end", len(r.rest))
	}
	return r.err
}

func (r *record) bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.fail(errShortRecord)
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *record) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *record) flag() bool {
	b := r.byte()
	if b > 1 {
		r.fail(fmt.Errorf("%d is neither yes nor no", b))
	}
	return b == 1
}

func (r *record) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	switch {
	case size == 0:
		r.fail(errShortRecord)
		return 0
	case size < 0 || size > 1 && r.rest[size-1] == 0:
		r.fail(errors.New("a number has more digits than it needs"))
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *record) varint() int64 {
	n := r.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *record) uint32() uint32 {
	n := r.uvarint()
	if uint64(uint32(n)) != n {
		r.fail(fmt.Errorf("the number %d is too large", n))
	}
	return uint32(n)
}

func (r *record) int32() int32 {
	n := r.varint()
	if int64(int32(n)) != n {
		r.fail(fmt.Errorf("the number %d is too large", n))
	}
	return int32(n)
}

// length reads the length of a text that follows.
func (r *record) length() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail(errShortRecord)
		return 0
	}
	return int(n)
}

// count reads the number of entries that follow, of a byte at least.
func (r *record) count() int { return r.length() }

func (r *record) text() string { return string(r.bytes(r.length())) }

func (r *record) texts() map[string]string {
	var texts map[string]string
	before := ""
	for i := range r.count() {
		name, value := r.text(), r.text()
		if i > 0 && name <= before {
			r.fail(fmt.Errorf("%q comes after %q", name, before))
		}
		if texts == nil {
			texts = make(map[string]string)
		}
		texts[name], before = value, name
	}
	return texts
}
