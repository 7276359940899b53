package calls

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// named are requests whose entries name messages, sending those that carry them, and fifo
// those of a FIFO queue, whose entries do not wait.
var (
	named   = Settings{Entries: 3, Requests: 2, Linger: 250 * time.Millisecond, Hurried: 5 * time.Millisecond}
	sending = Settings{Entries: 3, Bytes: 10, Requests: 2, Linger: 250 * time.Millisecond, Hurried: 5 * time.Millisecond}
	fifo    = Settings{Entries: 3, Requests: 2, Hurried: 5 * time.Millisecond}
)

// A story is a machine's inputs, a line each, and the requests that go out after each, as
// in "add 3 -> 1 2 3". Entries are added with their sizes, if those are not 1, and when
// they end, if that is not after an hour.
type story struct {
	t       *testing.T
	machine Machine[string]
	now     time.Time
}

// input gives the machine an input, and returns what follows in words.
func (s *story) input(line string) string {
	s.t.Helper()
	words := strings.Fields(line)
	duration := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
		return d
	}
	switch words[0] {
	case "at":
		s.now = start.Add(duration(words[1]))
	case "add":
		e := Entry[string]{Cargo: words[1], Size: 1, Ends: start.Add(time.Hour)}
		for i, word := range words[2:] {
			switch word {
			case "alone":
				e.Alone = true
			case "size":
				e.Size, _ = strconv.Atoi(words[i+3])
			case "ends":
				e.Ends = start.Add(duration(words[i+3]))
			}
		}
		s.machine.Add(s.now, e)
	case "due":
		s.machine.Due(s.now)
	case "flush":
		s.machine.Flush()
	case "hurry":
		s.machine.Hurry(start.Add(duration(words[1])))
	case "ended":
		s.machine.Ended()
	case "deadline":
		if at := s.machine.Deadline(); !at.IsZero() {
			return at.Sub(start).String()
		}
		return "none"
	default:
		s.t.Fatalf("no input: %s", line)
	}
	var out []string
	for s.machine.Ready() {
		out = append(out, strings.Join(s.machine.Next(), " "))
	}
	return strings.Join(out, " | ")
}

