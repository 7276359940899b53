package engine

import (
	"encoding/hex"
	"time"
)

// ID is a message id: the 16 bytes of a UUID, chosen by the caller of
// [Engine.Send] and kept when the message is dead-lettered.
type ID [16]byte

// String returns the UUID in its usual form, lower case with hyphens.
func (id ID) String() string {
	var text [36]byte
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// Message is a message as a producer sends it.
type Message struct {
	ID ID
	// Group is the message group. On a FIFO queue it orders and locks; on a standard queue it names
	// the tenant, for fair queues. Empty means none.
	Group string
	// Dedup is the deduplication id. A FIFO queue needs one; a standard queue only stores it.
	Dedup string
	// Delay is how long the message is hidden after it is sent. Negative means the queue's delay;
	// so does any value on a FIFO queue, which has no delay per message. In deliveries it is zero.
	Delay time.Duration
	// Payload is stored and never read.
	Payload any
}

// Sent is the outcome of a send.
type Sent struct {
	// ID and Sequence are those of the message in the queue: for a duplicate, those of the
	// original.
	ID ID
	// Sequence orders the messages of a FIFO queue; 0 on a standard queue.
	Sequence uint64
	// SendNumber is the number of the send over all queues; see [Delivery].
	SendNumber uint64
	// Duplicate reports that a FIFO queue accepted an equal message within the last five
	// minutes, and discarded this one.
	Duplicate bool
}

// Receipt names a message in one queue and the receive that handed it out. A
// receipt stays valid, in the sense of the staleness rules of [Engine.Delete]
// and [Engine.ChangeVisibility], until the message leaves the queue; numbers
// are not used again.
type Receipt struct {
	// Number names the message within its queue. Never 0.
	Number uint64
	// Generation counts the receives of the message. 0 on a message that was
	// never received.
	Generation uint32
}

// Delivery is a message that was received, or that an inspection shows.
type Delivery struct {
	Message
	Receipt Receipt
	// Sequence is the FIFO sequence number; 0 on a standard queue.
	Sequence uint64
	// SendNumber is the number of the send over all queues. The message keeps it when
	// it moves to another queue, and no other message ever has it.
	SendNumber uint64
	// SentAt is when the message was sent. Dead-lettering keeps it on a
	// standard queue and renews it on a FIFO queue.
	SentAt time.Time
	// FirstReceived is when the message was first received, in whichever queue it was at that time;
	// zero before.
	FirstReceived time.Time
	// Receives counts the receives, over all queues the message was in.
	Receives int
	// Source is the key of the queue that dead-lettered the message; "" if
	// none did.
	Source string
	// VisibleAt is when the delay or the lease ends; zero when the message is
	// visible.
	VisibleAt time.Time
	// InFlight reports that the message is hidden because it was received. A hidden message that
	// is not in flight is delayed.
	InFlight bool
}
