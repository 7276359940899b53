package operate

import "crypto/sha256"

// ledger has what became of each message, by its id, for as long as a pass lasts. Of an id it keeps half of
// a digest: ids are texts of any length, which can be parts of larger ones, and with them a million
// messages took more than a gigabyte in place of some 30 MB. Nobody can make two ids with the same
// digest.
type ledger struct {
	marks  map[digest]mark
	done   int // messages that are marked so
	undone int
}

type digest [sha256.Size / 2]byte

// mark is a set of what happened to a message.
type mark uint8

const (
	seen   mark = 1 << iota // received, and visited or about to be
	done                    // to be deleted
	undone                  // to be deleted, and not known to be
)

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:])
}

// has reports whether a message has a mark.
func (l *ledger) has(id string, m mark) bool { return l.marks[digestOf(id)]&m != 0 }

// set gives a message a mark.
func (l *ledger) set(id string, m mark) {
	if l.marks == nil {
		l.marks = make(map[digest]mark)
	}
	key := digestOf(id)
	before := l.marks[key]
	l.marks[key] = before | m
	l.count(m&^before, 1)
}

// unset takes a mark from a message.
func (l *ledger) unset(id string, m mark) {
	key := digestOf(id)
	if before := l.marks[key]; before&m != 0 {
		l.marks[key] = before &^ m
		l.count(before&m, -1)
	}
}

func (l *ledger) count(changed mark, by int) {
	if changed&done != 0 {
		l.done += by
	}
	if changed&undone != 0 {
		l.undone += by
	}
}
