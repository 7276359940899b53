package consumer

import (
	"math"
	"testing"

	"github.com/reprise-sqs/reprise/internal/history"
)

// TestLosses: how many receives without an outcome a share of lost replies and leases explains.
func TestLosses(t *testing.T) {
	for _, test := range []struct {
		name            string
		replies, leases float64
		all, least      int // the fewest of all receives that are no coincidence
	}{
		{"nothing is lost", 0, 0, 10, 0},
		{"a thousandth", .001, 0, 3, 3},
		{"less than a thousandth, in a row", .0009, 0, 0, 2},
		{"a hundredth, in a row", .0099, 0, 0, 3},
		{"a little more than a hundredth", .0101, 0, 0, 4},
		{"a twentieth", .05, 0, 0, 5},
		{"a twentieth in two ways", .025, .025, 0, 5},
		{"a sixth", .17, 0, 0, 8},
		{"a sixth, of twelve", .17, 0, 12, 11},
		{"a twentieth, of twenty", .05, 0, 20, 9},
		{"two fifths", .4, 0, 0, 16},
		{"everything", 1, 1, 0, 16},
	} {
		l := losses{replies: rate{share: test.replies}, leases: rate{share: test.leases}}
		p := l.share(new(Delivery))
		for n := range 20 {
			all := max(test.all, n)
			if got, want := coincidental(p, n, all), n < test.least; got != want {
				t.Errorf("%s: %d receives of %d are explained: %t, want %t", test.name, n, all, got, want)
			}
		}
	}
}

// TestShareOfLosses: a marked message brings along what was measured where it was marked. The
// larger share counts, and no more than permits a verdict some time.
func TestShareOfLosses(t *testing.T) {
	for _, test := range []struct {
		replies, leases float64
		carried         int
		want            float64
	}{
		{0, 0, 0, 0}, {.1, .05, 0, .15}, {0, 0, 100, .1}, {.1, .05, 149, .15}, {.1, .05, 151, .151}, {.3, .2, 0, .4}, {0, 0, 1000, .4},
	} {
		l := losses{replies: rate{share: test.replies}, leases: rate{share: test.leases}}
		d := &Delivery{History: &Past{History: history.History{Alone: 1, Losses: test.carried}}}
		if got := l.share(d); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("of %v replies and %v leases, with %d in a thousand carried: %v, want %v", test.replies, test.leases, test.carried, got, test.want)
		}
		d.History.Alone = 0
		if got, want := l.share(d), min(test.replies+test.leases, mostLost); math.Abs(got-want) > 1e-9 {
			t.Errorf("without the mark: %v, want what is measured here, %v", got, want)
		}
	}
}

// TestRate follows what happens, and does not take the first of it for the rule.
func TestRate(t *testing.T) {
	near := func(r rate, want float64) {
		t.Helper()
		if math.Abs(r.share-want) > 1e-9 {
			t.Errorf("share %v, want %v", r.share, want)
		}
	}
	var r rate
	near(r, 0)
	r.count(true)
	near(r, 1./8)
	for range 7 {
		r.count(false)
	}
	near(r, 1./8*math.Pow(7./8, 7))
	r.count(true)
	near(r, 1./8*math.Pow(7./8, 7)*8/9+1./9)

	r = rate{}
	for i := range 6400 {
		r.count(i%4 == 0)
	}
	if r.share < .23 || r.share > .27 {
		t.Errorf("share %v of one in four", r.share)
	}
	before := r.share
	r.count(true)
	near(r, before+(1-before)/64)
}

// TestChoose compares with Pascal's triangle.
func TestChoose(t *testing.T) {
	for _, test := range []struct{ n, k, want int }{{0, 0, 1}, {5, 0, 1}, {5, 5, 1}, {5, 2, 10}, {20, 10, 184756}, {2, 3, 1}} {
		if got := math.Exp(logChoose(test.n, test.k)); math.Abs(got-float64(test.want)) > 1e-6*float64(test.want) {
			t.Errorf("%d choose %d: %v, want %d", test.n, test.k, got, test.want)
		}
	}
}
