package redrive

import "crypto/sha256"

// ledger has what became of each letter, by its id, for as long as the run lasts. Of an id it keeps half of
// a digest: ids are texts of any length, which can be parts of larger ones, and with them a million
// letters took more than a gigabyte in place of some 30 MB. Nobody can make two ids with the same
// digest.
type ledger struct {
	marks  map[digest]mark
	sent   int // letters that are marked so
	undone int
}

type digest [sha256.Size / 2]byte

// mark is a set of what happened to a letter.
type mark uint8

const (
	taken  mark = 1 << iota // received and chosen
	sent                    // sent back
	undone                  // to be deleted, and not known to be
)

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:])
}

// has reports whether a letter has a mark.
func (l *ledger) has(id string, m mark) bool { return l.marks[digestOf(id)]&m != 0 }

// set gives a letter a mark.
func (l *ledger) set(id string, m mark) {
	if l.marks == nil {
		l.marks = make(map[digest]mark)
	}
	key := digestOf(id)
	before := l.marks[key]
	l.marks[key] = before | m
	l.count(m&^before, 1)
}

// unset takes a mark from a letter.
func (l *ledger) unset(id string, m mark) {
	key := digestOf(id)
	if before := l.marks[key]; before&m != 0 {
		l.marks[key] = before &^ m
		l.count(before&m, -1)
	}
}

func (l *ledger) count(changed mark, by int) {
	if changed&sent != 0 {
		l.sent += by
	}
	if changed&undone != 0 {
		l.undone += by
	}
}
