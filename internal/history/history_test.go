package history_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/history"
)

var sent = time.UnixMilli(946684800000)

// plausible returns a history that Read believes of a message sent at sent.
func plausible() history.History {
	at := sent.UnixMilli()
	return history.History{Queue: "q", Origin: "id", Attempt: 3, Sent: at - 5, First: at - 4, SentAt: at, NotBefore: at + 1, Error: "<&>\x00é"}
}

// TestRead believes what is at the edge of being plausible, and nothing beyond it.
func TestRead(t *testing.T) {
	year, tolerance := history.MaxAge.Milliseconds(), history.SendingTolerance.Milliseconds()
	at := func(h *history.History, written int64) {
		h.SentAt, h.First, h.Sent, h.NotBefore = written, written, written, 0
	}
	const printable = "!#$%'()*+,-./09:;=?@AZ[]^_`az{|}~"
	for _, test := range []struct {
		name    string
		change  func(*history.History)
		problem string // empty: it is believed
	}{
		{"as it is written", func(*history.History) {}, ""},
		{"empty", func(h *history.History) { *h = history.History{} }, "another queue"},
		{"another queue", func(h *history.History) { h.Queue = "q2" }, "another queue"},
		{"written as early as may be", func(h *history.History) { at(h, sent.UnixMilli()-tolerance) }, ""},
		{"written earlier", func(h *history.History) { at(h, sent.UnixMilli()-tolerance-1) }, "another sending"},
		{"written as late as may be", func(h *history.History) { at(h, sent.UnixMilli()+tolerance) }, ""},
		{"written later", func(h *history.History) { at(h, sent.UnixMilli()+tolerance+1) }, "another sending"},
		{"no origin", func(h *history.History) { h.Origin = "" }, "not a message id"},
		{"every character", func(h *history.History) { h.Origin, h.Trail = printable, printable }, ""},
		{"the longest origin", func(h *history.History) { h.Origin = strings.Repeat("x", 128) }, ""},
		{"a longer origin", func(h *history.History) { h.Origin = strings.Repeat("x", 129) }, "not a message id"},
		{"an origin with a space", func(h *history.History) { h.Origin = "a b" }, "not a message id"},
		{"an origin with a control character", func(h *history.History) { h.Origin = "a\x7f" }, "not a message id"},
		{"an origin of other letters", func(h *history.History) { h.Origin = "é" }, "not a message id"},
		{"no counts", func(h *history.History) { h.Attempt, h.Generation, h.Releases, h.Alone = 0, 0, 0, 0 }, ""},
		{"the largest counts", func(h *history.History) {
			h.Attempt, h.Generation, h.Releases, h.Alone = 1_000_000, 1_000_000, 1_000_000, 1
		}, ""},
		{"attempts below zero", func(h *history.History) { h.Attempt = -1 }, "counts"},
		{"too many attempts", func(h *history.History) { h.Attempt = 1_000_001 }, "counts"},
		{"a generation below zero", func(h *history.History) { h.Generation = -1 }, "counts"},
		{"too high a generation", func(h *history.History) { h.Generation = 1_000_001 }, "counts"},
		{"releases below zero", func(h *history.History) { h.Releases = -1 }, "counts"},
		{"too many releases", func(h *history.History) { h.Releases = 1_000_001 }, "counts"},
		{"a mark below zero", func(h *history.History) { h.Alone = -1 }, "counts"},
		{"an unknown mark", func(h *history.History) { h.Alone = 2 }, "counts"},
		{"every receive lost", func(h *history.History) { h.Losses = 1000 }, ""},
		{"more losses than receives", func(h *history.History) { h.Losses = 1001 }, "counts"},
		{"fewer losses than none", func(h *history.History) { h.Losses = -1 }, "counts"},
		{"all at once", func(h *history.History) { at(h, h.SentAt) }, ""},
		{"received before it was sent", func(h *history.History) { h.First = h.Sent - 1 }, "out of order"},
		{"received after the copy was sent", func(h *history.History) { h.First = h.SentAt + 1 }, "out of order"},
		{"sent a year ago", func(h *history.History) { h.Sent = h.SentAt - year }, ""},
		{"sent before that", func(h *history.History) { h.Sent = h.SentAt - year - 1 }, "out of order"},
		{"the longest error", func(h *history.History) { h.Error = strings.Repeat("\uFFFD", history.MaxError) }, ""},
		{"a longer error", func(h *history.History) { h.Error = strings.Repeat("\uFFFD", history.MaxError) + "x" }, "longer than any"},
		{"the longest trail", func(h *history.History) { h.Trail = strings.Repeat("x", 128) }, ""},
		{"a longer trail", func(h *history.History) { h.Trail = strings.Repeat("x", 129) }, "trail"},
		{"a trail with a space", func(h *history.History) { h.Trail = "a b" }, "trail"},
		{"due in a year", func(h *history.History) { h.NotBefore = h.SentAt + year }, ""},
		{"due later", func(h *history.History) { h.NotBefore = h.SentAt + year + 1 }, "more than a year"},
		{"due before 1970", func(h *history.History) { h.NotBefore = -1 }, "more than a year"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := plausible()
			test.change(&h)
			got, err := history.Read(h.String(), "q", sent)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Fatalf("error %v, want one that says %q", err, test.problem)
				}
				h = history.History{}
			} else if err != nil {
				t.Fatalf("not believed: %v", err)
			}
			if diff := cmp.Diff(h, got); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadWithoutTheTimeOfSending believes nothing: whether the history is of this
// sending cannot be told.
func TestReadWithoutTheTimeOfSending(t *testing.T) {
	for _, at := range []time.Time{{}, time.UnixMilli(0)} {
		h := plausible()
		h.SentAt = at.UnixMilli()
		h.First, h.Sent, h.NotBefore = h.SentAt, h.SentAt, 0
		if _, err := history.Read(h.String(), "q", at); err == nil || !strings.Contains(err.Error(), "another sending") {
			t.Errorf("sent at %v: error %v", at, err)
		}
	}
}

// TestReadText reads one JSON object that is not too long, whatever other members it has.
func TestReadText(t *testing.T) {
	h := plausible()
	text := h.String()
	signed := strings.TrimSuffix(text, "}") + `,"signature":"`
	longest := signed + strings.Repeat("x", history.MaxSize-len(signed)-2) + `"}`
	for _, test := range []struct{ name, text, problem string }{
		{"with spaces around it", " " + text + "\n", ""},
		{"the longest", longest, ""},
		{"longer", longest + " ", "it has 2141 bytes, more than 2140"},
		{"another object behind it", text + "{}", "something follows"},
		{"anything behind it", text + "x", "something follows"},
		{"empty", "", "not a JSON object"},
		{"an array", "[]", "not a JSON object"},
		{"a text in place of a number", `{"attempt":"3"}`, "not a JSON object"},
	} {
		got, err := history.Read(test.text, "q", sent)
		switch {
		case test.problem == "" && (err != nil || got != h):
			t.Errorf("%s: %+v, %v", test.name, got, err)
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: error %v, want one that says %q", test.name, err, test.problem)
		}
	}
}

// TestDate writes times that Read believes, whatever is known.
func TestDate(t *testing.T) {
	const year = history.MaxAge
	now := sent.Add(time.Hour)
	var unknown time.Time
	for _, test := range []struct {
		name                            string
		sent, first, due                time.Time
		wantSent, wantFirst, wantNotBef time.Time // the last: zero for at once
	}{
		{"all known", sent, sent.Add(time.Minute), now.Add(time.Minute), sent, sent.Add(time.Minute), now.Add(time.Minute)},
		{"nothing known", unknown, unknown, unknown, now, now, unknown},
		{"only sent is known", sent, unknown, unknown, sent, now, unknown},
		{"only received is known", unknown, sent, unknown, sent, sent, unknown},
		{"received in the future", sent, now.Add(1e9), unknown, sent, now, unknown},
		{"sent in the future", now.Add(1e9), now, unknown, now, now, unknown},
		{"received before it was sent", sent.Add(1e9), sent, unknown, sent, sent, unknown},
		{"a year ago", now.Add(-year), now.Add(-year), unknown, now.Add(-year), now.Add(-year), unknown},
		{"longer ago", now.Add(-2 * year), now.Add(-2 * year), unknown, now.Add(-year), now.Add(-year), unknown},
		{"due in a year", sent, sent, now.Add(year), sent, sent, now.Add(year)},
		{"due later", sent, sent, now.Add(math.MaxInt64), sent, sent, now.Add(year)},
		{"due within a millisecond", sent, sent, now.Add(1), sent, sent, now.Add(time.Millisecond)},
		{"due at a millisecond", sent, sent, now.Add(time.Millisecond), sent, sent, now.Add(time.Millisecond)},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := history.History{Queue: "q", Origin: "id", NotBefore: 1}
			h.Date(now, test.sent, test.first, test.due)
			want := history.History{Queue: "q", Origin: "id", SentAt: now.UnixMilli(), Sent: test.wantSent.UnixMilli(), First: test.wantFirst.UnixMilli()}
			if !test.wantNotBef.IsZero() {
				want.NotBefore = test.wantNotBef.UnixMilli()
			}
			if diff := cmp.Diff(want, h); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			if _, err := history.Read(h.String(), "q", now); err != nil {
				t.Errorf("not believed: %v", err)
			}
		})
	}
}

