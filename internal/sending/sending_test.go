package sending

import (
	"testing"
	"time"
)

// TestWhenRequestsGo holds when a request is made of what is ready, and how many
// messages it has.
func TestWhenRequestsGo(t *testing.T) {
	const linger = time.Second
	for name, test := range map[string]struct {
		sizes      []int
		maxWaiting int
		hurry      bool
		want       int // messages in the request that goes at once
	}{
		"one lingers":                       {[]int{1}, -1, false, 0},
		"nine linger":                       {make([]int, 9), -1, false, 0},
		"ten are full":                      {make([]int, 10), -1, false, 10},
		"eleven":                            {make([]int, 11), -1, false, 10},
		"a megabyte is full":                {[]int{MaxBytes - 1, 1}, -1, false, 2},
		"a byte less lingers":               {[]int{MaxBytes - 2, 1}, -1, false, 0},
		"a byte more is for the next":       {[]int{MaxBytes, 1}, -1, false, 1},
		"somebody waits for room":           {make([]int, 3), 2, false, 2},
		"just room for all":                 {make([]int, 3), 3, false, 0},
		"somebody waits for all to be sent": {make([]int, 3), -1, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Settings{Linger: linger, Requests: 1, MaxWaiting: test.maxWaiting, MaxBytes: -1})
			for _, size := range test.sizes {
				m.Add(start, &Message{Size: size})
			}
			if test.hurry {
				m.Hurry(start, &Flush{})
			}
			if got := len(m.Next(start)); got != test.want {
				t.Errorf("the request has %d messages, want %d", got, test.want)
			}
			if test.want > 0 {
				return
			}
			if at := m.Deadline(); !at.Equal(start.Add(linger)) {
				t.Errorf("the deadline is %v after the start, want %v", at.Sub(start), linger)
			}
			if got := len(m.Next(start.Add(linger))); got != len(test.sizes) {
				t.Errorf("after the linger the request has %d messages, want %d", got, len(test.sizes))
			}
		})
	}
}
