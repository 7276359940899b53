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
	shown time.Duration // how far the server's clock is ahead by the last reply that was not read late
	lead  time.Duration // the same, but for noise

	doubted time.Duration // what replies have shown that were read late, or after our clock was set forward
	since   time.Time     // when the first of them was read; zero: there is none
}

// Lead returns how far the server's clock is ahead of ours; zero within [Noise]. It stays the same while replies differ from
// it by less than [Noise], so that times which were translated stay the same, whatever a date leaves out.
func (a *Ahead) Lead() time.Duration { return a.lead }

// Observe takes in that a reply, to a request of the time asked, showed when it was read that the server's clock is ahead
// by skew. It returns how long before that the server had sent the reply, beyond [Noise]; zero where our clock was set
// forward instead: by more than the request took, or if a request made since shows the same. Compared with the reply
// before, because clocks also drift.
func (a *Ahead) Observe(skew time.Duration, asked, read time.Time) (late time.Duration) {
	late = a.shown - skew
	again := !a.since.IsZero() && (skew-a.doubted).Abs() < Noise
	if a.known && late >= Noise && late <= Elapsed(asked, read)+Noise && !(again && asked.After(a.since)) {
		if !again {
			a.doubted, a.since = skew, read
		}
		return late
	}
	a.known, a.shown, a.since = true, skew, time.Time{}
	if (skew - a.lead).Abs() >= Noise {
		a.lead = skew
		if skew.Abs() < Noise {
			a.lead = 0
		}
	}
	return 0
}
