package emulator

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Journal keeps asynchronous events on a disk. It has some methods of [sqsserver.Journal]; here
// Commit may be called by many goroutines at once. It can be the journal of an SQS server, whose
// keys begin with other bytes.
type Journal interface {
	Scan(prefix []byte, f func(key, value []byte) error) error
	Commit(b *sqsserver.Batch, sync bool) error
}

// The keys of events: this byte and a number that grows, so that they are in the order
// in which the events were accepted.
const (
	eventKey     = 'e'
	eventVersion = 1
)

// eventStore has the events that have been accepted and have not ended. Its methods do
// nothing if its journal is nil.
type eventStore struct {
	journal Journal

	mu   sync.Mutex
	last uint64 // number of an event
}

// keptEvent is the form of an event in the journal.
type keptEvent struct {
	Version   int       `json:"version"`
	ID        string    `json:"id"`
	Function  string    `json:"function"`
	ARN       string    `json:"arn"`
	Payload   []byte    `json:"payload"`
	Trace     string    `json:"trace,omitempty"`
	Context   string    `json:"context,omitempty"`
	Accepted  time.Time `json:"accepted"`
	Due       time.Time `json:"due,omitzero"`
	Invokes   int       `json:"invokes,omitempty"`
	Throttles int       `json:"throttles,omitempty"`
	Last      *Result   `json:"last,omitempty"`
	Refusal   *Error    `json:"refusal,omitempty"`

	Ended        condition `json:"ended,omitempty"`
	DeadLettered bool      `json:"deadLettered,omitempty"`
}

// durable reports whether events survive the process.
func (s *eventStore) durable() bool { return s.journal != nil }

// accept keeps a new event. When it returns nil, no crash loses the event.
func (s *eventStore) accept(e *event) error {
	if !s.durable() {
		return nil
	}
	if w, ok := s.journal.(sqsserver.SpaceWatcher); ok && w.LowOnSpace() {
		return unkept("the disk with the events is nearly full: free some space")
	}
	s.mu.Lock()
	s.last++
	e.number = s.last
	s.mu.Unlock()
	if err := s.put(e); err != nil {
		return unkept(err.Error())
	}
	return nil
}

// unkept returns the refusal of an event that cannot be kept.
func unkept(why string) error {
	return &Error{Status: http.StatusInternalServerError, Code: "ServiceException", Message: "the asynchronous event cannot be kept: " + why}
}

// put keeps the present state of e.
func (s *eventStore) put(e *event) error {
	if !s.durable() {
		return nil
	}
	kept := keptEvent{
		Version: eventVersion, ID: e.id, Function: e.function, ARN: e.arn, Payload: e.payload, Trace: e.trace, Context: e.context,
		Accepted: e.accepted, Due: e.due, Invokes: e.invokes, Throttles: e.throttles, Refusal: e.refusal,
		Ended: e.ended, DeadLettered: e.deadLettered,
	}
	if e.invokes > 0 {
		kept.Last = &e.last
	}
	value, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	var b sqsserver.Batch
	b.Set(eventKeyOf(e.number), value)
	return s.journal.Commit(&b, true)
}

// remove forgets e, which has ended.
func (s *eventStore) remove(e *event) error {
	if !s.durable() {
		return nil
	}
	var b sqsserver.Batch
	b.Delete(eventKeyOf(e.number))
	return s.journal.Commit(&b, true) // synced: otherwise a kill would have the event invoked again
}

// load returns the events of an earlier process, in the order of acceptance.
func (s *eventStore) load() ([]*event, error) {
	if !s.durable() {
		return nil, nil
	}
	var events []*event
	err := s.journal.Scan([]byte{eventKey}, func(key, value []byte) error {
		e, err := readEvent(key, value)
		if err != nil {
			return fmt.Errorf("the asynchronous event %q of the journal cannot be understood: %w", key, err)
		}
		s.last = max(s.last, e.number)
		events = append(events, e)
		return nil
	})
	return events, err
}

func eventKeyOf(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{eventKey}, number)
}

func readEvent(key, value []byte) (*event, error) {
	if len(key) != 1+8 {
		return nil, fmt.Errorf("its key has %d bytes", len(key))
	}
	var kept keptEvent
	if err := json.Unmarshal(value, &kept); err != nil {
		return nil, err
	}
	if kept.Version != eventVersion {
		return nil, fmt.Errorf("it has the format %d, and this program reads %d only: use the program that wrote it", kept.Version, eventVersion)
	}
	e := &event{
		id: kept.ID, function: kept.Function, arn: kept.ARN, payload: kept.Payload, trace: kept.Trace, context: kept.Context,
		accepted: kept.Accepted, due: kept.Due, number: binary.BigEndian.Uint64(key[1:]),
		invokes: kept.Invokes, throttles: kept.Throttles, refusal: kept.Refusal,
		ended: kept.Ended, deadLettered: kept.DeadLettered,
	}
	if kept.Last != nil {
		e.last = *kept.Last
	}
	return e, nil
}
