package groups

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A story is a machine's inputs and its answers, a line each: "join 2 -> begin 2". The
// messages are named by their sequence numbers, their groups by the number of digits, and
// message n has n bytes. Times are seconds from the start, at which all of it happens.
type story struct {
	machine *Machine[string]
	members map[string]*Member[string]
}

// input gives the machine an input, and returns its answer in words.
func (s *story) input(line string) string {
	var verb, name string
	var n, more int
	fmt.Sscan(line, &verb, &name, &n, &more)
	msg := s.members[name]
	if msg == nil {
		msg = &Member[string]{Cargo: name, Sequence: name}
		fmt.Sscan(name, &msg.Size)
		s.members[name] = msg
	}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	switch m := s.machine; verb {
	case "join":
		return answer(m.Join(msg, fmt.Sprint("group ", len(name)), start))
	case "begin":
		return fmt.Sprint(m.Begin(msg))
	case "busy":
		m.Busy(msg)
	case "hold":
		m.Hold(msg)
	case "ready":
		m.Ready(msg)
	case "may-hold": // for n seconds, where so many may be held
		return fmt.Sprint(m.MayHold(msg, time.Duration(n)*time.Second, more))
	case "behind":
		var all []string
		for _, next := range m.Behind(msg) {
			all = append(all, next.Cargo)
		}
		return strings.Join(all, " ")
	case "along":
		m.Along(msg, n)
	case "done":
		m.Done(msg)
	case "lead":
		m.Lead(msg)
	case "again":
		m.Again(msg)
	case "give-back": // until second n
		return answer(m.GiveBack(msg, at(n)))
	case "deleted":
		return answer(m.Gone(msg, true, time.Time{}, start))
	case "hidden": // until second n
		return answer(m.Gone(msg, false, at(n), start))
	case "lost":
		return answer(m.Gone(msg, false, time.Time{}, start))
	case "counts":
		return fmt.Sprintf("%+v", m.Counts())
	case "groups":
		return fmt.Sprint(len(m.groups))
	default:
		panic("no input: " + line)
	}
	return ""
}

// answer says what a is in words.
func answer(a Answer[string]) string {
	var parts []string
	if a.Begin != nil {
		parts = append(parts, "begin "+a.Begin.Cargo)
	}
	if a.Recall != nil {
		parts = append(parts, "recall "+a.Recall.Cargo)
	}
	for i, msg := range a.Return {
		if i == 0 {
			parts = append(parts, "return")
		}
		parts = append(parts, msg.Cargo)
	}
	if a.Recall != nil || len(a.Return) > 0 {
		parts = append(parts, fmt.Sprint("until ", a.Until.Sub(start).Seconds()))
	}
	return strings.Join(parts, " ")
}

