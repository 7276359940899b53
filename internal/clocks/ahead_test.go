package clocks

import (
	"testing"
	"time"
)

// TestAhead: what replies show of the server's clock, and for how long each had waited to be read.
func TestAhead(t *testing.T) {
	const s = time.Second
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	type reply struct {
		asked, read time.Duration // since the start
		skew        time.Duration // that its date shows
		late, lead  time.Duration // want
	}
	for name, replies := range map[string][]reply{
		"within the noise":                 {{0, s, 2 * s, 0, 0}, {s, 2 * s, -2999 * time.Millisecond, 0, 0}},
		"the first says what it says":      {{0, 20 * s, -10 * s, 0, -10 * s}},
		"ahead, and more":                  {{0, s, 60 * s, 0, 60 * s}, {s, 2 * s, 90 * s, 0, 90 * s}},
		"a little less":                    {{0, s, 60 * s, 0, 60 * s}, {s, 90 * s, 57*s + 1, 0, 60 * s}},
		"a little more":                    {{0, s, 60 * s, 0, 60 * s}, {s, 90 * s, 63*s - 1, 0, 60 * s}, {s, 90 * s, 63 * s, 0, 63 * s}},
		"a clock that drifts":              {{0, s, 60 * s, 0, 60 * s}, {s, 21 * s, 58 * s, 0, 60 * s}, {21 * s, 41 * s, 56 * s, 0, 56 * s}, {41 * s, 61 * s, 54 * s, 0, 56 * s}},
		"one that drifts out of the noise": {{0, s, -2 * s, 0, 0}, {s, 21 * s, -3100 * time.Millisecond, 0, -3100 * time.Millisecond}, {21 * s, 41 * s, -2900 * time.Millisecond, 0, -3100 * time.Millisecond}},
		"asleep, of one that drifts":       {{0, s, 0, 0, 0}, {s, 21 * s, -2 * s, 0, 0}, {21 * s, 61 * s, -30 * s, 28 * s, 0}},
		"asleep during a receive":          {{0, s, 0, 0, 0}, {s, 60 * s, -50 * s, 50 * s, 0}, {60 * s, 61 * s, 0, 0, 0}},
		"just beyond the noise":            {{0, s, 0, 0, 0}, {s, 60 * s, -3 * s, 3 * s, 0}},
		"asleep, of a clock that is ahead": {{0, s, 100 * s, 0, 100 * s}, {s, 60 * s, 50 * s, 50 * s, 100 * s}},
		"asleep with two receives":         {{0, s, 0, 0, 0}, {s, 60 * s, -50 * s, 50 * s, 0}, {2 * s, 60 * s, -51 * s, 51 * s, 0}},
		"asleep twice":                     {{0, s, 0, 0, 0}, {s, 60 * s, -50 * s, 50 * s, 0}, {61 * s, 100 * s, -30 * s, 30 * s, 0}},
		"set forward during a quick call":  {{0, s, 0, 0, 0}, {s, 2 * s, -50 * s, 0, -50 * s}},
		"as long as the request took":      {{0, s, 0, 0, 0}, {s, 48 * s, -50 * s, 50 * s, 0}},
		"longer than the request took":     {{0, s, 0, 0, 0}, {s, 48 * s, -51 * s, 0, -51 * s}},
		"set forward, and shown again":     {{0, s, 0, 0, 0}, {s, 20 * s, -10 * s, 10 * s, 0}, {20*s + 1, 40 * s, -11 * s, 0, -11 * s}},
		"shown by a request of before":     {{0, s, 0, 0, 0}, {s, 20 * s, -10 * s, 10 * s, 0}, {20 * s, 40 * s, -10 * s, 10 * s, 0}},
		"shown again after a good one":     {{0, s, 0, 0, 0}, {s, 20 * s, -10 * s, 10 * s, 0}, {20 * s, 21 * s, 0, 0, 0}, {21 * s, 41 * s, -10 * s, 10 * s, 0}},
		"set back is seen at once":         {{0, s, 0, 0, 0}, {s, 2 * s, 40 * s, 0, 40 * s}},
		"another doubt replaces the first": {{0, s, 0, 0, 0}, {s, 30 * s, -10 * s, 10 * s, 0}, {s, 31 * s, -20 * s, 20 * s, 0}, {30*s + 1, 60 * s, -20 * s, 20 * s, 0}, {31*s + 1, 61 * s, -20 * s, 0, -20 * s}},
		"a doubt is the same within noise": {{0, s, 0, 0, 0}, {s, 30 * s, -10 * s, 10 * s, 0}, {31 * s, 60 * s, -13*s + 1, 0, -13*s + 1}},
		"a doubt is another beyond noise":  {{0, s, 0, 0, 0}, {s, 30 * s, -10 * s, 10 * s, 0}, {31 * s, 60 * s, -13 * s, 13 * s, 0}},
	} {
		var a Ahead
		for i, r := range replies {
			late := a.Observe(r.skew, start.Add(r.asked), start.Add(r.read))
			if late != r.late || a.Lead() != r.lead {
				t.Errorf("%s: reply %d was late by %v, and the server is ahead by %v; want %v and %v", name, i+1, late, a.Lead(), r.late, r.lead)
			}
		}
	}
}