// TestStories goes through what may happen to entries.
func TestStories(t *testing.T) {
	for _, test := range []struct {
		name  string
		set   Settings
		story string
	}{
		{"nothing", named, `
			deadline -> none
			due
			flush
			deadline -> none`},
		{"a request that is full goes out at once", named, `
			add 1
			add 2
			add 3 -> 1 2 3
			deadline -> none
			add 4
			deadline -> 250ms`},
		{"the first has waited long enough", named, `
			add 1
			at 100ms
			add 2
			deadline -> 250ms
			at 249ms
			due
			deadline -> 250ms
			at 250ms
			due -> 1 2
			deadline -> none
			due
			add 3
			deadline -> 500ms`},
		{"the deadline is noticed late", named, `
			add 1
			at 3s
			add 2
			due -> 1 2`},
		{"the second cannot wait so long", named, `
			add 1
			at 100ms
			add 2 ends 1100ms
			deadline -> 200ms
			add 3 ends 10s -> 1 2 3
			at 300ms
			add 4 ends 1300ms
			deadline -> 400ms
			add 5
			deadline -> 400ms`},
		{"it is too late already", named, `
			at 5s
			add 1 ends 4s
			deadline -> 5s
			add 2
			due -> 1 2`},
		{"what is added at the same instant shares a request, though nothing waits", fifo, `
			at 7s
			add 1
			deadline -> 7s
			add 2
			deadline -> 7s
			due -> 1 2`},
		{"only so many requests are under way", named, `
			add 1
			flush -> 1
			add 2
			add 3
			flush -> 2 3
			add 4
			flush
			add 5
			add 6
			add 7
			add 8
			deadline -> 250ms
			ended -> 4
			ended -> 5 6 7
			ended
			flush -> 8
			ended
			ended
			add 9
			flush -> 9`},
		{"several go out as soon as several have ended", named, `
			add 1
			flush -> 1
			add 2
			flush -> 2
			add 3
			flush
			add 4
			flush
			deadline -> none
			ended -> 3
			ended -> 4`},
		{"what makes a request too large goes with the next", sending, `
			add 1 size 5
			add 2 size 5
			add 3 -> 1 2
			at 100ms
			add 4 size 9
			deadline -> 250ms
			add 5 size 2 -> 3 4
			deadline -> 350ms
			ended
			ended
			add 6 size 8
			flush -> 5 6`},
		{"one that is too large by itself", sending, `
			add 1 size 11
			add 2 -> 1
			flush -> 2
			ended
			ended
			add 3
			add 4 size 99 -> 3
			add 5 -> 4`},
		{"a request of the largest size is not followed by an empty one", sending, `
			add 1
			add 2 size 8
			add 3 -> 1 2 3
			add 4 size 10
			deadline -> 250ms
			add 5 -> 4`},
		{"one that travels alone", sending, `
			add 1
			add 2 alone -> 1 | 2
			deadline -> none
			ended
			ended
			add 3 alone -> 3
			add 4
			flush -> 4`},
		{"alone or not, large or not: it does not matter where messages are only named", named, `
			add 1 size 99
			add 2 alone size 99
			deadline -> 250ms
			flush -> 1 2
			add 3 alone
			deadline -> 250ms`},
		{"in a hurry nothing waits for long", named, `
			add 1
			hurry 10s
			deadline -> 250ms
			flush -> 1
			add 2
			deadline -> 5ms
			due
			at 5ms
			due -> 2`},
		{"nor beyond a tenth of what is left", named, `
			hurry 10s
			at 9990ms
			add 1
			deadline -> 9.991s
			flush -> 1
			at 11s
			add 2
			deadline -> 11s`},
		{"nor for longer than it can itself", named, `
			hurry 10s
			add 1 ends 20ms
			deadline -> 2ms`},
		{"what does not wait does not wait in a hurry", fifo, `
			hurry 10s
			add 1
			deadline -> 0s`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := story{t, New[string](test.set), start}
			for line := range strings.Lines(strings.TrimSpace(test.story)) {
				input, want, _ := strings.Cut(strings.TrimSpace(line), " -> ")
				if got := s.input(input); got != want {
					t.Fatalf("%s: %q, want %q", input, got, want)
				}
			}
		})
	}
}

// TestOneAllocationPerRequest: a request's entries are all that is allocated for it.
func TestOneAllocationPerRequest(t *testing.T) {
	m := New[*int](named)
	cargo := new(int)
	request := func() {
		for range named.Entries {
			m.Add(start, Entry[*int]{Cargo: cargo, Ends: start.Add(time.Hour)})
		}
		if batch := m.Next(); len(batch) != named.Entries {
			t.Fatalf("%d entries went out, want %d", len(batch), named.Entries)
		}
		m.Ended()
	}
	request() // the list of closed requests stays
	if n := testing.AllocsPerRun(100, request); n != 1 {
		t.Errorf("%v allocations per request, want 1", n)
	}
}

// TestPermit: with more requests permitted, those that wait go out.
func TestPermit(t *testing.T) {
	m := New[string](Settings{Entries: 1, Requests: 1})
	if n, first := m.Waiting(); n != 0 || first != "" {
		t.Errorf("%d requests wait in an empty machine, the first with %q", n, first)
	}
	for _, cargo := range []string{"a", "b", "c"} {
		m.Add(start, Entry[string]{Cargo: cargo, Size: 1, Ends: start.Add(time.Hour)})
	}
	if n, first := m.Waiting(); n != 3 || first != "a" {
		t.Errorf("%d requests wait, the first with %q, want 3 and a", n, first)
	}
	m.Next()
	if n, first := m.Waiting(); n != 2 || first != "b" || m.Ready() {
		t.Errorf("%d requests wait, the first with %q, one may go out: %t; want 2, b and none", n, first, m.Ready())
	}
	m.Permit(2)
	if next := m.Next(); len(next) != 1 || next[0] != "b" || m.Ready() {
		t.Errorf("%q goes out, and another one may: %t; want b and none", next, m.Ready())
	}
}