// TestStories goes through what may happen to a group.
func TestStories(t *testing.T) {
	for _, test := range []struct{ name, story string }{
		{"one after the other", `
			join 1 -> begin 1
			join 2
			begin 1 -> true
			deleted 1 -> begin 2
			deleted 2
			groups - -> 0
			join 3 -> begin 3`},
		{"groups do not wait for each other", `
			join 1 -> begin 1
			join 10 -> begin 10
			groups - -> 2
			deleted 1
			groups - -> 1
			deleted 10
			groups - -> 0`},
		{"in the order of the sequence numbers, however received", `
			join 4 -> begin 4
			join 3
			join 1
			join 2
			behind 4 -> 1 2 3
			deleted 4 -> begin 1
			deleted 1 -> begin 2`},
		{"what waits comes behind a head that is hidden", `
			join 1 -> begin 1
			join 2
			join 3
			hidden 1 60 -> return 2 3 until 60
			groups - -> 1
			lost 2
			groups - -> 1
			lost 3
			groups - -> 0`},
		{"a head that is hidden until now", `
			join 1 -> begin 1
			join 2
			hidden 1 0 -> return 2 until 0`},
		{"a head that is visible already", `
			join 1 -> begin 1
			join 2
			lost 1 -> return 2 until 1`},
		{"what comes while others are given back would overtake them", `
			join 1 -> begin 1
			join 2
			join 3
			hidden 1 5 -> return 2 3 until 5
			lost 2
			join 1 -> return 1 until 1
			lost 3
			join 4 -> return 4 until 1
			lost 1
			lost 4
			join 1 -> begin 1`},
		{"one that is lost while it waits is not overtaken", `
			join 1 -> begin 1
			join 2
			join 3
			join 4
			lost 3 -> return 4 until 1
			join 3 -> return 3 until 1
			deleted 1 -> begin 2
			deleted 2
			lost 4
			lost 3
			groups - -> 0`},
		{"one that is given back takes what is behind it along", `
			join 1 -> begin 1
			join 2
			join 3
			join 4
			give-back 3 7 -> return 3 4 until 7
			behind 1 -> 2
			counts - -> {Blocked:1 Held:0 Along:0 AlongBytes:0}
			give-back 3 8
			give-back 1 7
			behind 1 -> 2`},
		{"of a group that is held all wait", `
			join 1 -> begin 1
			join 2
			join 3
			counts - -> {Blocked:2 Held:0 Along:0 AlongBytes:0}
			hold 1
			counts - -> {Blocked:3 Held:3 Along:0 AlongBytes:0}
			join 10 -> begin 10
			hold 10
			counts - -> {Blocked:4 Held:4 Along:0 AlongBytes:0}
			busy 1
			counts - -> {Blocked:3 Held:1 Along:0 AlongBytes:0}
			lost 10
			hold 1
			hidden 1 9 -> return 2 3 until 9
			counts - -> {Blocked:0 Held:0 Along:0 AlongBytes:0}`},
		{"for how long and how many are held", `
			join 1 -> begin 1
			join 2
			may-hold 1 60 2 -> true
			may-hold 1 61 2 -> false
			may-hold 1 60 1 -> false
			hold 1
			join 10 -> begin 10
			may-hold 10 1 3 -> true
			may-hold 10 1 2 -> false`},
		{"what goes along with a head that is ready", `
			join 1 -> begin 1
			ready 1
			join 2
			join 3
			counts - -> {Blocked:2 Held:0 Along:2 AlongBytes:5}
			join 10 -> begin 10
			ready 10
			join 11
			counts - -> {Blocked:3 Held:0 Along:3 AlongBytes:16}
			busy 10
			counts - -> {Blocked:3 Held:0 Along:2 AlongBytes:5}
			lost 1 -> return 2 3 until 1
			counts - -> {Blocked:1 Held:0 Along:0 AlongBytes:0}`},
		{"only heads are busy, held or ready", `
			join 1 -> begin 1
			join 2
			busy 2
			hold 2
			ready 2
			counts - -> {Blocked:1 Held:0 Along:0 AlongBytes:0}
			begin 9 -> true
			busy 9
			hold 9
			ready 9
			counts - -> {Blocked:1 Held:0 Along:0 AlongBytes:0}
			deleted 1 -> begin 2
			hold 2
			counts - -> {Blocked:1 Held:1 Along:0 AlongBytes:0}`},
		{"a batch that succeeds", `
			join 1 -> begin 1
			join 2
			join 3
			join 4
			along 1 2
			behind 1 -> 4
			counts - -> {Blocked:1 Held:0 Along:0 AlongBytes:0}
			done 1
			done 2
			lead 3
			deleted 3
			counts - -> {Blocked:0 Held:0 Along:0 AlongBytes:0}
			begin 4 -> false
			deleted 1
			deleted 2 -> begin 4
			begin 4 -> true
			deleted 4
			groups - -> 0`},
		{"a batch whose last message is deleted last", `
			join 1 -> begin 1
			join 2
			join 3
			along 1 1
			done 1
			lead 2
			deleted 1
			behind 2 -> 3
			deleted 2 -> begin 3`},
		{"what comes when all that is left of a batch is ahead", `
			join 1 -> begin 1
			join 2
			along 1 1
			done 1
			lead 2
			deleted 2
			groups - -> 1
			join 3
			deleted 1 -> begin 3`},
		{"what failed in a batch is the head, and does not begin before what is ahead is gone", `
			join 1 -> begin 1
			join 2
			join 3
			join 4
			along 1 2
			join 5
			done 1
			lead 2
			again 3
			behind 2 -> 3 4 5
			counts - -> {Blocked:3 Held:0 Along:0 AlongBytes:0}
			hold 2
			counts - -> {Blocked:4 Held:4 Along:0 AlongBytes:0}
			busy 2
			begin 2 -> false
			counts - -> {Blocked:3 Held:0 Along:0 AlongBytes:0}
			deleted 1 -> begin 2
			begin 2 -> true
			counts - -> {Blocked:3 Held:0 Along:0 AlongBytes:0}`},
		{"a head that waits for its time is let be when what was ahead is gone", `
			join 1 -> begin 1
			join 2
			along 1 1
			done 1
			lead 2
			hold 2
			deleted 1
			busy 2
			begin 2 -> true`},
		{"the first of a batch has failed", `
			join 1 -> begin 1
			join 2
			along 1 1
			lead 1
			again 2
			behind 1 -> 2
			deleted 1 -> begin 2`},
		{"what is ahead comes again: the head is recalled, and with it what is behind", `
			join 1 -> begin 1
			join 2
			join 3
			along 1 2
			done 1
			lead 2
			again 3
			lost 1 -> recall 2 until 1
			behind 2 -> 3
			hidden 2 4 -> return 3 until 4`},
		{"what is ahead comes again: nothing begins, even if the head is done", `
			join 1 -> begin 1
			join 2
			join 3
			join 4
			along 1 2
			done 1
			done 2
			lead 3
			hidden 1 9 -> recall 3 until 1
			deleted 2 -> recall 3 until 1
			deleted 3 -> return 4 until 1
			lost 4
			groups - -> 0`},
		{"what is ahead comes again when the head is done", `
			join 1 -> begin 1
			join 2
			join 3
			along 1 2
			done 1
			done 2
			lead 3
			deleted 3
			lost 1
			join 4
			deleted 2 -> return 4 until 1
			join 5 -> return 5 until 1`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := story{New[string](), make(map[string]*Member[string])}
			for line := range strings.Lines(strings.TrimSpace(test.story)) {
				input, want, _ := strings.Cut(strings.TrimSpace(line), " -> ")
				if got := s.input(input); got != want {
					t.Fatalf("%s: %q, want %q", input, got, want)
				}
			}
		})
	}
}
