package breaker

import (
	"math"
	"slices"
)

// faults tells messages that fail by themselves from those that fail because the dependency is
// unavailable. First attempts are its witnesses: a message that has not failed before can only
// tell of the dependency. If a message fails again, and first attempts have succeeded since it failed
// last, an innocent message would have failed as often as first attempts did. The product of these
// shares over its failures is how likely they are if it is innocent; once that is small enough, its
// failures are its own and say nothing about the dependency.
//
// If no first attempt has succeeded since, the failure is the dependency's, whatever is known of the
// message: so in an outage every message is innocent, and an outage is noticed where only messages
// that have failed before are left.
type faults struct {
	good, bad int     // first attempts that succeeded, and that failed
	failed    []fault // messages that have failed and not succeeded since, the latest last
}

// fault is what is known of a message that has failed.
type fault struct {
	id        string
	good, bad int     // the counts of faults when it failed last
	guilt     float64 // minus the logarithm of how likely its failures are if it is innocent
}

const (
	// mostFaults messages are remembered. One that is forgotten counts as one that has not failed.
	mostFaults = 256
	// strongest limits what one failure adds to the guilt, to one time in twenty: a message
	// may have failed in two outages, however many others have succeeded in between.
	strongest = 3.0
	// guilty is the guilt of messages at fault: innocent ones would have failed like this one time in
	// four. As many failures of a dependency that always fails at times are left out, before
	// and after an outage alike, so that they change the usual share of successes and not its meaning.
	guilty = 1.4
)

// blames takes in how an attempt at a message ended, and reports whether its failure is the message's own.
func (f *faults) blames(id string, failed bool) bool {
	i := slices.IndexFunc(f.failed, func(m fault) bool { return m.id == id })
	if i < 0 {
		if !failed {
			f.good++
			return false
		}
		f.bad++
		f.failed = append(f.failed[max(0, len(f.failed)-mostFaults+1):], fault{id, f.good, f.bad, 0})
		return false
	}
	m := f.failed[i]
	f.failed = slices.Delete(f.failed, i, i+1)
	if !failed {
		return false
	}
	good, bad := f.good-m.good, f.bad-m.bad
	m.guilt += min(strongest, math.Log(float64(good+bad+1)/float64(bad+1)))
	m.good, m.bad = f.good, f.bad
	f.failed = append(f.failed, m)
	return good > 0 && m.guilt >= guilty
}