// TestString is what travels: members that say nothing are left out, and texts stay short.
func TestString(t *testing.T) {
	h := plausible()
	const want = `{"queue":"q","origin":"id","attempt":3,"sent":946684799995,"first":946684799996,"notBefore":946684800001,"error":"<&>\u0000é","sentAt":946684800000}`
	if got := h.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestSeed(t *testing.T) {
	for generation, want := range map[int]string{0: "id", 1: "id#1", 12: "id#12"} {
		h := history.History{Origin: "id", Generation: generation}
		if got := h.Seed(); got != want {
			t.Errorf("generation %d: seed %q, want %q", generation, got, want)
		}
	}
}

// FuzzRead: what is read is within bounds, and reads the same when it is written
// again; anything else is an error, not a panic.
func FuzzRead(f *testing.F) {
	good := plausible()
	for _, text := range []string{good.String(), "", "{}", "null", "[1]", good.String() + "x", strings.Repeat("[", 3000), `{"queue":"q","queue":"r"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := history.Read(text, "q", sent)
		if err != nil {
			return
		}
		if h.Queue != "q" || h.Origin == "" || len(h.Origin) > history.MaxOrigin || len(h.Trail) > history.MaxTrail || len(h.Error) > 3*history.MaxError || h.Attempt < 0 || h.Attempt > history.MaxCount ||
			time.UnixMilli(h.SentAt).Sub(sent).Abs() > history.SendingTolerance || h.Sent > h.First || h.First > h.SentAt ||
			time.UnixMilli(h.NotBefore).Sub(sent) > history.MaxAge+history.SendingTolerance || sent.Sub(time.UnixMilli(h.Sent)) > history.MaxAge+history.SendingTolerance {
			t.Errorf("%q was read as %+v", text, h)
		}
		if written := h.String(); len(written) <= history.MaxSize {
			again, err := history.Read(written, "q", sent)
			if err != nil {
				t.Fatalf("%q does not read again: %v", written, err)
			}
			if diff := cmp.Diff(h, again); diff != "" {
				t.Errorf("read again (-first +second):\n%s", diff)
			}
		}
	})
}
