package sqsserver

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// What waits in a backlog was mostly sent one after the other, and is received so. A
// receive that has to ask the journal for its bodies therefore has it give those that
// follow them as well: what the journal takes to find a body, and to unpack a block of
// them, is then taken once for several receives.
const (
	// aheadMessages is how many messages a receive reads ahead at most. More gain
	// little, and the receive waits for them.
	aheadMessages = 64

	// aheadReach is how far beyond a receive's last message, in the order of all
	// sending, messages are read ahead. Those further away have less of a block in
	// common with it: what they cost, they cost when they are received.
	aheadReach = 4 * aheadMessages

	// aheadBytes is how much a receive has read when it reads no further ahead, what
	// it wants itself and what entries of the cache take included: to read large bodies
	// together gains nothing.
	aheadBytes = 128 << 10

	// aheadShare bounds what was read ahead and not received yet to one part in so many
	// of the cache. Many queues would otherwise drop each other's bodies before anybody
	// wants them.
	aheadShare = 4
)

// ahead is what a receive reads ahead.
type ahead struct {
	origins  []uint64      // ascending
	contents []*content    // of the first of them; nil: it could not be read
	room     int           // bytes that may still be read
	read     chan struct{} // closed when it has been read; nil: nothing is read ahead
}

// lookAhead says what a receive reads beyond its last message.
func (s *Server) lookAhead(q *queue, last *engine.Delivery) *ahead {
	a := &ahead{room: aheadBytes}
	// In one hold, so that what leaves the queue afterwards leaves the cache as well.
	_ = s.within(q, func(time.Time) { // or the queue has gone
		behind := s.engine.Behind(q.engine, last.Receipt, aheadMessages, make([]uint64, 0, aheadMessages))
		s.keeper.bodies.expect(a, last.Origin, behind)
	})
	return a
}

// take takes the next content. One that is missing or damaged is for the receive of
// its message to find, and one that there is no room for is read again then.
func (a *ahead) take(c *content, err error) {
	if err != nil {
		c = nil
	} else if a.room -= c.size() + hotBodyOverhead; a.room < 0 {
		return
	}
	a.contents = append(a.contents, c)
}

// expect enters the messages that are to be read ahead: those of the given ones that
// follow the last, up to the first that is here or is read ahead already.
func (b *bodyCache) expect(a *ahead, last uint64, messages []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unread+(b.arriving+1)*aheadBytes > b.limit/aheadShare {
		return
	}
	end := last + aheadReach
	for _, origin := range messages {
		if origin <= last || origin > end || b.entries[origin] != nil {
			break
		}
		last = origin
		a.origins = append(a.origins, origin)
	}
	if len(a.origins) == 0 {
		return
	}
	a.read = make(chan struct{})
	b.arriving++
	for _, origin := range a.origins {
		b.enter(&hotBody{origin: origin, size: hotBodyOverhead, ahead: a.read})
		b.unread += hotBodyOverhead
	}
	b.trim()
}

// arrive gives the messages that were expected, and were not removed since, their
// contents. It does not expect the others any more.
func (b *bodyCache) arrive(a *ahead) {
	if a.read == nil {
		return
	}
	defer close(a.read)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arriving--
	for i, origin := range a.origins {
		entry := b.entries[origin]
		switch {
		case entry == nil || entry.content != nil: // somebody else has read it
		case i < len(a.contents) && a.contents[i] != nil:
			size := a.contents[i].size()
			entry.content = a.contents[i]
			entry.size += size
			b.size += size
			b.unread += size
		default:
			b.drop(entry)
		}
	}
	b.trim()
}
