package main_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSoakAudit: the audit of the soak finds what it looks for, and nothing else.
func TestSoakAudit(t *testing.T) {
	const second = int64(time.Second)
	// One message: received by run-a at 1 s, done at 2 s, deleted at 3 s.
	usual := func() (*soak, map[string][]*attempt) {
		s := &soak{t: t, wire: newWire(""), sent: []string{"1"}, roles: []*role{
			{name: "serve", lives: []*life{{role: "serve", number: 1}}},
			{name: "run-a", lives: []*life{{role: "run-a", number: 1}}},
		}}
		first := &receipt{key: "1", id: "m", role: "run-a", count: 1, asked: 0, at: second}
		s.wire.receives["m"] = []*receipt{first}
		s.wire.deletes["m"] = []deletion{{first, 3 * second}}
		return s, map[string][]*attempt{"1": {{key: "1", id: "m", runner: "run-a.1", start: second + 1, done: 2 * second, answered: 2*second + 1}}}
	}
	again := func(s *soak, done map[string][]*attempt, received, started int64, count int) {
		s.wire.receives["m"] = append(s.wire.receives["m"], &receipt{key: "1", id: "m", role: "run-b", count: count, asked: received, at: received})
		done["1"] = append(done["1"], &attempt{key: "1", id: "m", runner: "run-b.1", start: started, done: started + 1, answered: started + 2})
	}
	for _, c := range []struct {
		name   string
		change func(s *soak, done map[string][]*attempt)
		want   []string
	}{
		{"nothing happened", func(*soak, map[string][]*attempt) {}, nil},
		{"lost", func(_ *soak, done map[string][]*attempt) { delete(done, "1") }, []string{"1 messages of 1 are lost"}},
		{"received after its delete", func(s *soak, done map[string][]*attempt) {
			again(s, done, 4*second, 5*second, 2)
		}, []string{"after its delete was acknowledged", "without a documented cause"}},
		{"received after a delete with an older handle", func(s *soak, _ map[string][]*attempt) {
			s.wire.receives["m"] = append(s.wire.receives["m"], &receipt{key: "1", id: "m", role: "run-b", count: 3, asked: 4 * second, at: 4 * second})
		}, nil},
		{"second run without a cause", func(s *soak, done map[string][]*attempt) {
			again(s, done, second, second+2, 2)
		}, []string{"without a documented cause"}},
		{"run was killed before its delete", func(s *soak, done map[string][]*attempt) {
			again(s, done, second, second+2, 2)
			s.roles[1].lives[0].killed, s.roles[1].lives[0].gone = second+2, second+2
		}, nil},
		{"server was killed between two receives", func(s *soak, done map[string][]*attempt) {
			again(s, done, second+4, second+5, 1)
			s.roles[0].lives[0].killed, s.roles[0].lives[0].gone = second+3, second+3
		}, nil},
		{"server was killed between two receives, and the second ran first", func(s *soak, done map[string][]*attempt) {
			again(s, done, second-4, 2*second+5, 1)
			s.roles[0].lives[0].killed, s.roles[0].lives[0].gone = second-3, second-3
		}, nil},
		{"run went on for a while after it was told to be killed", func(s *soak, done map[string][]*attempt) {
			again(s, done, second, second+2, 2)
			s.roles[1].lives[0].killed, s.roles[1].lives[0].gone = 1, second+1
		}, nil},
		{"run was killed before its work", func(s *soak, done map[string][]*attempt) {
			again(s, done, second, second+2, 2)
			s.roles[1].lives[0].killed, s.roles[1].lives[0].gone = 1, 2
		}, []string{"without a documented cause"}},
		{"target was killed after its work", func(s *soak, done map[string][]*attempt) {
			again(s, done, second, second+2, 2)
			done["1"][0].answered = 0
		}, nil},
		{"dead letter that was not refused", func(s *soak, _ map[string][]*attempt) {
			s.auditLost(map[string][]*attempt{"1": {{}}}, map[string]int{"1": 1})
		}, []string{"1 is a dead letter"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, done := usual()
			c.change(s, done)
			s.auditLost(done, nil)
			s.auditDeletes()
			s.auditSecondRuns(done)
			for _, want := range c.want {
				if !slices.ContainsFunc(s.problems, func(p string) bool { return strings.Contains(p, want) }) {
					t.Errorf("the audit did not report %q: %q", want, s.problems)
				}
			}
			if len(s.problems) != len(c.want) {
				t.Errorf("the audit reported %q, want %d problems", s.problems, len(c.want))
			}
		})
	}
}
