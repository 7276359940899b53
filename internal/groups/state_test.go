package groups

import (
	"slices"
	"testing"
)

// TestMoves holds which states may follow which: every other move panics.
func TestMoves(t *testing.T) {
	want := map[state][]state{
		outside:   {behind, head, returning},
		behind:    {outside, head, stalled, along, returning},
		head:      {outside, held, ready, stalled, ahead},
		held:      {outside, head},
		ready:     {outside, head},
		stalled:   {outside, head},
		along:     {behind, head, ahead},
		ahead:     {outside},
		returning: {outside},
	}
	for from := range states {
		for to := range states {
			msg := Member[int]{state: from}
			refused := panics(func() { msg.move(to) })
			if permitted := slices.Contains(want[from], to); refused == permitted {
				t.Errorf("from %v to %v: refused is %v, permitted %v", from, to, refused, permitted)
			} else if !refused && msg.state != to {
				t.Errorf("from %v to %v: the message is %v", from, to, msg.state)
			}
		}
	}
}

func panics(f func()) (caught bool) {
	defer func() { caught = recover() != nil }()
	f()
	return false
}

// TestHeadOfNoGroup: the message of a standard queue has no head before it.
func TestHeadOfNoGroup(t *testing.T) {
	if head := New[int]().Head(new(Member[int])); head != nil {
		t.Errorf("the head is %+v", head)
	}
}
