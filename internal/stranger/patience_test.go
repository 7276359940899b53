package stranger_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// mostPatience is how long a scenario runs at most. What would take longer is not judged by its end.
const mostPatience = 40 * 24 * time.Hour

// lastPlanned returns when the last thing happens that the scenario has planned.
func lastPlanned(s *scenario) time.Duration {
	var last time.Duration
	for _, p := range s.Processes {
		last = max(last, p.From, p.Until)
	}
	for _, m := range s.Messages {
		last = max(last, m.At+m.Delay)
	}
	for _, f := range s.Faults {
		last = max(last, f.When.Until)
	}
	for _, o := range s.Outages {
		last = max(last, o.Until)
	}
	for _, o := range s.KeyDown {
		last = max(last, o.When.Until)
	}
	for _, n := range s.Neighbours {
		for _, e := range n.Errands {
			last = max(last, e.At)
		}
	}
	for _, j := range s.Jumps {
		last = max(last, j.At)
	}
	for _, c := range s.Changes {
		last = max(last, c.At)
	}
	for _, a := range s.Acts {
		last = max(last, a.At)
		if a.Do == doPause || a.Do == doPauseKey {
			last = max(last, a.At+time.Duration(a.N)*time.Second)
		}
	}
	return last
}

// patience returns when every message must have had its end: what the policies, the handlers and the
// limits of their number permit after the last thing that is planned, and an allowance of the documents for each
// wait that they name. It is generous: only what never ends is judged by it.
func patience(s *scenario) time.Duration {
	return min(endsBy(s), mostPatience)
}

// endsBy is patience without its limit.
func endsBy(s *scenario) time.Duration {
	last := lastPlanned(s)
	versions := s.Versions
	if len(versions) == 0 {
		versions = []settings{{}}
	}
	var slowest time.Duration
	for _, v := range versions {
		slowest = max(slowest, endsIn(s, v))
	}
	total := add(last, slowest)
	if s.interrupts() { // a run that is interrupted begins again
		for n := range s.Messages {
			total = add(total, s.Messages[n].longestRun())
		}
	}
	for _, o := range s.Outages { // it is felt for as long again, while the consumer looks for the level that is borne
		total = add(total, 2*(o.Until-o.From)+30*time.Minute)
	}
	for _, o := range s.KeyDown {
		total = add(total, 2*(o.When.Until-o.When.From)+30*time.Minute)
	}
	for _, a := range s.Acts {
		if a.Do == doPauseKey { // "Further ones are hidden, for a longer time each time"
			total = add(total, 2*time.Duration(a.N)*time.Second+30*time.Minute)
		}
	}
	for _, n := range s.Neighbours {
		for _, e := range n.Errands { // one after the other, at worst, and those of higher priority first
			total = add(total, time.Duration(e.Fails+1)*(e.Takes+n.Wait)+time.Minute)
		}
	}
	for _, j := range s.Jumps { // clients that do not tell the clocks apart count ages too low by so much
		total = add(total, j.By)
	}
	if s.kills() {
		total = add(total, 12*time.Hour) // marked messages wait up to two hours between their turns
	}
	if s.longest() < 3*time.Hour { // messages that are given up may wait for its end: see world.look
		total = add(total, s.longest())
	}
	return add(total, time.Hour)
}

// interrupts reports whether SQS may give one message to two runs at once, so that one of them is interrupted.
func (s *scenario) interrupts() bool {
	return slices.ContainsFunc(s.Faults, func(f spell) bool {
		return f.Kind == sqsserver.FaultEarlyRedelivery || f.Kind == sqsserver.FaultDuplicate || f.Kind == sqsserver.FaultLoseLease
	})
}

// longestRun returns how long the longest run of m takes.
func (m *message) longestRun() (longest time.Duration) {
	for _, s := range m.Steps {
		longest = max(longest, s.Takes)
	}
	return longest
}

