package breaker

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const threshold = 20

// TestOpensAtNearTotalFailure: outcomes are a word, u for an attempt that fails for
// want of something, at a message of its own, and o for any other end. The number
// is of the outcome at which the breaker opens, 0 for never.
func TestOpensAtNearTotalFailure(t *testing.T) {
	for name, test := range map[string]struct {
		word string
		at   int
	}{
		"twenty failures":                    {strings.Repeat("u", 20), 20},
		"nineteen":                           {strings.Repeat("u", 19), 0},
		"successes before are of no account": {strings.Repeat("o", 1000) + strings.Repeat("u", 20), 1020},
		"one success at the end":             {strings.Repeat("u", 19) + "o" + strings.Repeat("u", 20), 0},
		"it asks for twenty more":            {strings.Repeat("u", 19) + "o" + strings.Repeat("u", 21), 41},
		"half fail":                          {strings.Repeat("uo", 5000), 0},
		"nine of ten fail":                   {strings.Repeat("uuuuuuuuuo", 5000), 0},
		"49 of 50 fail":                      {strings.Repeat("o"+strings.Repeat("u", 49), 5000), 21},
		"after long partial failure":         {strings.Repeat("uuo", 3000) + strings.Repeat("u", 1000), 9000 + 300},
	} {
		b := New(threshold)
		at := 0
		for i, outcome := range test.word {
			if b.Attempted(fmt.Sprint("m", i), outcome == 'u', epoch.Add(time.Duration(i)*time.Second)) == Open {
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

// TestCountsMessages, not failures: nineteen messages can fail for ever.
func TestCountsMessages(t *testing.T) {
	b := New(threshold)
	for i := range 10_000 {
		if b.Attempted(fmt.Sprint("m", i%19), true, epoch.Add(time.Duration(i)*time.Second)) != Closed {
			t.Fatalf("opened at failure %d of 19 messages", i)
		}
	}
}

// TestForgets failures that are long past.
func TestForgets(t *testing.T) {
	b := New(threshold)
	for i := range 19 {
		b.Attempted(fmt.Sprint("m", i), true, epoch)
	}
	if b.Attempted("m20", true, epoch.Add(forgetAfter+1)) != Closed {
		t.Error("opened by failures longer ago than forgetAfter")
	}
}

// TestOldSuspectsAreForgotten: a poisonous message fails every ten seconds, three others
// an hour fail, and one succeeds. What fails now and then is no outage, however long
// the poison keeps its memory alive.
func TestOldSuspectsAreForgotten(t *testing.T) {
	b := New(threshold)
	now := epoch
	for i := range 100 * 360 {
		now = now.Add(10 * time.Second)
		opens := b.Attempted("poison", true, now) != Closed
		switch {
		case i%360 == 359:
			b.Attempted("fine", false, now)
		case i%120 == 60:
			opens = b.Attempted(fmt.Sprint(i), true, now) != Closed || opens
		}
		if opens {
			t.Fatalf("opens after %v: %d suspects, %d failures, %d others", now.Sub(epoch), len(b.suspects), b.failures, b.others)
		}
	}
}

// TestQuiet: a breaker can be thrown away when nothing has failed of late, and not
// while failures are usual, which a new one would have to learn again.
func TestQuiet(t *testing.T) {
	b := New(threshold)
	if !b.Quiet() {
		t.Error("a new breaker is not quiet")
	}
	for i := range 100 {
		b.Attempted(fmt.Sprint(i), i%2 == 0, epoch)
	}
	if b.Quiet() {
		t.Error("quiet though half of the attempts fail")
	}
	for i := range 1000 {
		b.Attempted(fmt.Sprint(i), false, epoch)
	}
	if !b.Quiet() {
		t.Errorf("not quiet after a thousand successes: usual %+v", b.usual)
	}
}

// TestProbes: the waits between them are a fifteenth of the time for which the
// breaker has been open, within bounds, each half as long to one and a half times as long.
func TestProbes(t *testing.T) {
	for _, chance := range []float64{0, 0.5, math.Nextafter(1, 0)} {
		b := New(1)
		b.Attempted("m", true, epoch)
		b.Open(epoch, chance)
		now := epoch
		for range 100 {
			want := min(16, max(3, now.Sub(epoch).Seconds()/15)) * (0.5 + chance)
			if got := b.NextProbe().Sub(now).Seconds(); math.Abs(got-want) > 1e-6 {
				t.Fatalf("%v after the opening, with chance %v, the next probe is due in %v s, want %v s", now.Sub(epoch), chance, got, want)
			}
			now = b.NextProbe()
			b.Probe()
			b.Open(now, chance)
		}
		if !b.Since().Equal(epoch) {
			t.Errorf("the outage began %v, want when the breaker opened", b.Since())
		}
	}
}

// ramping is a breaker at the beginning of a ramp, after a probe of 50 ms.
func ramping() Breaker {
	b := New(threshold)
	b.Open(epoch, 0)
	b.Probe()
	b.Answered(50*time.Millisecond, epoch)
	return b
}

// TestRampDoubles nearly, with each round of successes, until the level is full.
func TestRampDoubles(t *testing.T) {
	b := ramping()
	now, changed := epoch, epoch
	level := b.ramp.level
	for i := 0; b.State() == Ramping; i++ {
		if i > 1000 {
			t.Fatalf("level %v after %d successes", b.ramp.level, i)
		}
		now = now.Add(b.Rest(50*time.Millisecond) + 50*time.Millisecond/time.Duration(b.Level()))
		b.Ended(b.Round(), "", false, 50*time.Millisecond, 10, now, 0)
		if b.State() == Ramping && b.ramp.level != level {
			if factor := b.ramp.level / level; math.Abs(factor-steepest) > 1e-9 {
				t.Errorf("the level rose %v times, want %v", factor, steepest)
			}
			if now.Sub(changed) < shortRound {
				t.Errorf("a round took %v, want %v at least", now.Sub(changed), shortRound)
			}
			level, changed = b.ramp.level, now
		}
	}
	if took := now.Sub(epoch); b.State() != Closed || took > 5*time.Second {
		t.Errorf("%v after %v, want closed within 5 s", b.State(), took)
	}
	if !b.Since().IsZero() {
		t.Errorf("closed, and the outage began %v", b.Since())
	}
}

// TestFailuresThatAreUsual do not keep a level from rising, and nothing but the
// opening rule ends a ramp.
func TestFailuresThatAreUsual(t *testing.T) {
	for _, every := range []int{2, 3, 10} { // of so many attempts one succeeds
		b := ramping()
		now := epoch
		attempts := 0
		for ; b.State() == Ramping && attempts < 100_000; attempts++ {
			now = now.Add(b.Rest(50*time.Millisecond) + 50*time.Millisecond/time.Duration(b.Level()))
			b.Ended(b.Round(), fmt.Sprint(attempts), attempts%every > 0, 50*time.Millisecond, 10, now, 0)
		}
		if b.State() != Closed || now.Sub(epoch) > 20*time.Minute {
			t.Errorf("one of %d attempts succeeds: %v at level %v after %d attempts and %v", every, b.State(), b.ramp.level, attempts, now.Sub(epoch))
		}
		t.Logf("one of %d attempts succeeds: closed after %d attempts, %v", every, attempts, now.Sub(epoch))
	}
}

// TestOverloadLowersTheLevel to about what is borne, at once.
func TestOverloadLowersTheLevel(t *testing.T) {
	const borne = 20
	b := ramping()
	now := epoch
	highest, late := 0.0, 0.0
	for i := range 20_000 {
		now = now.Add(b.Rest(50*time.Millisecond) + 50*time.Millisecond/time.Duration(b.Level()))
		level := float64(b.Level())
		failed := level > borne && math.Mod(float64(i)*math.Phi, 1) > borne/level
		b.Ended(b.Round(), "", failed, 50*time.Millisecond, 1000, now, 0)
		highest = max(highest, level)
		if now.Sub(epoch) > 10*time.Second {
			late = max(late, level)
		}
	}
	if b.State() != Ramping || highest > 2*borne || late > 1.5*borne || b.Level() < borne/2 {
		t.Errorf("%v, level %d, at most %v, and %v later, where %d are borne", b.State(), b.Level(), highest, late, borne)
	}
}

// TestOutcomesOfOtherRounds tell nothing of this one.
func TestOutcomesOfOtherRounds(t *testing.T) {
	b := ramping()
	for i := range 1000 {
		b.Ended(b.Round()-1, "", false, 50*time.Millisecond, 10, epoch.Add(time.Duration(i)*time.Second), 0)
	}
	if b.State() != Ramping || b.ramp.level != leastLevel {
		t.Errorf("%v at level %v after successes of an earlier round", b.State(), b.ramp.level)
	}
}

// TestSlowHandlersBegin at one at a time, without pauses.
func TestSlowHandlersBegin(t *testing.T) {
	b := New(threshold)
	b.Open(epoch, 0)
	b.Answered(5*time.Second, epoch)
	if b.ramp.level != 1 || b.Rest(5*time.Second) != 0 {
		t.Errorf("level %v, rest %v", b.ramp.level, b.Rest(5*time.Second))
	}
}

// FuzzBreaker holds what must be true of every history: a closed breaker opens only
// after threshold distinct failures since it closed, and any breaker when at least four of five of the last outcomes were failures; a level is
// between the lowest and the full one, which it reaches after a relapse only, and
// rises by no more than steepest; probes are due within half a minute.
func FuzzBreaker(f *testing.F) {
	f.Add(uint8(3), uint8(10), []byte("\x00\x02\x04\x06\x08\x0a"))
	f.Add(uint8(1), uint8(1), []byte("\x00\x01\x00\x01\x01\x01\x00"))
	f.Fuzz(func(t *testing.T, threshold, full uint8, history []byte) {
		threshold, full = max(1, threshold), max(1, full)
		b := New(int(threshold))
		distinct := make(map[byte]bool)
		var recent []bool // outcomes since then: failed
		for i, h := range history {
			now := epoch.Add(time.Duration(i) * 100 * time.Millisecond)
			failed, id, chance := h%2 == 0, h/2, float64(h)/256
			before, level := b.State(), b.ramp.level
			if before == Closed || before == Ramping {
				recent = append(recent, failed)
				if failed {
					distinct[id] = true
				}
			}
			switch before {
			case Closed:
				switch b.Attempted(fmt.Sprint(id), failed, now) {
				case Open:
					b.Open(now, chance)
				case Ramping:
					b.Relapse(time.Duration(h)*10*time.Millisecond, int(full), now)
				}
			case Open:
				b.Probe()
			case HalfOpen:
				if failed {
					b.Open(now, chance)
				} else {
					b.Answered(time.Duration(h)*10*time.Millisecond, now)
				}
			case Ramping:
				b.Ended(b.Round(), fmt.Sprint(id), failed, time.Duration(h)*10*time.Millisecond, int(full), now, chance)
				if b.State() == Ramping && (b.ramp.level < leastLevel || b.ramp.level > float64(full) || b.ramp.level == float64(full) && !b.relapsed || b.ramp.level > max(1, level*steepest)+1e-9) {
					t.Fatalf("level %v after %v, full at %d", b.ramp.level, level, full)
				}
			}
			if b.State() == Open && before != Open && before != HalfOpen {
				if before == Closed && len(distinct) < int(threshold) {
					t.Fatalf("opens after failures of %d messages, threshold %d", len(distinct), threshold)
				}
				if n := lastFailures(recent, int(threshold)); n < int(threshold)*4/5 {
					t.Fatalf("opens though of the last %d outcomes only %d were failures", threshold, n)
				}
			}
			if b.State() == Open {
				if wait := b.NextProbe().Sub(now); before != Open && (wait < firstProbe/2 || wait > 30*time.Second) {
					t.Fatalf("the probe is due in %v", wait)
				}
			}
			if b.State() != before {
				clear(distinct)
				recent = nil
			}
			if b.State() == Closed != b.Since().IsZero() {
				t.Fatalf("%v since %v", b.State(), b.Since())
			}
			if v := b.usual.value; !(v >= 0 && v <= 1) || math.IsNaN(b.ramp.evidence) {
				t.Fatalf("usual %+v, evidence %v", b.usual, b.ramp.evidence)
			}
		}
	})
}

func lastFailures(outcomes []bool, n int) (failures int) {
	for _, failed := range outcomes[max(0, len(outcomes)-n):] {
		if failed {
			failures++
		}
	}
	return failures
}

// TestOutageTeachesNothing: attempts of an outage that fail while the breaker is
// ramping, since the dependency answered a probe by chance, are not taken for usual.
func TestOutageTeachesNothing(t *testing.T) {
	b := New(1000)
	b.Succeeded(100)
	b.Open(epoch, 0)
	b.Probe()
	b.Answered(50*time.Millisecond, epoch)
	for i := range 900 {
		b.Ended(b.Round(), fmt.Sprint(i), true, 50*time.Millisecond, 10, epoch.Add(time.Duration(i)*time.Second), 0)
	}
	if b.State() != Ramping || b.ramp.level != leastLevel || b.Rising() || b.usual.value < 0.8 {
		t.Errorf("%v at level %v, rising %v, after 900 failures; usual %+v", b.State(), b.ramp.level, b.Rising(), b.usual)
	}
}
