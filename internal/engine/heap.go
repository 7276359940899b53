package engine

// heap is an indexed priority queue: items wait under a key, the smallest key
// first and among equal keys the smallest item. An item is a small positive
// number, here the slot of a message, and is in a heap at most once.
//
// Four children per node and the key beside the item: a step down reads one cache line and
// touches no message. The position of an item is kept in an array of the heap itself, since
// writing it into the messages would touch a distant cache line for every entry that moves.
// The zero heap is empty.
type heap struct {
	entries   []entry
	positions []uint32 // by item: its index in entries plus one; 0 when absent
}

type entry struct {
	key  int64
	item uint32
}

func (a entry) before(b entry) bool {
	return a.key < b.key || a.key == b.key && a.item < b.item
}

const arity = 4

func (h *heap) len() int { return len(h.entries) }

func (h *heap) has(item uint32) bool {
	return int(item) < len(h.positions) && h.positions[item] != 0
}

// key returns the key of an item that the heap has.
func (h *heap) key(item uint32) int64 {
	return h.entries[h.positions[item]-1].key
}

// first returns the item with the smallest key; false when the heap is empty.
func (h *heap) first() (entry, bool) {
	if len(h.entries) == 0 {
		return entry{}, false
	}
	return h.entries[0], true
}

// set adds the item, or changes its key.
func (h *heap) set(item uint32, key int64) {
	if short := int(item) + 1 - len(h.positions); short > 0 {
		h.positions = append(h.positions, make([]uint32, short)...)
	}
	e := entry{key, item}
	if at := h.positions[item]; at != 0 {
		h.settle(int(at-1), e)
		return
	}
	h.entries = append(h.entries, e)
	h.up(len(h.entries)-1, e)
}

// remove removes the item; an absent one is not an error.
func (h *heap) remove(item uint32) {
	if !h.has(item) {
		return
	}
	at := int(h.positions[item] - 1)
	h.positions[item] = 0
	end := len(h.entries) - 1
	last := h.entries[end]
	h.entries = h.entries[:end]
	if at < end {
		h.settle(at, last)
	}
}

// reset empties the heap. It is not called whenever the last item leaves: the positions have the
// length of the largest number of items so far, and allocating them again for each first item would
// cost more than everything else.
func (h *heap) reset() {
	if len(h.positions) > chunkSize {
		*h = heap{}
		return
	}
	clear(h.positions)
	h.entries = h.entries[:0]
}

// settle puts e into its place, beginning at the free index at.
func (h *heap) settle(at int, e entry) {
	if at > 0 && e.before(h.entries[(at-1)/arity]) {
		h.up(at, e)
		return
	}
	h.down(at, e)
}

func (h *heap) up(at int, e entry) {
	for at > 0 {
		parent := (at - 1) / arity
		if !e.before(h.entries[parent]) {
			break
		}
		h.place(at, h.entries[parent])
		at = parent
	}
	h.place(at, e)
}

func (h *heap) down(at int, e entry) {
	for {
		child := at*arity + 1
		if child >= len(h.entries) {
			break
		}
		least := child
		for i := child + 1; i < min(child+arity, len(h.entries)); i++ {
			if h.entries[i].before(h.entries[least]) {
				least = i
			}
		}
		if !h.entries[least].before(e) {
			break
		}
		h.place(at, h.entries[least])
		at = least
	}
	h.place(at, e)
}

func (h *heap) place(at int, e entry) {
	h.entries[at] = e
	h.positions[e.item] = uint32(at + 1)
}
