package sqsserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// Open returns a server with the queues and messages that the journal holds. The
// journal is the server's from then on, and closed by it; if Open fails, it is still
// the caller's. Without a journal Open fails: use [New] for a server in memory.
//
// A crash loses no acknowledged send, delete, purge or move, and no acknowledged change of a
// queue. It may lose receives and changes of visibility of the last moments: messages then
// come again earlier than they should, with a smaller receive count, and the receipt handles
// of such receives are those of the receives that come instead. The order among the visible
// messages of a standard queue may change.
//
// A journal that the version before this one has written is converted first, which that version
// cannot read any more. A crash meanwhile is no harm: the next Open goes on. If the journal is a
// [RoomChecker], its disk must have room for the records once more.
//
// The error names the record of the journal that cannot be understood. No record is skipped
// or guessed.
func Open(journal Journal, config Config) (*Server, error) {
	if journal == nil {
		return nil, errors.New("sqsserver: Open was given no journal: give it one, or call New for a server that keeps everything in memory")
	}
	if config.TimeScale != 0 && config.TimeScale != 1 {
		return nil, fmt.Errorf("sqsserver: TimeScale is %v: %w", config.TimeScale, errClockOfJournal)
	}
	s := New(config)
	cache := config.BodyCache
	switch {
	case cache == 0:
		cache = defaultBodyCache
	case cache < 0:
		cache = 0
	}
	w := newJournalWriter(s, journal, cache)
	if err := s.replay(journal, w); err != nil {
		return nil, fmt.Errorf("sqsserver: open the journal: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writer = w
	s.engine.Record(w)
	s.resumeMoves()
	return s, nil
}

const (
	defaultBodyCache = 128 << 20

	// skippedNumbers are left out at each start. Messages that were not yet on
	// disk when the server crashed had numbers that the journal does not know, and
	// some of them were received: no other message may answer to their receipt
	// handles. Two groups of the largest size have fewer.
	skippedNumbers = 1 << 20
)

// replay restores the queues and messages of the journal.
func (s *Server) replay(journal Journal, w *journalWriter) error {
	if err := upgrade(journal, s.config.Logger); err != nil {
		return err
	}
	r := replayer{server: s, now: time.Now(), queues: make(map[uint64]*queue)}
	for _, part := range []struct {
		kind byte
		take func(key, value []byte) error
	}{
		{sequenceKey, r.takeSequence},
		{nameKey, r.takeDeletion},
		{queueKey, r.takeQueue},
		{movesKey, r.takeMoves},
		{acceptanceKey, r.takeAcceptance},
		{messageKey, r.takeMessage},
	} {
		err := journal.Scan([]byte{part.kind}, func(key, value []byte) error {
			if err := part.take(key, value); err != nil {
				return fmt.Errorf("record %q cannot be understood: %w", key, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if r.used {
		r.sequence += skippedNumbers
	}
	s.engine.Resume(r.sequence)
	w.sequence = r.sequence
	// Ids must not be repeated by a server with the same seed.
	s.random = rand.New(rand.NewPCG(s.config.Seed, 1+r.sequence))

	var b Batch
	b.Set([]byte{versionKey}, []byte{formatVersion})
	b.Set([]byte{sequenceKey}, appendSequence(nil, r.sequence))
	return journal.Commit(&b, true)
}

// replayer restores the records of a journal.
type replayer struct {
	server   *Server
	now      time.Time
	queues   map[uint64]*queue
	sequence uint64
	used     bool         // the journal has been a server's
	state    engine.State // reused, as the next
	newest   *queue
}

func (r *replayer) takeSequence(_, value []byte) error {
	var err error
	r.used = true
	r.sequence, err = decodeSequence(value)
	return err
}

func (r *replayer) takeDeletion(key, value []byte) error {
	at, err := decodeDeletion(value)
	if err != nil {
		return err
	}
	name, err := parseNameKey(key)
	if err == nil {
		r.server.deleted[name] = at
	}
	return err
}

func (r *replayer) takeQueue(key, value []byte) error {
	record, err := decodeQueue(value)
	if err != nil {
		return err
	}
	attributes, err := defaultAttributes(record.attributes["FifoQueue"] == "true").with(record.attributes)
	if err != nil {
		return err
	}
	q := &queue{
		queueName:  record.name,
		arn:        record.name.arn(),
		fifo:       attributes.fifo,
		created:    timeOf(record.created),
		modified:   timeOf(record.modified),
		purged:     timeOf(record.purged),
		tags:       record.tags,
		attributes: attributes,
	}
	if err := parseKey(key, &q.id); err != nil {
		return err
	}
	s := r.server
	if s.byARN[q.arn] != nil {
		return fmt.Errorf("there are two queues %s", q.arn)
	}
	settings := s.settings(attributes)
	settings.DedupPerGroup = record.dedupPerGroup
	q.engine = s.engine.Create(r.now, q.arn, settings)
	s.queues[q.queueName], s.byARN[q.arn] = q, q
	r.queues[q.id] = q
	return nil
}

func (r *replayer) takeMoves(key, value []byte) error {
	var id uint64
	q, err := r.queue(key, &id, &id)
	if err == nil {
		q.moves, err = decodeMoves(value)
	}
	return err
}

func (r *replayer) takeAcceptance(key, value []byte) error {
	var id uint64
	var a engine.Acceptance
	q, err := r.queue(key, &id, &id, &a.Sequence)
	if err == nil {
		err = decodeAcceptance(value, &a)
	}
	if err == nil {
		err = q.engine.RestoreAcceptance(&a)
	}
	return err
}

func (r *replayer) takeMessage(key, value []byte) error {
	var id uint64
	q, err := r.queue(key, &id, &id, &r.state.Sequence)
	if err == nil {
		err = decodeState(value, &r.state)
	}
	if err == nil {
		err = q.engine.Restore(&r.state)
	}
	return err
}

// queue reads the numbers of a key and returns the queue that id then names.
func (r *replayer) queue(key []byte, id *uint64, numbers ...*uint64) (*queue, error) {
	if err := parseKey(key, numbers...); err != nil {
		return nil, err
	}
	if r.newest == nil || r.newest.id != *id {
		r.newest = r.queues[*id]
	}
	if r.newest == nil {
		return nil, fmt.Errorf("it belongs to queue %x, of which there is no record", *id)
	}
	return r.newest, nil
}
