package engine

// record is a message inside a queue. It determines the memory of a waiting message: 104
// bytes here, payload header included, and about 22 in the heap of ages.
type record struct {
	id         ID
	payload    any
	dedup      string
	sequence   uint64 // over the whole engine; 0 in a free slot
	sendNumber uint64 // the sequence number of its sending

	firstReceived int64 // never, until a receive in whichever queue
	received      int64 // the newest receive in this queue, or never

	receives uint32 // over all queues
	before   uint32 // of these, the ones before it came into this queue
	group    uint32 // index in Queue.groups; 0 none
	source   uint32 // index in Queue.sources plus one; 0 none

	// Among the visible messages of a standard queue (those of its group, if it
	// has one), among the messages of its group in a FIFO queue, or among the
	// free slots.
	neighbours links
}

// slab holds the messages of a queue in reused slots, numbered from 1. It
// grows by chunks, so that a record never moves and growing copies nothing.
type slab struct {
	chunks []*[chunkSize]record
	used   uint32 // slots ever handed out
	live   int
	free   list
}

const chunkSize = 256

func (s *slab) at(slot uint32) *record {
	return &s.chunks[slot/chunkSize][slot%chunkSize]
}

func (s *slab) links(slot uint32) *links { return &s.at(slot).neighbours }

// lookup returns the record in a slot, or nil if there is none.
func (s *slab) lookup(slot uint32) *record {
	if slot == 0 || slot > s.used {
		return nil
	}
	if m := s.at(slot); m.sequence != 0 {
		return m
	}
	return nil
}

// add stores m and returns its slot. Free slots are reused oldest first:
// messages sent together are then in slots of rising number, which is the order of equal keys in a
// heap.
func (s *slab) add(m record) uint32 {
	s.live++
	slot := s.free.first
	if slot != 0 {
		s.free.remove(s, slot)
	} else {
		slot = s.grow()
	}
	*s.at(slot) = m
	return slot
}

func (s *slab) grow() uint32 {
	s.used++
	if int(s.used/chunkSize) == len(s.chunks) {
		s.chunks = append(s.chunks, new([chunkSize]record))
	}
	return s.used
}

// put stores m in a slot that is free. Until freeGaps is called, skipped slots cannot be used.
func (s *slab) put(slot uint32, m record) {
	for s.used < slot {
		s.grow()
	}
	*s.at(slot) = m
	s.live++
}

// freeGaps adds every slot without a message to the free ones.
func (s *slab) freeGaps() {
	s.free = list{}
	for slot := uint32(1); slot <= s.used; slot++ {
		if s.at(slot).sequence == 0 {
			s.free.append(s, slot)
		}
	}
}

// remove empties a slot.
func (s *slab) remove(slot uint32) {
	s.live--
	*s.at(slot) = record{}
	s.free.append(s, slot)
}

// reset empties the slab down to its first chunk.
func (s *slab) reset() {
	if len(s.chunks) == 0 {
		return
	}
	first := s.chunks[0]
	clear(first[:min(s.used+1, chunkSize)])
	if len(s.chunks) > 1 {
		s.chunks = []*[chunkSize]record{first}
	}
	*s = slab{chunks: s.chunks}
}
