package turns

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTurns(t *testing.T) {
	for _, tt := range []struct {
		name  string
		users []User[string]
		wants []string // who wants a turn, time after time
		want  string   // who has it; "-" for nobody
	}{
		{"one alone", []User[string]{{Cargo: "a", Weight: 1}}, repeat("a", 3), "aaa"},
		{"nobody wants one", []User[string]{{Cargo: "a", Weight: 1}}, []string{"", ""}, "--"},
		{"equals take turns, the first to join begins", []User[string]{{Cargo: "a", Weight: 1}, {Cargo: "b", Weight: 1}}, repeat("ab", 6), "ababab"},
		{"by weight", []User[string]{{Cargo: "a", Weight: 3}, {Cargo: "b", Weight: 1}}, repeat("ab", 8), "abaaabaa"},
		{"a higher priority has all of them", []User[string]{{Cargo: "a", Weight: 9}, {Cargo: "b", Weight: 1, Priority: 1}}, repeat("ab", 3), "bbb"},
		{"until it wants none", []User[string]{{Cargo: "a", Weight: 1}, {Cargo: "b", Weight: 1, Priority: 1}}, []string{"ab", "a", "ab"}, "bab"},
		{"the least and the greatest priority", []User[string]{{Cargo: "a", Weight: 1, Priority: math.MinInt}, {Cargo: "b", Weight: 1, Priority: math.MaxInt}, {Cargo: "c", Weight: 1}}, []string{"abc", "ac", "a"}, "bca"},
		{"a negative priority comes last", []User[string]{{Cargo: "a", Weight: 1, Priority: -1}, {Cargo: "b", Weight: 1}}, []string{"ab", "a", "ab"}, "bab"},
		{
			"who wanted none for long catches up with its lag, and the turn that is its due",
			[]User[string]{{Cargo: "a", Weight: 1, Lag: 2}, {Cargo: "b", Weight: 1, Lag: 2}},
			slices.Concat(repeat("a", 20), repeat("ab", 8)), strings.Repeat("a", 20) + "bbbababa",
		},
		{
			"its lag is a number of uses, whatever its weight",
			[]User[string]{{Cargo: "a", Weight: 1}, {Cargo: "b", Weight: 4, Lag: 4}},
			slices.Concat(repeat("a", 20), repeat("ab", 10)), strings.Repeat("a", 20) + "bbbbbbbbab",
		},
		{
			"priorities have clocks of their own",
			[]User[string]{{Cargo: "a", Weight: 1, Priority: 1}, {Cargo: "b", Weight: 1}, {Cargo: "c", Weight: 1}},
			slices.Concat(repeat("abc", 5), repeat("bc", 4)), "aaaaabcbc",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o Order[string]
			for i := range tt.users {
				o.Join(&tt.users[i])
			}
			got := ""
			for _, wants := range tt.wants {
				u := o.Next(func(name string) bool { return strings.Contains(wants, name) })
				if u == nil {
					got += "-"
					continue
				}
				u.Used()
				got += u.Cargo
			}
			if got != tt.want {
				t.Errorf("the turns are %s, want %s", got, tt.want)
			}
		})
	}
}

func repeat(s string, n int) []string { return slices.Repeat([]string{s}, n) }

// TestJoinLate: who joins is owed nothing, and owes nothing.
func TestJoinLate(t *testing.T) {
	var o Order[string]
	a, b := &User[string]{Cargo: "a", Weight: 1, Lag: 10}, &User[string]{Cargo: "b", Weight: 1, Lag: 10}
	all := func(string) bool { return true }
	o.Join(a)
	for range 20 {
		o.Next(all).Used()
	}
	o.Join(b)
	got := ""
	for range 6 {
		u := o.Next(all)
		u.Used()
		got += u.Cargo
	}
	if got != "bababa" {
		t.Errorf("the turns are %s, want bababa", got)
	}
}

func TestLeave(t *testing.T) {
	var o Order[string]
	users := []*User[string]{{Cargo: "a", Weight: 1}, {Cargo: "b", Weight: 1, Priority: 1}, {Cargo: "c", Weight: 1}}
	for _, u := range users {
		o.Join(u)
	}
	if got := slices.Collect(o.All); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("the users are %v", got)
	}
	for range o.All { // may be left
		break
	}
	o.Leave(users[0])
	if got := slices.Collect(o.All); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("without a, the users are %v", got)
	}
	o.Join(users[0]) // and come back, at the end
	if got := slices.Collect(o.All); !slices.Equal(got, []string{"b", "c", "a"}) {
		t.Errorf("with a again, the users are %v", got)
	}
}

func TestOutranks(t *testing.T) {
	var o Order[string]
	low, middle, peer, high := &User[string]{Cargo: "low"}, &User[string]{Cargo: "middle", Priority: 1}, &User[string]{Cargo: "peer", Priority: 1}, &User[string]{Cargo: "high", Priority: 2}
	for _, u := range []*User[string]{low, middle, peer, high} {
		o.Join(u)
	}
	for _, tt := range []struct {
		user  *User[string]
		wants string
		want  bool
	}{
		{middle, "high", true},
		{middle, "peer", false},
		{middle, "low", false},
		{middle, "middle", false},
		{high, "low middle peer", false},
		{low, "peer", true},
		{low, "", false},
	} {
		if got := o.Outranks(tt.user, func(name string) bool { return strings.Contains(tt.wants, name) }); got != tt.want {
			t.Errorf("when %q want a turn, somebody goes before %s: %v, want %v", tt.wants, tt.user.Cargo, got, tt.want)
		}
	}
}
