package plan

import (
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// waitsOf returns the waits before p's retries 1, 2, ..., as many as p allows and
// a schedule lists.
func waitsOf(p retry.Policy) []Span {
	retries := MaxListed
	if p.MaxAttempts > 0 {
		retries = min(p.MaxAttempts-1, retries)
	}
	waits := make([]Span, retries)
	for i := range waits {
		least, most := p.Bounds(i + 1)
		waits[i] = Span{Least: least, Expected: least + (most-least)/2, Most: most}
	}
	if p.Jitter == retry.Decorrelated {
		expectDecorrelated(p, waits)
	}
	return waits
}

// chain is the number of retries after which decorrelated waits no longer depend on the first
// one: later waits have the same distribution. See [retry.Jitter].
const chain = 32

// samples is the number of seeds whose mean represents all messages: exact to a few percent.
const samples = 2048

// expectDecorrelated fills in the means of decorrelated waits. While the maximum
// is out of reach the mean of a wait between b and three times the one before, s,
// is (b + 3 E(s)) / 2. Beyond that no closed form is known: the mean of some thousand seeds is
// used.
func expectDecorrelated(p retry.Policy, waits []Span) {
	open := true
	before := Span{}
	for i := range waits {
		w := &waits[i]
		if i == 0 {
			before = Span{Least: w.Least, Expected: w.Least, Most: w.Least}
		}
		open = open && before.Most <= maxDuration/3 && w.Most == 3*before.Most
		switch {
		case open:
			w.Expected = (w.Least + 3*before.Expected) / 2
		case i < chain:
			w.Expected = min(max(sampleMean(p, i+1), w.Least), w.Most)
		default:
			w.Expected = waits[chain-1].Expected
		}
		before = *w
	}
}

// sampleMean returns the mean of the waits before retry n over all samples.
func sampleMean(p retry.Policy, n int) (mean time.Duration) {
	for i := range samples {
		mean += p.Wait(strconv.Itoa(i), n) / samples
	}
	return mean
}
