package reprise

import (
	"fmt"
	"math"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestBreakerOpensAtNearTotalFailure: outcomes are a word, u for an attempt that
// fails for want of something, at a message of its own, and o for any other end.
// The number is of the outcome at which the breaker opens, 0 for never.
func TestBreakerOpensAtNearTotalFailure(t *testing.T) {
	repeat := func(n int, part string) (word string) {
		for range n {
			word += part
		}
		return word
	}
	for name, test := range map[string]struct {
		word string
		at   int
	}{
		"twenty failures":                    {repeat(20, "u"), 20},
		"nineteen":                           {repeat(19, "u"), 0},
		"successes before are of no account": {repeat(1000, "o") + repeat(20, "u"), 1020},
		"one success at the end":             {repeat(19, "u") + "o" + repeat(20, "u"), 0},
		"it asks for twenty more":            {repeat(19, "u") + "o" + repeat(21, "u"), 41},
		"half fail":                          {repeat(5000, "uo"), 0},
		"nine of ten fail":                   {repeat(5000, "uuuuuuuuuo"), 0},
		"49 of 50 fail":                      {repeat(5000, "o"+repeat(49, "u")), 21},
		"after long partial failure":         {repeat(3000, "uuo") + repeat(1000, "u"), 9000 + 300},
	} {
		b := breaker{threshold: 20}
		at := 0
		for i, outcome := range test.word {
			if b.attempted(fmt.Sprint("m", i), outcome == 'u', epoch.Add(time.Duration(i)*time.Second)) {
				at = i + 1
				break
			}
		}
		if name == "after long partial failure" {
			if at <= 9000+20 || at > test.at {
				t.Errorf("%s: opens at %d, want within 300 of the beginning of the total one", name, at)
			}
			continue
		}
		if at != test.at {
			t.Errorf("%s: opens at %d, want %d", name, at, test.at)
		}
	}
}

// TestBreakerCountsMessages, not failures: nineteen messages can fail for ever.
func TestBreakerCountsMessages(t *testing.T) {
	b := breaker{threshold: 20}
	for i := range 10_000 {
		if b.attempted(fmt.Sprint("m", i%19), true, epoch.Add(time.Duration(i)*time.Second)) {
			t.Fatalf("opened at failure %d of 19 messages", i)
		}
	}
}

// TestBreakerForgets failures that are long past.
func TestBreakerForgets(t *testing.T) {
	b := breaker{threshold: 20}
	for i := range 19 {
		b.attempted(fmt.Sprint("m", i), true, epoch)
	}
	if b.attempted("m20", true, epoch.Add(forgetAfter+1)) {
		t.Error("opened by failures longer ago than forgetAfter")
	}
}

// TestProbeIntervals: they double from 5 s to 80 s, each between half and one and
// a half of that.
func TestProbeIntervals(t *testing.T) {
	for _, chance := range []float64{0, 0.5, math.Nextafter(1, 0)} {
		b := breaker{threshold: 1}
		b.attempted("m", true, epoch)
		b.open(epoch, chance)
		for n := range 100 {
			want := min(80, 5*math.Pow(2, float64(n))) * (0.5 + chance)
			if got := b.probeAt.Sub(epoch).Seconds(); math.Abs(got-want) > 1e-6 {
				t.Fatalf("probe %d with chance %v after %v s, want %v s", n, chance, got, want)
			}
			b.probe()
			b.unanswered(epoch, chance)
		}
		if !b.since.Equal(epoch) {
			t.Errorf("the outage began %v, want when the breaker opened", b.since)
		}
	}
}

// TestRampDoubles: after an answer one handler may run, then 2, 4, 8; fifteen
// answers fill ten places.
func TestRampDoubles(t *testing.T) {
	b := breaker{threshold: 20}
	b.open(epoch, 0)
	b.probe()
	b.answered()
	var limits []int
	for b.state == BreakerRamping {
		limits = append(limits, b.limit)
		b.ramped(false, 10, epoch, 0)
	}
	if fmt.Sprint(limits) != "[1 2 2 4 4 4 4 8 8 8 8 8 8 8 8]" || b.state != BreakerClosed {
		t.Errorf("limits %v, then %v", limits, b.state)
	}
}

// TestRampReopens at a failure, unless ten answers stand against each: then it is
// not raised.
func TestRampReopens(t *testing.T) {
	for answers, want := range map[int]BreakerState{0: BreakerOpen, 9: BreakerOpen, 10: BreakerRamping, 19: BreakerRamping} {
		b := breaker{threshold: 20}
		b.open(epoch, 0)
		b.probe()
		b.answered()
		for range answers {
			b.ramped(false, 1000, epoch, 0)
		}
		limit := b.limit
		b.ramped(true, 1000, epoch, 0)
		if b.state != want || want == BreakerRamping && b.limit != limit {
			t.Errorf("a failure after %d answers: %v, limit %d of %d; want %v", answers, b.state, b.limit, limit, want)
		}
		b.ramped(true, 1000, epoch, 0)
		if answers < 20 && b.state != BreakerOpen {
			t.Errorf("two failures after %d answers: %v, want open", answers, b.state)
		}
	}
}

// TestOldSuspectsAreForgotten: a poisonous message fails every ten seconds, three others
// an hour fail, and one succeeds. What fails now and then is no outage, however long
// the poison keeps its memory alive.
func TestOldSuspectsAreForgotten(t *testing.T) {
	b := breaker{threshold: defaultThreshold}
	now := epoch
	for i := range 100 * 360 {
		now = now.Add(10 * time.Second)
		opens := b.attempted("poison", true, now)
		switch {
		case i%360 == 359:
			b.attempted("fine", false, now)
		case i%120 == 60:
			opens = b.attempted(fmt.Sprint(i), true, now) || opens
		}
		if opens {
			t.Fatalf("opens after %v: %d suspects, %d failures, %d others", now.Sub(epoch), len(b.suspects), b.failures, b.others)
		}
	}
}

// FuzzBreaker holds what must be true of every history: a breaker opens only after
// threshold distinct failures since it was closed, and when at least four of five
// of the last outcomes were failures;
// while ramping the limit never exceeds twice the answers, and probes are due
// within two minutes.
func FuzzBreaker(f *testing.F) {
	f.Add(uint8(3), uint8(10), []byte("\x00\x02\x04\x06\x08\x0a"))
	f.Add(uint8(1), uint8(1), []byte("\x00\x01\x00\x01\x01\x01\x00"))
	f.Fuzz(func(t *testing.T, threshold, full uint8, history []byte) {
		threshold, full = max(1, threshold), max(1, full)
		b := breaker{threshold: int(threshold)}
		distinct := make(map[byte]bool)
		var recent []bool // outcomes since closed: unavailable
		answers := 0
		for i, h := range history {
			now := epoch.Add(time.Duration(i) * time.Second)
			bad, id, chance := h%2 == 0, h/2, float64(h)/256
			switch before := b.state; before {
			case BreakerClosed:
				recent = append(recent, bad)
				if bad {
					distinct[id] = true
				}
				if !b.attempted(fmt.Sprint(id), bad, now) {
					break
				}
				if len(distinct) < int(threshold) {
					t.Fatalf("opens after failures of %d messages, threshold %d", len(distinct), threshold)
				}
				if n := lastFailures(recent, int(threshold)); n < int(threshold)*4/5 {
					t.Fatalf("opens though of the last %d outcomes only %d were failures", threshold, n)
				}
				b.open(now, chance)
				if wait := b.probeAt.Sub(now); wait < firstProbe/2 || wait > 2*time.Minute {
					t.Fatalf("the probe is due in %v", wait)
				}
			case BreakerOpen:
				b.probe()
			case BreakerHalfOpen:
				if bad {
					b.unanswered(now, chance)
				} else {
					b.answered()
					answers = 0
				}
			case BreakerRamping:
				if !bad {
					answers++
				}
				b.ramped(bad, int(full), now, chance)
				if b.state == BreakerRamping && (b.limit > 2*answers && b.limit > 1 || b.limit > int(full)) {
					t.Fatalf("limit %d after %d answers, full at %d", b.limit, answers, full)
				}
				if b.state == BreakerClosed {
					clear(distinct)
					recent = nil
				}
			}
			if b.state == BreakerClosed != b.since.IsZero() {
				t.Fatalf("%v since %v", b.state, b.since)
			}
		}
	})
}

func lastFailures(outcomes []bool, n int) (failures int) {
	for _, bad := range outcomes[max(0, len(outcomes)-n):] {
		if bad {
			failures++
		}
	}
	return failures
}
