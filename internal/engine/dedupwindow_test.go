package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// TestDeduplicationWindowOfMany: the window holds for each message, also while more old ones wait to be forgotten than
// one send forgets. So what is remembered beyond the five minutes must not count, and the memory of an id that was
// accepted anew must not end with that of its first message.
func TestDeduplicationWindowOfMany(t *testing.T) {
	type send struct {
		after     time.Duration
		dedup     string
		duplicate bool
	}
	var many, again []send // accepted at once, and sent again in reverse, when the older ones are remembered still
	for i := range 10 {
		many = append(many, send{0, fmt.Sprint(i), false})
		again = append(again, send{0, fmt.Sprint(9 - i), false})
	}
	late, justInTime := append(many[:10:10], again...), append(many[:10:10], again...)
	late[10].after = 5 * time.Minute
	justInTime[10].after = 5*time.Minute - 1
	for i := range again {
		justInTime[10+i].duplicate = true
	}
	for _, test := range []struct {
		name  string
		sends []send
	}{
		{"ten, after five minutes", late},
		{"ten, within five minutes", justInTime},
		{"one that was accepted anew is remembered when its first message is forgotten", []send{
			{0, "a", false}, {0, "b", false}, {0, "c", false}, {0, "x", false},
			{5 * time.Minute, "x", false}, // forgets a and b
			{0, "y", false},               // forgets c and the first x
			{0, "x", true}, {5*time.Minute - 1, "x", true}, {1, "x", false},
		}},
		{"one that is younger than its neighbours", []send{
			{0, "a", false}, {0, "b", false}, {0, "c", false}, {time.Minute, "x", false}, {4 * time.Minute, "x", true}, {time.Minute, "x", false},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, engine.Settings{FIFO: true})
			for i, s := range test.sends {
				l.wait(s.after)
				if got := l.e.Send(l.now, l.q, engine.Message{ID: id(fmt.Sprint(i)), Group: "g", Dedup: s.dedup}); got.Duplicate != s.duplicate {
					t.Fatalf("send %d, of %q: duplicate is %t, want %t", i, s.dedup, got.Duplicate, s.duplicate)
				}
			}
		})
	}
}
