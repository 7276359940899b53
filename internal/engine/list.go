package engine

// list is a doubly linked list of numbered nodes, numbered from 1, that live
// in a slab and carry the links themselves. The zero list is empty.
type list struct {
	first, last uint32
	length      int
}

// links are a node's neighbours; 0 where there is none.
type links struct{ previous, next uint32 }

// nodes is where the nodes of a list live.
type nodes interface{ links(i uint32) *links }

func (l *list) append(n nodes, i uint32) {
	*n.links(i) = links{previous: l.last}
	if l.last == 0 {
		l.first = i
	} else {
		n.links(l.last).next = i
	}
	l.last = i
	l.length++
}

func (l *list) remove(n nodes, i uint32) {
	this := *n.links(i)
	if this.previous == 0 {
		l.first = this.next
	} else {
		n.links(this.previous).next = this.next
	}
	if this.next == 0 {
		l.last = this.previous
	} else {
		n.links(this.next).previous = this.previous
	}
	l.length--
}