// endsIn returns how long the messages take under one version's settings.
func endsIn(s *scenario, v settings) time.Duration {
	policy := v.policy()
	most := policy.MaxAttempts
	if most == 0 {
		most = retry.DefaultMaxAttempts
		if s.Queue.MaxReceives > 0 {
			most = max(s.Queue.MaxReceives, most)
		}
	}
	var runs, waits time.Duration
	tries := 0
	for n := range s.Messages {
		m := &s.Messages[n]
		steps := len(m.Steps)
		fails := steps > 0 && m.Steps[steps-1].Result != succeed && m.Steps[steps-1].Result != permanent
		if fails || steps > 0 && v.HandlerTimeout > 0 { // its runs may all take too long
			steps += most     // releases are no attempts
			if s.Queue.FIFO { // receives are none either: each process counts its own
				steps *= max(1, len(s.Processes))
			}
			if most < 0 {
				steps = max(steps, 2000)
			}
		}
		var own, asked time.Duration
		for i := 1; i <= max(1, steps); i++ {
			st := m.step(i)
			runs = add(runs, st.Takes)
			_, longest := policy.Bounds(i)
			if st.Result == release {
				asked = add(asked, st.Wait)
			}
			own = add(own, max(longest, st.Wait, 5*time.Minute)) // releases wait for five minutes in the end
		}
		if policy.MaxAge > 0 && most < 0 {
			own = min(own, add(add(2*policy.MaxAge, asked), time.Hour))
		}
		if s.Queue.FIFO || s.Queue.InFlightLimit > 0 { // they may have to wait for each other's waits
			waits = add(waits, own)
		} else {
			waits = max(waits, own)
		}
		tries += max(1, steps)
	}
	if s.Queue.FIFO && v.Batch { // what is behind a failure in one batch runs again, whatever it takes
		for n := range s.Messages {
			runs = add(runs, time.Duration(tries)*s.Messages[n].longestRun())
		}
	}
	if v.Rate > 0 {
		runs = add(runs, time.Duration(float64(tries)/v.Rate*float64(time.Second)))
	}
	if v.Batch {
		linger := v.BatchLinger
		if linger == 0 {
			linger = time.Second
		}
		runs = add(runs, time.Duration(tries)*max(0, linger))
	}
	if v.Lambda { // what a function that dies has received comes back after the visibility timeout; the others share nothing
		waits = add(waits, time.Duration(tries)*(7*v.Timeout+5*time.Minute))
	}
	perTry := s.Queue.Delay + 30*time.Second + v.Lease
	return add(add(runs, waits), time.Duration(tries)*perTry/4+20*perTry)
}

// shortest returns the shortest retention that the queue has.
func (s *scenario) shortest() time.Duration {
	shortest := cmp.Or(s.Queue.Retention, 96*time.Hour)
	for _, c := range s.Changes {
		shortest = min(shortest, cmp.Or(c.Retention, shortest))
	}
	return shortest
}

// longest returns the longest retention that the queue has.
func (s *scenario) longest() time.Duration {
	longest := cmp.Or(s.Queue.Retention, 96*time.Hour)
	for _, c := range s.Changes {
		longest = max(longest, c.Retention)
	}
	return longest
}

func add(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// namesAttempts reports whether the policy of a version limits attempts by itself.
func (v settings) namesAttempts() bool {
	var p retry.Policy
	_ = p.UnmarshalText([]byte(v.Retry))
	return p.MaxAttempts != 0
}

// policy returns the policy of a version.
func (v settings) policy() retry.Policy {
	var p retry.Policy
	_ = p.UnmarshalText([]byte(v.Retry)) // a text that is not valid is found by New
	return p.WithDefaults()
}

// kills reports whether a message kills its process.
func (s *scenario) kills() bool {
	for _, m := range s.Messages {
		for _, st := range m.Steps {
			if st.Result == kill {
				return true
			}
		}
	}
	return false
}
