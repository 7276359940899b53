package giveups

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestGivingUpBeginsAndEnds: what becomes of messages is a word, x for one that is
// given up, each another, s for one that succeeds, a for the first one that was given
// up once more, h for half an hour in which nothing happens, m for six minutes. The
// numbers are of the letters at which it begins and ends, by turns.
func TestGivingUpBeginsAndEnds(t *testing.T) {
	again := strings.Repeat
	for _, test := range []struct {
		name, word string
		turns      string
	}{
		{"nineteen", again("x", 19), "[]"},
		{"twenty", again("x", 20), "[20]"},
		{"only once", again("x", 1000), "[20]"},
		{"one message, however often", again("a", 1000), "[]"},
		{"nineteen messages and one of them often", again("x", 18) + again("a", 1000), "[]"},
		{"successes only", again("s", 1000), "[]"},
		{"successes before are of no account", again("s", 1000) + again("x", 20), "[1020]"},
		{"one success among them", again("x", 10) + "s" + again("x", 10), "[21]"},
		{"two ask for forty", "x" + again("s", 2) + again("x", 36) + "xx", "[40]"},
		{"half succeed", again("xs", 1000), "[]"},
		{"one in ten succeeds", again("sxxxxxxxxx", 200), "[]"},
		{"one in fifty succeeds", again("s"+again("x", 49), 20), "[21]"},
		{"one in ten does not end it", again("x", 20) + again("sxxxxxxxxx", 200), "[20]"},
		{"successes end it", again("x", 20) + again("s", 10), "[20 25]"},
		{"a long one too", again("x", 500) + again("s", 20), "[20 510]"},
		{"a quarter ends it", again("x", 20) + again("xxxs", 100), "[20 60]"},
		{"it ends and begins again", again("x", 20) + again("s", 5) + again("x", 20), "[20 25 45]"},
		{"quiet ends it", again("x", 20) + "h", "[20 21]"},
		{"one message once more does not keep it up", again("x", 20) + "mam", "[20 23]"},
		{"another does", again("x", 20) + "mxm", "[20]"},
		{"and what was before is forgotten", again("x", 20) + "h" + again("x", 19), "[20 21]"},
		{"two in an hour are few", again("xh", 500), "[]"},
		{"an hour is remembered", again("x", 10) + "h" + again("x", 10), "[21]"},
		{"no longer", again("x", 10) + "hhh" + again("x", 10), "[]"},
		{"a burst among many successes", again("s", 100) + again("x", 15) + again("s", 100) + again("x", 15), "[]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w Watch
			now, turns := epoch, []int{}
			for i, letter := range test.word {
				now = now.Add(time.Millisecond)
				changes := false
				switch letter {
				case 'x':
					changes = w.GaveUp(fmt.Sprint("m", i), retry.ReasonPermanent, "refused", now)
				case 'a':
					changes = w.GaveUp("m0", retry.ReasonPermanent, "refused", now)
				case 's':
					if changes = w.Succeeded(now); changes {
						w.End()
					}
				case 'h', 'm':
					now = now.Add(map[rune]time.Duration{'h': 30 * time.Minute, 'm': 6 * time.Minute}[letter])
					if changes, _ = w.Gone(now); changes {
						w.End()
					}
				}
				if changes {
					turns = append(turns, i+1)
				}
				if len(w.recent) > Window {
					t.Fatalf("%d are kept, want %d at most", len(w.recent), Window)
				}
			}
			if got := fmt.Sprint(turns); got != test.turns {
				t.Errorf("it begins and ends at %s, want %s", got, test.turns)
			}
		})
	}
}

// TestGivingUpCostsNothingInGoodTimes: successes leave nothing behind.
func TestGivingUpCostsNothingInGoodTimes(t *testing.T) {
	var w Watch
	if n := testing.AllocsPerRun(100, func() { w.Succeeded(epoch) }); n != 0 || w.recent != nil {
		t.Errorf("%v allocations for a success, and %d kept", n, len(w.recent))
	}
	w.GaveUp("m", retry.ReasonAge, "late", epoch)
	for range Window {
		w.Succeeded(epoch)
	}
	if w.recent != nil {
		t.Errorf("%d are kept of a message that was given up long ago", len(w.recent))
	}
}

// TestGivingUpSays what an operator needs: since when, how many, how fast and why.
func TestGivingUpSays(t *testing.T) {
	var w Watch
	for i := range 100 {
		reason := retry.ReasonPermanent
		if i%4 == 0 {
			reason = retry.ReasonAge
		}
		w.GaveUp(fmt.Sprint("m", i), reason, fmt.Sprint("error ", i), epoch.Add(time.Duration(i)*time.Second))
		if i == 60 {
			w.Succeeded(epoch.Add(time.Minute))
		}
	}
	got := w.Summary(epoch.Add(100 * time.Second))
	want := Summary{
		Since: epoch, GivenUp: 49, Succeeded: 1, Total: 100,
		PerMinute: got.PerMinute, Reason: retry.ReasonPermanent, Problem: "error 99",
	}
	if got != want || got.PerMinute < 55 || got.PerMinute > 65 {
		t.Errorf("%+v\nwant %+v at 60 a minute", got, want)
	}
}

// TestSummaryOfFew: successes have no reason, of two reasons that are as frequent the
// earlier is told, and what is older than an hour is not.
func TestSummaryOfFew(t *testing.T) {
	var w Watch
	w.GaveUp("a", retry.ReasonAge, "late", epoch)
	w.GaveUp("b", retry.ReasonPermanent, "refused", epoch.Add(time.Minute))
	for range 3 {
		w.Succeeded(epoch.Add(remembered))
	}
	if s := w.Summary(epoch); s.GivenUp != 2 || s.Succeeded != 3 || s.Reason != retry.ReasonAge {
		t.Errorf("%+v, want two and three, for age", s)
	}
	w.Succeeded(epoch.Add(remembered + 1))
	if s := w.Summary(epoch); s.GivenUp != 1 || s.Succeeded != 4 || s.Reason != retry.ReasonPermanent {
		t.Errorf("%+v, want one and four, permanent", s)
	}
	if gone, at := w.Gone(epoch); gone || !at.Equal(epoch.Add(time.Minute+Quiet)) {
		t.Errorf("over %v, at %v; want %v after the last", gone, at, Quiet)
	}
}
