package breaker

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestFaults: each letter is a message, whose attempt failed if it is upper case; the last one is
// asked about.
func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		attempts string
		own      bool
	}{
		"the first failure":                          {"abcdefghX", false},
		"others succeed in between":                  {"XabcdX", true},
		"few others succeed in between":              {"XabcX", false},
		"few others, twice":                          {"XaXbX", false},
		"few others, three times":                    {"XaXbXcX", true},
		"half of the others fail":                    {"XaBcDeFgHX", false},
		"half of the others fail, three times":       {"XaBcDXeFgHXiJkLX", true},
		"nothing in between":                         {"XabcdXX", false},
		"only others that have failed before, since": {"YZXabcdXyzX", false},
		"others fail that have failed before":        {"YZXabcdYZX", true},
		"it succeeded in between":                    {"XabcdxX", false},
		"it succeeds":                                {"XabcdXabcdx", false},
		"all others fail":                            {"XABCDEFGHX", false},
	} {
		var f faults
		last := len(tt.attempts) - 1
		for i, letter := range strings.Split(tt.attempts, "") {
			id := strings.ToLower(letter)
			if own := f.blames(id, id != letter); i == last && own != tt.own {
				t.Errorf("%s: after %s the failure is the message's own: %v", name, tt.attempts, own)
			}
		}
	}
}

// TestFaultsAreBounded: as many messages as mostFaults are remembered, those that failed latest.
func TestFaultsAreBounded(t *testing.T) {
	var f faults
	for i := range mostFaults + 1 {
		f.blames(fmt.Sprint(i), true)
	}
	for i := range 1000 {
		f.blames(fmt.Sprint("fine", i), false)
	}
	if f.blames("0", true) || !f.blames("2", true) || len(f.failed) != mostFaults {
		t.Errorf("%d messages are remembered", len(f.failed))
	}
}

// TestHarmfulMessagesOpenNoBreaker: as many messages as open a breaker fail each time, together. While
// others succeed in between they open it no more; when no other is left they do: it may be an outage.
func TestHarmfulMessagesOpenNoBreaker(t *testing.T) {
	now := time.Unix(1000, 0)
	fails := func(b *Breaker) (then State) {
		for i := range 20 {
			if then = b.Attempted(fmt.Sprint("harmful", i), true, now); then != Closed {
				break
			}
		}
		return then
	}
	for _, onTrial := range []bool{false, true} {
		b := New(20)
		if onTrial {
			b, now = closedByRamp(t, time.Hour)
		}
		for i := range 20 {
			b.Attempted(fmt.Sprint("harmful", i), true, now)
			for j := range 8 {
				b.Attempted(fmt.Sprint("before", i, j), false, now)
			}
		}
		for n := range 10 {
			for i := range 30 {
				b.Attempted(fmt.Sprint("fine", n, i), false, now)
			}
			if then := fails(&b); then != Closed {
				t.Errorf("on trial %v: they fail for the %d. time, and it becomes %v", onTrial, n+2, then)
			}
		}
		if then := fails(&b); then == Closed {
			t.Errorf("on trial %v: nothing succeeds any more, and it stays closed", onTrial)
		}
	}
}

// TestHarmfulMessagesLowerNoLevel: while a breaker ramps up, one attempt succeeds for each of a harmful
// message, and the level rises nevertheless.
func TestHarmfulMessagesLowerNoLevel(t *testing.T) {
	b := rampingAt(20, 4)
	b.usual = share{value: 1, weight: mostWeight}
	now := time.Unix(2, 0)
	for i := range 400 {
		if now = now.Add(100 * time.Millisecond); b.State() == Closed {
			break
		}
		b.Ended(b.Round(), fmt.Sprint("harmful", i%20), true, 0, 20, now, 0)
		b.Ended(b.Round(), fmt.Sprint("fine", i), false, 0, 20, now, 0)
	}
	if b.State() != Closed {
		t.Errorf("it is %v at a level of %v", b.State(), b.ramp.level)
	}
}
