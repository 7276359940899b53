package budget_test

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/budget"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestGrowth: of each minute it is said how many messages were in flight and how many
// copies relieved the quota before. Copies do not hide that the count grows, and growth
// that has stopped is forgotten slowly.
func TestGrowth(t *testing.T) {
	const d = budget.Decay
	for _, test := range []struct {
		name           string
		every          time.Duration
		hidden, copies []int
		rates          []float64
	}{
		{"steady", time.Minute, []int{1000, 1060, 1120}, []int{0, 0, 0}, []float64{0, 1, 1}},
		{"copies relieve it", time.Minute, []int{1000, 1060, 1060, 1060}, []int{0, 0, 60, 60}, []float64{0, 1, 1, 1}},
		{"forgotten slowly", time.Minute, []int{1000, 1060, 1060, 1060}, []int{0, 0, 0, 0}, []float64{0, 1, d, d * d}},
		{"it falls", time.Minute, []int{1000, 940}, []int{0, 0}, []float64{0, 0}},
		{"readings five minutes apart", 5 * time.Minute, []int{1000, 1300, 1300}, []int{0, 0, 0}, []float64{0, 1, d}},
		{"readings further apart", 5*time.Minute + 1, []int{1000, 1300, 1300}, []int{0, 0, 0}, []float64{0, 300 / (300 + 1e-9), 0}},
		{"two at one time", 0, []int{1000, 1300}, []int{0, 0}, []float64{0, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b budget.Budget
			now := start
			for i, hidden := range test.hidden {
				for range test.copies[i] {
					b.Spilled()
				}
				r := budget.Reading{Hidden: hidden, Quota: 10_000, At: now}
				if b.Read(r); b.Rate() != test.rates[i] || b.Last() != r {
					t.Errorf("reading %d: growth by %v a second after %+v, want %v", i, b.Rate(), b.Last(), test.rates[i])
				}
				now = now.Add(test.every)
			}
		})
	}
}

// TestQuota: what one reading of that age says of waits and of the quota. Spills is the
// shortest wait that is spent as a copy, 0 if none is.
func TestQuota(t *testing.T) {
	for _, test := range []struct {
		name                   string
		hidden, visible, quota int
		age                    time.Duration
		spills                 time.Duration
		full                   bool
	}{
		{"calm", 7999, 1, 10_000, 0, 0, false},
		{"high", 8000, 1, 10_000, 0, 10 * time.Minute, false},
		{"nearly as high as next", 8999, 1, 10_000, 0, 10 * time.Minute, false},
		{"higher", 9000, 1, 10_000, 0, time.Minute, false},
		{"nearly used up", 9499, 1, 10_000, 0, time.Minute, false},
		{"used up", 9500, 1, 10_000, 0, 2 * time.Second, true},
		{"used up, and none waits", 9500, 0, 10_000, 0, 2 * time.Second, false},
		{"used up five minutes ago", 9500, 1, 10_000, budget.Stale, 2 * time.Second, true},
		{"used up earlier", 9500, 1, 10_000, budget.Stale + 1, 0, false},
		{"no quota is known", 9500, 1, 0, 0, 0, false},
		{"a quota of one", 1, 1, 1, 0, 2 * time.Second, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b budget.Budget
			b.Read(budget.Reading{Hidden: test.hidden, Visible: test.visible, Quota: test.quota, At: start})
			now := start.Add(test.age)
			if b.Full(now) != test.full || b.High(now) != (test.spills > 0) {
				t.Errorf("full %v, high %v; want %v, %v", b.Full(now), b.High(now), test.full, test.spills > 0)
			}
			if test.spills == 0 {
				if b.Spills(240*time.Hour, now) {
					t.Error("a wait of ten days is spent as a copy")
				}
			} else if !b.Spills(test.spills, now) || b.Spills(test.spills-1, now) {
				t.Errorf("a wait of %v is spent as a copy: %v, a shorter one: %v; want only the former", test.spills, b.Spills(test.spills, now), b.Spills(test.spills-1, now))
			}
		})
	}
}

// TestProjection: a count that grows is taken for what it will be in two minutes.
func TestProjection(t *testing.T) {
	var b budget.Budget
	b.Read(budget.Reading{Hidden: 7000, Quota: 10_000, At: start})
	now := start.Add(100 * time.Second)
	b.Read(budget.Reading{Hidden: 7500, Quota: 10_000, At: now}) // 5 a second: 8100
	if !b.High(now) || b.Spills(time.Minute, now) {
		t.Errorf("high %v, short waits are copies %v; want only long waits", b.High(now), b.Spills(time.Minute, now))
	}
}

// TestRefused: a refused receive tells for two minutes, or until one brings messages.
func TestRefused(t *testing.T) {
	var b budget.Budget
	if b.Refused(start) || b.Full(start) || b.High(start) {
		t.Error("a budget that knows nothing is full, or high")
	}
	b.Refuse(start)
	if then := start.Add(2 * time.Minute); !b.Refused(then) || !b.Full(then) || b.Refused(then.Add(1)) {
		t.Error("a refusal does not count for two minutes")
	}
	if b.Received(); b.Refused(start) {
		t.Error("a refusal counts although messages were received since")
	}
}

// TestLook: once a minute at most, or as the caller says.
func TestLook(t *testing.T) {
	var b budget.Budget
	if !b.Look(start) {
		t.Error("a budget that knows nothing is not to be looked at")
	}
	b.Read(budget.Reading{At: start})
	if then := start.Add(time.Minute); !b.Look(then) || b.Look(then.Add(-1)) {
		t.Error("it is not to be looked at again after a minute")
	}
	b.LookAgain(start.Add(time.Hour))
	if then := start.Add(time.Hour); !b.Look(then) || b.Look(then.Add(-1)) {
		t.Error("it is not to be looked at when the caller said")
	}
}
