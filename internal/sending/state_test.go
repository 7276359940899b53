package sending

import (
	"slices"
	"testing"
)

// TestMoves holds which states may follow which: every other move panics.
func TestMoves(t *testing.T) {
	want := map[State][]State{
		Unknown:   {Outside, Behind, Ready},
		Outside:   {Behind, Ready, Gone},
		Behind:    {Ready, Telling, Gone},
		Ready:     {Requested, Telling, Gone},
		Requested: {Ready, Deserted, Backoff, Telling, Gone},
		Deserted:  {Gone},
		Backoff:   {Ready, Telling, Gone},
		Telling:   {Gone},
	}
	for from := range states {
		for to := range states {
			m := New(Settings{})
			msg := &Message{Size: 1, behind: new(list), state: from}
			if l := m.list(msg); l != nil {
				l.push(msg)
			}
			refused := panics(func() { m.move(msg, to) })
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
