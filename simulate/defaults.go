package simulate

import (
	"math"
	"time"

	"github.com/reprise-sqs/reprise/plan"
)

// The limits of a [Scenario].
const (
	// MaxMessages is how many messages may arrive one by one, and MaxFluid how many may in a Fluid
	// scenario.
	MaxMessages = 10_000_000
	MaxFluid    = 1_000_000_000_000
	// MaxHorizon is the longest simulated time.
	MaxHorizon = 366 * 24 * time.Hour
	// MaxBuckets is how many periods [Result.Series] may have.
	MaxBuckets = 10_000

	maxConsumers   = 1000
	maxConcurrency = 100_000
	maxBatch       = 10_000
	maxRate        = 1e6 // messages a second
	maxListed      = 10_000
	maxCount       = 2_000_000_000 // of one field, which 32 bits can hold

	maxPooled       = 20   // queues beside the first
	maxChanges      = 1000 // of the chances of failure
	maxFluidOutages = 20
)

// WithDefaults returns the scenario with every default filled in, as it is simulated.
func (s Scenario) WithDefaults() Scenario {
	fill(&s.Traffic.Bytes, 1024)
	fill(&s.Queue.Retention, plan.DefaultRetention)
	fill(&s.Queue.InFlightQuota, plan.MaxInFlight)
	if s.Queue.FIFO {
		fill(&s.Queue.Groups, 100)
		fill(&s.Fleet.Waits, "hold")
	}
	fill(&s.Handler.Takes, Constant(100*time.Millisecond))
	if s.Dependency.Capacity > 0 {
		fill(&s.Dependency.Burst, max(s.Dependency.Capacity, 1))
		fill(&s.Dependency.Rejects, 10*time.Millisecond)
	}
	s.Dependency.Outages = append([]Outage(nil), s.Dependency.Outages...)
	for i := range s.Dependency.Outages {
		fill(&s.Dependency.Outages[i].Share, 1)
	}
	f := &s.Fleet
	fill(&f.Consumers, 1)
	fill(&f.Concurrency, 10)
	fill(&f.Prefetch, max(10, f.Batch.Size))
	if f.Batch.Size > 1 {
		fill(&f.Batch.Linger, time.Second)
	}
	fill(&f.Lease, time.Minute)
	fill(&f.LongPoll, 20*time.Second)
	fill(&f.Via, plan.ViaAuto.String())
	fill(&f.Threshold, 20)
	f.Restarts = append([]Restart(nil), f.Restarts...)
	for i := range f.Restarts {
		fill(&f.Restarts[i].Consumers, f.Consumers)
	}
	fill(&s.Network.Latency, 2*time.Millisecond)
	fill(&s.Network.Spread, time.Millisecond)
	s.Policy.MaxAttempts = plan.MaxAttempts(s.Policy, s.Queue.plan())
	s.Policy = s.Policy.WithDefaults()
	if len(s.Pool) > 0 {
		fill(&s.Fleet.Weight, 1)
		s.Pool = s.poolWithDefaults()
	}
	s.Fluid = s.Fluid || s.messages() > MaxMessages
	return s
}

// fill sets a field that is zero.
func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// plan is what package plan knows of the queue.
func (q Queue) plan() plan.Queue {
	return plan.Queue{FIFO: q.FIFO, Retention: q.Retention, Delay: q.Delay, MaxReceives: q.MaxReceives, Visibility: visibility}
}

// messages is how many messages are expected to arrive until the horizon.
func (s *Scenario) messages() float64 {
	t := &s.Traffic
	n := float64(t.Backlog) + t.Rate*t.until(s.Horizon).Seconds()
	for _, b := range t.Bursts {
		n += float64(b.Messages)
	}
	for _, k := range t.Series {
		n += float64(k)
	}
	for i := range s.Pool {
		n += (&Scenario{Traffic: s.Pool[i].Traffic, Horizon: s.Horizon}).messages()
	}
	return n
}

// until is when the messages of Rate end.
func (t *Traffic) until(horizon time.Duration) time.Duration {
	if t.For > 0 {
		return t.For
	}
	return horizon
}

// attemptsOf is how many attempts a message is expected to need outside of outages, if each fails with
// these chances.
func (s *Scenario) attemptsOf(fails []float64) float64 {
	most := s.Policy.MaxAttempts
	if most < 0 {
		most = math.MaxInt32
	}
	usual, always, reached := 0.0, 0.0, 1.0
	for n := 1; n <= most && n <= maxListed; n++ {
		usual += reached
		always++
		if reached *= chanceOf(fails, n); reached < 1e-9 && s.Handler.Always == 0 {
			break
		}
	}
	return s.Handler.Permanent + (1-s.Handler.Permanent)*((1-s.Handler.Always)*usual+s.Handler.Always*always)
}

// meanRun is how long a run keeps a handler busy, as a mean.
func (s *Scenario) meanRun() time.Duration {
	takes := s.Handler.Takes.Mean()
	if s.Fleet.Timeout > 0 {
		takes = min(takes, s.Fleet.Timeout)
	}
	return takes
}

// bottleneck is how many attempts a second can be made in the long run, and which field limits it.
func (s *Scenario) bottleneck() (rate float64, field string) {
	each := float64(max(1, s.Fleet.Batch.Size)) // messages of a run
	rate, field = each*float64(s.Fleet.Consumers*s.Fleet.Concurrency)/s.meanRun().Seconds(), "fleet.concurrency"
	if r := s.Fleet.Rate * float64(s.Fleet.Consumers); r > 0 && r < rate {
		rate, field = r, "fleet.rate"
	}
	if c := each * s.Dependency.Capacity; c > 0 && c < rate {
		rate, field = c, "dependency.capacity"
	}
	return rate, field
}
