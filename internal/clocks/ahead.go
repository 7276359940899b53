package clocks

import "time"

// Noise is the largest difference between two clocks that may not be an error of either: a Date header
// counts whole seconds, and a reply takes its time.
const Noise = 3 * time.Second

// Ahead estimates how far the clock of a server is ahead of ours, from the dates of its replies. A reply that
// was read late, because the machine slept meanwhile, shows too little: it is told from a change of our clock, as far as
// that can be told. The zero value knows nothing.
type Ahead struct {
	known bool
	lead  time.Duration

	doubted time.Duration // what replies have shown that were read late, or after our clock was set forward
	since   time.Time     // when the first of them was read; zero: there is none
}

// Lead returns how far the server's clock is ahead of ours; zero within [Noise]. It changes by [Noise] or more.
func (a *Ahead) Lead() time.Duration { return a.lead }

// Observe takes in that a reply, to a request of the time asked, showed when it was read that the server's clock is ahead
// by skew. It returns how long before that the server had sent the reply, beyond [Noise]; zero where our clock was set
// forward instead: by more than the request took, or if a request made since shows the same.
func (a *Ahead) Observe(skew time.Duration, asked, read time.Time) (late time.Duration) {
	if skew.Abs() < Noise {
		skew = 0
	}
	late = a.lead - skew
	again := !a.since.IsZero() && (skew-a.doubted).Abs() < Noise
	switch {
	case a.known && late.Abs() < Noise: // what a date leaves out makes no difference: times that were translated stay the same
		a.since = time.Time{}
		return 0
	case !a.known, late < 0, late > Elapsed(asked, read)+Noise, again && asked.After(a.since):
		*a = Ahead{known: true, lead: skew}
		return 0
	case !again:
		a.doubted, a.since = skew, read
	}
	return late
}
