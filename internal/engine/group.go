package engine

// group is a message group with messages in the queue. A FIFO queue keeps them in the order
// of their sequence numbers. The group is ready when the first of them is visible: then that
// one and those behind it, up to the first that is in flight or delayed, can be received.
// Its meaning on a standard queue is in fair.go.
type group struct {
	name          string
	size          int   // messages in the queue
	messages      list  // FIFO: all of them; standard: the visible ones, longest visible first
	ready         bool  // FIFO only: is in groups.ready
	noisy         bool  // standard only: is in groups.noisy and groups.byArrival
	inFlight      int   // standard only
	hidden        int   // FIFO only: messages in flight or delayed
	newestArrival int64 // when the newest message came
	neighbours    links // among the ready groups or the free slots
}

// groups holds the groups of a queue, numbered from 1, in reused slots. On a FIFO queue the
// ready ones are in a list: a receive serves them from the front, and a group that was
// served goes to the end. A blocked group is not in it, so it costs a receive nothing,
// however long it is.
type groups struct {
	slots []group
	index map[string]uint32
	ready list
	free  list

	// The groups of a standard queue that have visible messages.
	quiet     heap // by the turn of their first message
	noisy     heap // the noisy ones, by how much they have in flight
	byArrival heap // the same, by when the newest message came
}

func (g *groups) at(i uint32) *group { return &g.slots[i] }

func (g *groups) links(i uint32) *links { return &g.slots[i].neighbours }

// name returns the group's name; "" for the index 0.
func (g *groups) name(i uint32) string {
	if i == 0 {
		return ""
	}
	return g.slots[i].name
}

// join adds a message to the count of the group of that name, and returns the group's index.
func (g *groups) join(name string) uint32 {
	i, ok := g.index[name]
	if !ok {
		i = g.open(name)
	}
	g.slots[i].size++
	return i
}

func (g *groups) open(name string) uint32 {
	if g.index == nil {
		g.index = make(map[string]uint32)
		g.slots = make([]group, 1)
	}
	i := g.free.first
	if i != 0 {
		g.free.remove(g, i)
	} else {
		i = uint32(len(g.slots))
		g.slots = append(g.slots, group{})
	}
	g.slots[i] = group{name: name}
	g.index[name] = i
	return i
}

// leave subtracts a message from the group's count. A group without messages is removed.
func (g *groups) leave(i uint32) {
	g.slots[i].size--
	if g.slots[i].size > 0 {
		return
	}
	delete(g.index, g.slots[i].name)
	g.slots[i] = group{}
	g.free.append(g, i)
}

// reset forgets every group.
func (g *groups) reset() {
	if len(g.slots) > chunkSize {
		*g = groups{}
		return
	}
	clear(g.index)
	clear(g.slots)
	g.quiet.reset()
	g.noisy.reset()
	g.byArrival.reset()
	*g = groups{
		slots: g.slots[:min(len(g.slots), 1)], index: g.index,
		quiet: g.quiet, noisy: g.noisy, byArrival: g.byArrival,
	}
}

// setReady adds the group at the end of the ready ones, or removes it.
func (g *groups) setReady(i uint32, ready bool) {
	switch this := &g.slots[i]; {
	case ready && !this.ready:
		this.ready = true
		g.ready.append(g, i)
	case !ready && this.ready:
		this.ready = false
		g.ready.remove(g, i)
	}
}

// rotate moves a group to the end of the ready ones, if it is still ready.
func (g *groups) rotate(i uint32) {
	if int(i) < len(g.slots) && g.slots[i].ready {
		g.ready.remove(g, i)
		g.ready.append(g, i)
	}
}
