package consumer

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFifo: a list has its messages in the order of push and pushFront, from both ends, whichever of
// them is removed first.
func TestFifo(t *testing.T) {
	a, b, c, d := &Delivery{ID: "a"}, &Delivery{ID: "b"}, &Delivery{ID: "c"}, &Delivery{ID: "d"}
	for _, removed := range [][]*Delivery{{a, b, c, d}, {d, c, b, a}, {b, c, a, d}, {c, b, d, a}} {
		var f fifo
		f.pushFront(b)
		f.push(c)
		f.pushFront(a)
		f.push(d)
		want := []string{"a", "b", "c", "d"}
		for i, gone := range append([]*Delivery{nil}, removed...) {
			if i > 0 {
				f.remove(gone)
				want = slices.DeleteFunc(want, func(id string) bool { return id == gone.ID })
			}
			var forwards, backwards []string
			for d := f.first; d != nil; d = d.next {
				forwards = append(forwards, d.ID)
			}
			for d := f.last; d != nil; d = d.previous {
				backwards = append(backwards, d.ID)
			}
			slices.Reverse(backwards)
			if !slices.Equal(forwards, want) || !slices.Equal(backwards, want) {
				t.Fatalf("after %d were removed it has %v, and from its end %v, want %v", i, forwards, backwards, want)
			}
		}
	}
}

// TestShorten: a text keeps at most so many bytes, is cut between characters only, and says that it was
// cut.
func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"", 5, ""},
		{"12345", 5, "12345"},
		{"123456", 5, "12…"},
		{"1234567", 6, "123…"},
		{"äöüß", 8, "äöüß"},
		{"äöüßa", 8, "äö…"},
	} {
		if got := Shorten(tt.text, tt.most); got != tt.want || len(got) > tt.most {
			t.Errorf("%q in %d bytes is %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}

// TestMovingAverage: the first value is the mean, and each of the others moves it by an eighth of the
// difference.
func TestMovingAverage(t *testing.T) {
	var e movingAverage
	for _, tt := range []struct{ add, want time.Duration }{{800, 800}, {1600, 900}, {100, 800}, {800, 800}, {80_000, 10_700}} {
		if e.add(tt.add); e.mean != tt.want {
			t.Errorf("after %v the mean is %v, want %v", tt.add, e.mean, tt.want)
		}
	}
}

// TestWorkersStartOneByOne: only when a started worker has looked for a message does the next start, and
// no more than messages are ready.
func TestWorkersStartOneByOne(t *testing.T) {
	c := at(New(Settings{Concurrency: 3, Prefetch: 7, Settings: leased}), 0)
	received(c, &Delivery{ID: "a"}, &Delivery{ID: "b"})
	for n, want := range []int{1, 0} {
		if got := len(effects(c, Work)); got != want {
			t.Errorf("%d workers start in section %d, want %d", got, n+1, want)
		}
	}
	c.Arrive()
	if got := len(effects(c, Work)); got != 1 {
		t.Errorf("when the first has arrived, %d start, want 1", got)
	}
	c.Arrive()
	if got := len(effects(c, Work)); got != 0 {
		t.Errorf("with nothing ready, %d start", got)
	}
}

// TestReportsAreToldByOne: one goroutine tells the reports, until there is none.
func TestReportsAreToldByOne(t *testing.T) {
	c := at(New(Settings{Settings: leased}), 0)
	tellers := func(want int) {
		t.Helper()
		if got := len(effects(c, TellReports)); got != want {
			t.Errorf("%d goroutines are wanted, want %d", got, want)
		}
	}
	c.tell(LeftOut(1))
	c.tell(LeftOut(2))
	tellers(1)
	for n := range 2 {
		if got := c.NextReport(); got != LeftOut(n+1) {
			t.Errorf("report %d is %v", n+1, got)
		}
	}
	c.tell(LeftOut(3))
	tellers(0)
	if c.NextReport(); c.NextReport() != nil {
		t.Error("it has more reports than were made")
	}
	c.tell(LeftOut(4))
	tellers(1)
	c.ReportsLeft() // the goroutine was ended by the user's code
	tellers(1)
	c.NextReport()
	c.NextReport()
	c.Close()
	c.tell(LeftOut(5))
	tellers(0)
}

// TestString: the description for debugging shows what pollers wait for.
func TestString(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	c.Start(false)
	c.End()
	if got := c.String(); !strings.Contains(got, `pollers ["1 until`) || !strings.Contains(got, "1 reserved") {
		t.Errorf("it is described by %q", got)
	}
}
