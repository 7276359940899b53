package memory_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/memory"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestMemory is told what to do in words: NAME+N notes N runs of a message, NAME- forgets
// it, hN lets N hours pass, and n a nanosecond. Recalled says what is known afterwards,
// in the order in which it was written.
func TestMemory(t *testing.T) {
	for _, test := range []struct {
		name     string
		do       []string
		recalled string
	}{
		{"nothing", nil, "[]"},
		{"one", []string{"a+1"}, "[a=1]"},
		{"two", []string{"a+1", "b+2"}, "[a=1 b=2]"},
		{"written again, it is the last", []string{"a+1", "b+2", "a+3"}, "[b=2 a=3]"},
		{"forgotten", []string{"a+1", "b+2", "a-"}, "[b=2]"},
		{"forgotten twice", []string{"a+1", "a-", "a-"}, "[]"},
		{"never known", []string{"a-"}, "[]"},
		{"known anew", []string{"a+1", "a-", "a+2"}, "[a=2]"},
		{"thirteen hours old", []string{"a+1", "h13"}, "[a=1]"},
		{"older", []string{"a+1", "h13", "n"}, "[]"},
		{"older, of two", []string{"a+1", "h1", "b+2", "h12", "n"}, "[b=2]"},
		{"its age counts from the last note", []string{"a+1", "h13", "a+2", "h13"}, "[a=2]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m memory.Memory
			now := start
			for _, word := range test.do {
				switch id, n := word[:1], word[1:]; {
				case id == "h":
					hours, _ := strconv.Atoi(n)
					now = now.Add(time.Duration(hours) * time.Hour)
				case id == "n":
					now = now.Add(1)
				case n == "-":
					m.Forget(id)
				default:
					m.Note(id, now).Runs, _ = strconv.Atoi(n[1:])
				}
			}
			for _, id := range []string{"a", "b"} {
				m.Recall(id, now) // drops what is too old
			}
			recalled := []string{}
			for n := range m.All() {
				recalled = append(recalled, fmt.Sprint(n.ID, "=", n.Runs))
				if m.Recall(n.ID, now) != n {
					t.Errorf("%s is recalled as another note", n.ID)
				}
			}
			if got := fmt.Sprint(recalled); got != test.recalled || m.Len() != len(recalled) {
				t.Errorf("%s of %d is known, want %s", got, m.Len(), test.recalled)
			}
		})
	}
}

// TestAllCanBeLeftEarly as any loop.
func TestAllCanBeLeftEarly(t *testing.T) {
	var m memory.Memory
	m.Note("a", start)
	m.Note("b", start)
	for n := range m.All() {
		if n.ID != "a" {
			t.Errorf("it begins with %s, want a", n.ID)
		}
		break
	}
}

// TestRecallOfNothing: what is not known is the zero Note, with another beside it or not.
func TestRecallOfNothing(t *testing.T) {
	var m memory.Memory
	for range 2 {
		if n := m.Recall("b", start); n == nil || *n != (memory.Note{}) {
			t.Errorf("it is %+v, want an empty note", n)
		}
		m.Note("a", start)
	}
}

// TestFull: when the memory is full the message goes that was noted the longest ago, not
// the one that has been known for the longest.
func TestFull(t *testing.T) {
	var m memory.Memory
	for i := range memory.MaxNotes {
		m.Note(strconv.Itoa(i), start).Runs = 1
	}
	m.Note("0", start).Runs = 2
	if m.Len() != memory.MaxNotes || m.Recall("1", start).Runs != 1 {
		t.Errorf("%d messages are known, want %d", m.Len(), memory.MaxNotes)
	}
	m.Note("one more", start).Runs = 1
	if m.Len() != memory.MaxNotes {
		t.Errorf("%d messages are known, want %d", m.Len(), memory.MaxNotes)
	}
	for id, want := range map[string]int{"0": 2, "1": 0, "2": 1, "one more": 1} {
		if n := m.Recall(id, start).Runs; n != want {
			t.Errorf("%d runs are known of message %s, want %d", n, id, want)
		}
	}
}

