package simreport

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

const (
	// fewAttempts is the least number of attempts in a period from which the failing share is known.
	fewAttempts = 20
	// stalled is the number of attempts per arriving message below which the breaker is taken to be
	// open, if nearly all of them fail or none is made.
	stalled = 0.5
)

// Fit is a scenario that explains an incident.
type Fit struct {
	*Incident
	Fails   float64           // the share of attempts that fail outside of outages, at first
	Changes []simulate.Change // of that share, of all attempts
	Outages []simulate.Outage
	Takes   time.Duration // of a run, outside of outages; zero: not measured
}

// FitTo finds the scenario of an incident. An outage consists of consecutive periods in which the
// failing share is nearer to all attempts than to the usual share, or in which hardly any attempts
// are made although messages arrive. Periods without arrivals and with hardly any attempts are ignored.
// The share that fails outside of outages may change: see segments.
func FitTo(in *Incident) *Fit {
	f := &Fit{Incident: in}
	usual := in.usual()
	down := make([]bool, len(in.Periods))
	for i, p := range in.Periods {
		down[i] = p.failing() > usual+(1-usual)/2 &&
			(p.Attempts >= fewAttempts || p.Arrived >= fewAttempts && float64(p.Attempts) < stalled*float64(p.Arrived))
	}
	f.fitShares(down)
	for i := 0; i < len(down); i++ {
		if start := i; down[i] {
			for i < len(down) && down[i] {
				i++
			}
			f.Outages = append(f.Outages, f.outageOf(start, i))
		}
	}
	runs, busy := 0, 0.0
	for i, p := range in.Periods {
		if !down[i] {
			runs += p.Attempts
			busy += float64(p.Attempts) * p.Takes.Seconds()
		}
	}
	if in.HasTakes && runs > 0 {
		f.Takes = max(time.Millisecond, ofSeconds(busy/float64(runs)).Round(time.Millisecond))
	}
	return f
}

// usual returns the median of the failing shares that are known.
func (in *Incident) usual() float64 {
	var shares []float64
	for _, p := range in.Periods {
		if p.Attempts >= fewAttempts {
			shares = append(shares, p.failing())
		}
	}
	if len(shares) == 0 {
		return 0
	}
	slices.Sort(shares)
	return shares[len(shares)/2]
}

// fitShares finds the share that fails outside of outages, and its changes. A period beside an outage
// may have had a part of it, and counts only if there are no others.
func (f *Fit) fitShares(down []bool) {
	var usable, beside []counts
	for i, p := range f.Periods {
		c := counts{i, p.Attempts, p.Attempts - p.Done}
		switch {
		case down[i] || p.Attempts == 0:
		case i > 0 && down[i-1], i+1 < len(down) && down[i+1]:
			beside = append(beside, c)
		default:
			usable = append(usable, c)
		}
	}
	if len(usable) == 0 {
		usable = beside
	}
	for i, s := range segments(usable) {
		share := math.Round(s.share*1000) / 1000
		switch at := time.Duration(s.period) * f.Every; {
		case i == 0:
			f.Fails = share
		case share != f.failsAt(at):
			f.Changes = append(f.Changes, simulate.Change{At: at, Fails: []float64{share}})
		}
	}
}

// failsAt returns the share that fails at a time.
func (f *Fit) failsAt(at time.Duration) float64 {
	share := f.Fails
	for _, c := range f.Changes {
		if c.At <= at {
			share = c.Fails[0]
		}
	}
	return share
}

// outageOf returns the outage of the periods from one to another.
func (f *Fit) outageOf(from, to int) simulate.Outage {
	o := simulate.Outage{At: time.Duration(from) * f.Every, For: time.Duration(to-from) * f.Every, Share: 1}
	var of Period // the sums
	for _, p := range f.Periods[from:to] {
		of.Attempts += p.Attempts
		of.Done += p.Done
		o.Takes = max(o.Takes, p.Takes)
	}
	if usual := f.failsAt(o.At); usual < 1 && of.Attempts > 0 {
		o.Share = max(0.01, min(1, (of.failing()-usual)/(1-usual)))
	}
	o.Share = math.Round(o.Share*1000) / 1000
	return o
}

// failing returns the share of attempts that fail.
func (p Period) failing() float64 {
	if p.Attempts == 0 {
		return 1
	}
	return max(0, 1-float64(p.Done)/float64(p.Attempts))
}

// Apply sets in s the traffic, the share of failing attempts and its changes, the outages and, if they were measured,
// the durations of runs that were found.
func (f *Fit) Apply(s *simulate.Scenario) {
	s.Traffic.Series, s.Traffic.Every, s.Bucket = make([]int, len(f.Periods)), f.Every, f.Every
	for i, p := range f.Periods {
		s.Traffic.Series[i] = p.Arrived
	}
	s.Handler.Fails, s.Handler.Changes = []float64{f.Fails}, f.Changes
	s.Dependency.Outages = f.Outages
	if f.Takes > 0 {
		s.Handler.Takes = simulate.Exponential(f.Takes)
	}
}

// Beside returns the fit, with the measured and the simulated values of the same periods.
func (f *Fit) Beside(r *simulate.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "replay      %d periods of %v from %s\n", len(f.Periods), short(f.Every), f.Start.UTC().Format(time.RFC3339))
	fmt.Fprintf(&b, "fit         %.3g %% of the attempts fail", f.Fails*100)
	for _, c := range f.Changes {
		fmt.Fprintf(&b, ", %.3g %% from %v", c.Fails[0]*100, short(c.At))
	}
	if f.Takes > 0 {
		fmt.Fprintf(&b, "; a run takes %v", f.Takes)
	}
	for _, o := range f.Outages {
		fmt.Fprintf(&b, "; an outage of %v at %v, of %.3g %% of the requests", short(o.For), short(o.At), o.Share*100)
	}
	measured, simulated, off := f.totals(r)
	fmt.Fprintf(&b, "\n\n            %12s %12s\n", "measured", "simulated")
	row := func(name, one, other, note string) {
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(fmt.Sprintf("%-11s %12s %12s  %s", name, one, other, note), " "))
	}
	note := ""
	if measured.Attempts > 0 {
		note = fmt.Sprintf("a period differs by %.1f %%", 100*off)
	}
	row("attempts", grouped(measured.Attempts), grouped(simulated.Attempts), note)
	row("done", grouped(measured.Done), grouped(simulated.Done), "")
	if f.HasDead {
		row("dead", grouped(measured.Dead), grouped(simulated.Dead), "")
	}
	if f.HasOldest {
		row("oldest", short(measured.Oldest), short(simulated.Oldest), "at the end of a period, at the most")
	}
	return b.String() + "\n"
}

// totals returns the sums of what was measured and simulated, the oldest message at the end of a
// period, and by which share of the attempts a period differs.
func (f *Fit) totals(r *simulate.Result) (measured, simulated Period, off float64) {
	for i, p := range f.Periods {
		var got simulate.Bucket
		if i < len(r.Series) {
			got = r.Series[i]
		}
		measured.Attempts += p.Attempts
		measured.Done += p.Done
		measured.Dead += p.Dead
		measured.Oldest = max(measured.Oldest, p.Oldest)
		simulated.Attempts += got.Started
		simulated.Done += got.Done
		simulated.Dead += got.Dead
		simulated.Oldest = max(simulated.Oldest, got.Oldest)
		off += math.Abs(float64(p.Attempts - got.Started))
	}
	return measured, simulated, off / float64(max(measured.Attempts, 1))
}
