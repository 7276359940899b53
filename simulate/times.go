package simulate

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Times is a distribution of durations. Its text is a duration such as 200ms, which all take, or
// exponential(200ms), uniform(100ms,300ms), or lognormal(200ms,2s) with the median and the 99th
// percentile. The zero Times stands for a default.
type Times struct {
	kind timesKind
	a, b time.Duration
}

type timesKind uint8

const (
	constant timesKind = iota
	exponential
	uniform
	lognormal
)

var timesNames = [...]string{constant: "constant", exponential: "exponential", uniform: "uniform", lognormal: "lognormal"}

const timesForm = "write a duration such as 200ms, exponential(200ms), uniform(100ms,300ms), or lognormal(200ms,2s) with the median and the 99th percentile"

// Constant is d each time.
func Constant(d time.Duration) Times { return Times{constant, d, 0} }

// Exponential is memoryless times with that mean.
func Exponential(mean time.Duration) Times { return Times{exponential, mean, 0} }

// Uniform is times from least to most, each as likely as the others.
func Uniform(least, most time.Duration) Times { return Times{uniform, least, most} }

// Lognormal is times of which a few are long: half are shorter than median, 99 in 100 shorter than p99.
func Lognormal(median, p99 time.Duration) Times { return Times{lognormal, median, p99} }

// z99 is the 99th percentile of the normal distribution.
const z99 = 2.3263478740408408

// sigma is the deviation of the logarithm of lognormal times.
func (t Times) sigma() float64 { return math.Log(float64(t.b)/float64(t.a)) / z99 }

// Mean returns the mean.
func (t Times) Mean() time.Duration {
	switch t.kind {
	case uniform:
		return t.a + (t.b-t.a)/2
	case lognormal:
		s := t.sigma()
		return time.Duration(float64(t.a) * math.Exp(s*s/2))
	}
	return t.a
}

// draw maps a random number onto a duration.
func (t Times) draw(r uint64) time.Duration {
	switch t.kind {
	case exponential:
		return bounded(-float64(t.a) * math.Log(1-unit(r)))
	case uniform:
		return t.a + time.Duration(unit(r)*float64(t.b-t.a+1))
	case lognormal:
		return bounded(float64(t.a) * math.Exp(t.sigma()*math.Sqrt2*math.Erfinv(2*unit(r)-1)))
	}
	return t.a
}

// bounded is d within what a run may take.
func bounded(d float64) time.Duration {
	return time.Duration(min(max(d, 1), float64(maxTakes)))
}

// maxTakes is the longest run.
const maxTakes = 12 * time.Hour

// check returns what is wrong with t, and what to do.
func (t Times) check() string {
	switch {
	case t.a <= 0 || t.a > maxTakes || t.b < 0 || t.b > maxTakes:
		return "a run takes more than nothing, and at most 12h; " + timesForm
	case t.kind >= uniform && t.b < t.a:
		return "the second duration is shorter than the first; " + timesForm
	}
	return ""
}

// String returns the text.
func (t Times) String() string {
	switch t.kind {
	case constant:
		return t.a.String()
	case exponential:
		return fmt.Sprintf("exponential(%v)", t.a)
	}
	return fmt.Sprintf("%s(%v,%v)", timesNames[t.kind], t.a, t.b)
}

// MarshalText returns the text.
func (t Times) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the text. After an error t is unchanged.
func (t *Times) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	name, inside, call := strings.Cut(s, "(")
	read, arguments := Times{kind: constant}, []string{s}
	if call {
		arguments = strings.Split(strings.TrimSuffix(inside, ")"), ",")
		for read.kind = range timesKind(len(timesNames)) {
			if timesNames[read.kind] == name {
				break
			}
		}
		if timesNames[read.kind] != name || !strings.HasSuffix(inside, ")") {
			return fmt.Errorf("%q is no distribution of times: %s", s, timesForm)
		}
	}
	into := []*time.Duration{&read.a, &read.b}
	if read.kind < uniform {
		into = into[:1]
	}
	if len(arguments) != len(into) {
		return fmt.Errorf("%q has %d durations, want %d: %s", s, len(arguments), len(into), timesForm)
	}
	for i := range into {
		d, err := time.ParseDuration(strings.TrimSpace(arguments[i]))
		if err != nil {
			return fmt.Errorf("%q is no duration: %s", arguments[i], timesForm)
		}
		*into[i] = d
	}
	if problem := read.check(); problem != "" {
		return fmt.Errorf("%q: %s", s, problem)
	}
	*t = read
	return nil
}
