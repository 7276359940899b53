package playground

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// Sliders are a policy as controls, for those who do not know its text yet.
type Sliders struct {
	// Kind is the name of the backoff, one of Kinds; or "list", which has no sliders.
	Kind string
	// Base, Step and Max are positions in Times; Growth is the factor of an exponential backoff, or
	// the exponent of a polynomial one.
	Base, Step, Max int
	Growth          string
	// Jitter is one of Jitters; or that of the policy, if it has another.
	Jitter string
	// Attempts is 0 for unlimited, Age a position in Times, or 0 for unlimited.
	Attempts, Age int
}

// Kinds are the backoffs that have sliders, Jitters the jitters.
var (
	Kinds   = []string{"exponential", "linear", "polynomial", "constant"}
	Jitters = []string{"full", "equal", "from-base", "decorrelated", "none"}
)

// Times are what sliders of times select from. The first stands for "unlimited" where there is such a thing.
var Times = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 48 * time.Hour, 96 * time.Hour, 168 * time.Hour, 336 * time.Hour,
}

// TimeText is the time at a position, as the label of a slider shows it.
func TimeText(at int) string {
	at = min(max(at, 0), len(Times)-1)
	if d := Times[at]; d >= 48*time.Hour {
		return strconv.Itoa(int(d/(24*time.Hour))) + " days"
	}
	return shortTime(Times[at])
}

// shortTime is d without the zero minutes and seconds.
func shortTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Sliders are the positions nearest to the policy.
func (f Form) Sliders() Sliders {
	p := f.Policy.WithDefaults()
	s := Sliders{Kind: "list", Growth: "2", Jitter: p.Jitter.String(), Attempts: max(p.MaxAttempts, 0)}
	s.Base, s.Step, s.Max = nearest(retry.DefaultBase), nearest(retry.DefaultBase), nearest(retry.DefaultMax)
	switch b := p.Backoff.(type) {
	case retry.Exponential:
		s.Kind, s.Base, s.Max, s.Growth = Kinds[0], nearest(b.Base), nearest(b.Max), plain(b.Factor)
	case retry.Linear:
		s.Kind, s.Base, s.Step, s.Max = Kinds[1], nearest(b.Base), nearest(b.Step), nearest(b.Max)
	case retry.Polynomial:
		s.Kind, s.Base, s.Max, s.Growth = Kinds[2], nearest(b.Base), nearest(b.Max), plain(b.Exponent)
	case retry.Constant:
		s.Kind, s.Base = Kinds[3], nearest(time.Duration(b))
	}
	if p.MaxAge > 0 {
		s.Age = max(nearest(p.MaxAge), 1)
	}
	return s
}

// nearest is the position of the time whose ratio to d is nearest to 1.
func nearest(d time.Duration) int {
	best := 0
	for i, t := range Times {
		if ratio(t, d) < ratio(Times[best], d) {
			best = i
		}
	}
	return best
}

// ratio is how many times the longer of two times is the shorter.
func ratio(a, b time.Duration) float64 {
	a, b = max(a, 1), max(b, 1)
	return float64(max(a, b)) / float64(min(a, b))
}

// sliderText is the text of the policy that the sliders of a form select.
func sliderText(values url.Values) string {
	at := func(name string, otherwise time.Duration) string {
		i, err := strconv.Atoi(values.Get(name))
		if err != nil || i < 0 || i >= len(Times) {
			return shortTime(otherwise)
		}
		return shortTime(Times[i])
	}
	growth := values.Get("growth")
	if x, err := strconv.ParseFloat(growth, 64); err != nil || x <= 0 {
		growth = "2"
	}
	base, longest := at("base", retry.DefaultBase), at("max", retry.DefaultMax)
	var words []string
	switch values.Get("kind") {
	case "linear":
		words = append(words, "linear(base="+base+",step="+at("step", retry.DefaultBase)+",max="+longest+")")
	case "polynomial":
		words = append(words, "polynomial(base="+base+",exponent="+growth+",max="+longest+")")
	case "constant":
		words = append(words, "constant("+base+")")
	default:
		words = append(words, "exponential(base="+base+",factor="+growth+",max="+longest+")")
	}
	if j := values.Get("jitter"); slices.Contains(Jitters, j) {
		words = append(words, "jitter="+j)
	}
	attempts, age := "unlimited", "unlimited"
	if n, err := strconv.Atoi(values.Get("attempts")); err == nil && n > 0 {
		attempts = strconv.Itoa(n)
	}
	if i, err := strconv.Atoi(values.Get("age")); err == nil && i > 0 && i < len(Times) {
		age = shortTime(Times[i])
	}
	return strings.Join(append(words, "attempts="+attempts, "age="+age), " ")
}