// TestOldNotesGoWithTheNext: the memory does not keep what nobody asks for again.
func TestOldNotesGoWithTheNext(t *testing.T) {
	for _, test := range []struct {
		age  time.Duration
		want int
	}{{memory.MaxAge, 3}, {memory.MaxAge + 1, 1}} {
		var m memory.Memory
		m.Note("a", start)
		m.Note("b", start)
		m.Note("c", start.Add(test.age))
		if m.Len() != test.want {
			t.Errorf("%d messages are known after %v, want %d", m.Len(), test.age, test.want)
		}
	}
}

func TestInBackoff(t *testing.T) {
	var m memory.Memory
	m.Note("due", start).Due = start
	m.Note("never", start)
	m.Note("soon", start).Due = start.Add(1)
	m.Note("later", start).Due = start.Add(time.Hour)
	if n, _ := m.InBackoff(start); n != 2 {
		t.Errorf("%d messages are in backoff, want 2", n)
	}
}

// TestLastProblem: the error is that of the message in backoff that was changed last and has one.
func TestLastProblem(t *testing.T) {
	var m memory.Memory
	note := func(id string, due time.Duration, problem string) {
		n := m.Note(id, start)
		n.Due, n.Problem = start.Add(due), problem
	}
	for _, step := range []struct {
		id      string
		due     time.Duration
		problem string
		want    string
	}{
		{"over", 0, "503", ""},
		{"released", time.Hour, "", ""},
		{"a", 1, "500", "500"},
		{"b", time.Hour, "504", "504"},
		{"a", time.Hour, "400", "400"},
		{"released", 2 * time.Hour, "", "400"},
		{"a", 0, "400", "504"},
	} {
		note(step.id, step.due, step.problem)
		if _, got := m.InBackoff(start); got != step.want {
			t.Errorf("after %+v it is %q", step, got)
		}
	}
}

// TestUnpark drops the handle and keeps the rest.
func TestUnpark(t *testing.T) {
	var m memory.Memory
	handle := "h"
	n := m.Note("a", start)
	n.Handle, n.Runs = &handle, 3
	m.ForgetHandle("b")
	if m.Len() != 1 || n.Handle == nil {
		t.Errorf("%d messages are known and the handle of a is %v, when b was unparked", m.Len(), n.Handle)
	}
	m.ForgetHandle("a")
	if n := m.Recall("a", start); n.Handle != nil || n.Runs != 3 {
		t.Errorf("it is %+v, want the runs without the handle", n)
	}
}

// TestReceivedAgain: only the receive that follows the noted one is known to be no attempt.
func TestReceivedAgain(t *testing.T) {
	for _, test := range []struct{ noted, received, want int }{{1, 2, 2}, {2, 2, 2}, {3, 2, 3}, {1, 3, 1}} {
		var m memory.Memory
		n := m.Note("a", start)
		n.Receives, n.Runs = test.noted, 1
		m.ReceivedAgain("b", test.received)
		if m.Len() != 1 || n.Receives != test.noted {
			t.Errorf("%d messages are known and a has %d receives, when b was received", m.Len(), n.Receives)
		}
		m.ReceivedAgain("a", test.received)
		if n.Receives != test.want || n.Runs != 1 {
			t.Errorf("receive %d after %d: %d runs are noted at receive %d, want 1 at %d", test.received, test.noted, n.Runs, n.Receives, test.want)
		}
	}
}

func TestUnrun(t *testing.T) {
	for _, test := range []struct{ runs, attempt, want int }{{0, 1, 0}, {0, 3, 2}, {2, 3, 2}, {5, 3, 5}} {
		n := memory.Note{Runs: test.runs, Receives: 1}
		n.Unrun(test.attempt, 7)
		if n.Runs != test.want || n.Receives != 7 {
			t.Errorf("%d runs of %d receives after attempt %d did not count, want %d of 7", n.Runs, n.Receives, test.attempt, test.want)
		}
	}
}

// BenchmarkInBackoff reads a full memory of messages in backoff of which none has an error: once for each Status.
func BenchmarkInBackoff(b *testing.B) {
	var m memory.Memory
	for n := range memory.MaxNotes {
		m.Note(strconv.Itoa(n), start).Due = start.Add(time.Hour)
	}
	for b.Loop() {
		m.InBackoff(start)
	}
}
