package simulate_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/simulate"
)

// TestFluidMeetsMachines simulates scenarios once with single messages and once with expected numbers, and
// bounds how far the figures are apart. Times to recover from an outage differ by a share of its
// length, or of their own if that is longer; few messages by one of 500.
func TestFluidMeetsMachines(t *testing.T) {
	for _, c := range fluidScenarios[:race.Fewer(len(fluidScenarios), 2)] {
		c.scenario.Policy = policy(t, c.policy)
		c.scenario.Seed = 1
		machines := run(t, c.scenario)
		c.scenario.Fluid = true
		fluid := run(t, c.scenario)
		t.Logf("%s", c.name)
		compare := func(what string, one, other, scale, most float64) {
			off := math.Abs(one-other) / max(scale, 1)
			t.Logf("    %-10s %12.6g %12.6g  %5.1f %%", what, one, other, 100*off)
			if off > most {
				t.Errorf("%s: %s is %g with single messages and %g with expected numbers, %.1f %% apart, want %.0f %% at most", c.name, what, one, other, 100*off, 100*most)
			}
		}
		arrived := float64(machines.Messages.Arrived)
		compare("arrived", arrived, float64(fluid.Messages.Arrived), arrived, 0.03)
		compare("done", float64(machines.Messages.Done), float64(fluid.Messages.Done), arrived, 0.03)
		compare("dead", float64(machines.Messages.Dead), float64(fluid.Messages.Dead), arrived, 0.03)
		compare("attempts", float64(machines.Attempts.Started), float64(fluid.Attempts.Started), float64(machines.Attempts.Started), 0.1)
		compare("wasted", float64(machines.Attempts.Wasted()), float64(fluid.Attempts.Wasted()), float64(machines.Attempts.Started), 0.1)
		compare("backlog", float64(machines.PeakOpen), float64(fluid.PeakOpen), max(500, float64(machines.PeakOpen)), 0.1)
		compare("in flight", float64(machines.PeakInFlight), float64(fluid.PeakInFlight), max(500, float64(machines.PeakInFlight)), 0.1)
		if !c.aged {
			compare("last", machines.Last.Seconds(), fluid.Last.Seconds(), machines.Last.Seconds(), 0.1)
		}
		compare("mean wait", machines.Wait.Mean.Seconds(), fluid.Wait.Mean.Seconds(), machines.Wait.Mean.Seconds(), 0.2)
		compare("mean done", machines.Latency.Mean.Seconds(), fluid.Latency.Mean.Seconds(), machines.Latency.Mean.Seconds(), 0.2)
		compare("p99 done", machines.Latency.P99.Seconds(), fluid.Latency.P99.Seconds(), machines.Latency.P99.Seconds(), 0.35)
		compare("cost", machines.Cost()*1e6, fluid.Cost()*1e6, machines.Cost()*1e6, 0.3)
		for i, v := range machines.Outages {
			compare("at its end", float64(v.Backlog), float64(fluid.Outages[i].Backlog), float64(v.Backlog), 0.1)
			compare("recovered", v.Recovered.Seconds(), fluid.Outages[i].Recovered.Seconds(), max(v.For, v.Recovered).Seconds(), 0.2)
			compare("cleared", v.Cleared.Seconds(), fluid.Outages[i].Cleared.Seconds(), max(v.For, v.Cleared).Seconds(), 0.3)
		}
	}
}

var fluidScenarios = []struct {
	name, policy string
	scenario     simulate.Scenario
	aged         bool // the policy has an age, which is known of a message and not of a rate
}{
	{name: "failures", policy: "exponential(base=1s,max=5m) attempts=6", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 50, For: 30 * time.Minute}, Handler: simulate.Handler{Fails: []float64{0.3}, Permanent: 0.01, Always: 0.02},
	}},
	{name: "a backlog", policy: "exponential(base=1s,max=1m) attempts=4", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 20_000}, Handler: simulate.Handler{Takes: simulate.Exponential(200 * time.Millisecond), Fails: []float64{0.5, 0.2}},
	}},
	{name: "an outage without a breaker", policy: "exponential(base=2s,max=5m) attempts=12", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 20, For: 40 * time.Minute}, Handler: simulate.Handler{Takes: simulate.Lognormal(80*time.Millisecond, time.Second), Fails: []float64{0.05}},
		Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 10 * time.Minute, For: 10 * time.Minute}}}, Fleet: simulate.Fleet{Consumers: 2, NoBreaker: true},
	}},
	{name: "an outage with a breaker", policy: "exponential(base=2s,max=5m) attempts=12", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 20, For: 40 * time.Minute}, Handler: simulate.Handler{Takes: simulate.Lognormal(80*time.Millisecond, time.Second), Fails: []float64{0.05}},
		Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 10 * time.Minute, For: 10 * time.Minute}}}, Fleet: simulate.Fleet{Consumers: 2},
	}},
	{name: "an outage and a capacity", policy: "exponential(base=2s,max=5m) attempts=12", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 10, For: 80 * time.Minute}, Handler: simulate.Handler{Takes: simulate.Lognormal(80*time.Millisecond, time.Second), Fails: []float64{0.05}},
		Dependency: simulate.Dependency{Capacity: 30, Outages: []simulate.Outage{{At: 20 * time.Minute, For: 15 * time.Minute}}}, Fleet: simulate.Fleet{Consumers: 2},
	}},
	{name: "the same without a breaker", policy: "exponential(base=2s,max=5m) attempts=12", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 10, For: 80 * time.Minute}, Handler: simulate.Handler{Takes: simulate.Lognormal(80*time.Millisecond, time.Second), Fails: []float64{0.05}},
		Dependency: simulate.Dependency{Capacity: 30, Outages: []simulate.Outage{{At: 20 * time.Minute, For: 15 * time.Minute}}}, Fleet: simulate.Fleet{Consumers: 2, NoBreaker: true},
	}},
	{name: "a partial outage, long runs", policy: "constant(1m) attempts=5", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 20, For: 40 * time.Minute}, Handler: simulate.Handler{Takes: simulate.Exponential(10 * time.Second)},
		Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 20 * time.Minute, For: 10 * time.Minute, Share: 0.6, Takes: time.Second}}}, Fleet: simulate.Fleet{Consumers: 5, Concurrency: 60},
	}},
	{name: "decorrelated jitter and an age", policy: "exponential(base=5s,max=10m) jitter=decorrelated attempts=unlimited age=30m", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 20, For: time.Hour}, Handler: simulate.Handler{Fails: []float64{0.2}, Always: 0.05},
	}, aged: true},
	{name: "no jitter, a burst, a rate", policy: "exponential(base=10s,max=10m) jitter=none attempts=5", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Bursts: []simulate.Burst{{At: time.Minute, Messages: 5000}}}, Handler: simulate.Handler{Fails: []float64{0.4}}, Fleet: simulate.Fleet{Consumers: 2, Rate: 20},
	}},
	{name: "overload until a horizon", policy: "exponential(base=1s,max=5m) attempts=6", scenario: simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 150}, Horizon: 30 * time.Minute, Handler: simulate.Handler{Fails: []float64{0.1}},
	}},
}

// TestFluidClosedForms holds expected numbers against the formulas of queues and of retries.
func TestFluidClosedForms(t *testing.T) {
	near := func(what string, got, want, most float64) {
		t.Helper()
		if math.Abs(got/want-1) > most {
			t.Errorf("%s: %g, want %g to %g", what, got, want, most)
		}
	}
	// There are n attempts, and each fails with chance e.
	const e, n = 0.4, 5
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 1000, For: 2 * time.Hour}, Policy: policy(t, "exponential(base=1s,max=1m) attempts=5"),
		Handler: simulate.Handler{Fails: []float64{e}}, Fleet: simulate.Fleet{Consumers: 30}, Fluid: true,
	})
	near("attempts a message", float64(r.Attempts.Started)/float64(r.Messages.Arrived), (1-math.Pow(e, n))/(1-e), 1e-4)
	near("dead letters", float64(r.Messages.Dead)/float64(r.Messages.Arrived), math.Pow(e, n), 1e-4)

	// c handlers keep up with less than c/takes attempts a second, and no more.
	for _, load := range []float64{0.5, 0.99, 1.01, 1.5} {
		const handlers, takes = 20, 0.5
		rate := load * handlers / takes * (1 - e)
		r := run(t, simulate.Scenario{
			Traffic: simulate.Traffic{Rate: rate}, Horizon: 5 * time.Hour, Policy: policy(t, "constant(10s) jitter=none attempts=unlimited age=unlimited"),
			Handler: simulate.Handler{Takes: simulate.Exponential(500 * time.Millisecond), Fails: []float64{e}}, Fleet: simulate.Fleet{Consumers: 2}, Fluid: true,
		})
		atOnce := rate * (takes + e/(1-e)*10 + e/(1-e)*takes) // those that run and that wait, by Little's law
		if load < 1 {
			near("messages in the queue below the capacity", float64(r.PeakOpen), atOnce, 0.1)
			continue
		}
		near("attempts above the capacity", float64(r.Attempts.Started)/r.Ended.Seconds(), handlers/takes, 0.01)
		grows := (rate - handlers/takes*(1-e)) * r.Ended.Seconds()
		if left := float64(r.Messages.Left); left < grows || left > grows+3*atOnce {
			t.Errorf("%g messages are left at a load of %g, want %g and those that wait", left, load, grows)
		}
	}

	// The backlog of an outage of T is cleared in rate*T/(mu*(1-e)-rate), if all of its messages wait.
	const rate, mu, fails = 300.0, 1000.0, 0.1
	down := 10 * time.Minute
	r = run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Rate: rate, For: time.Hour}, Policy: policy(t, "constant(1s) attempts=unlimited age=unlimited"), Handler: simulate.Handler{Fails: []float64{fails}},
		Fleet:      simulate.Fleet{Consumers: 10, Probe: true},
		Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 10 * time.Minute, For: down}}}, Fluid: true,
	})
	// The fleet finds the end of the outage, and ramps up, in some seconds.
	if cleared, want := r.Outages[0].Recovered.Seconds(), rate*down.Seconds()/(mu*(1-fails)-rate); cleared < want || cleared > want+60 {
		t.Errorf("the backlog is cleared in %g s, want %g s and the time of a ramp", cleared, want)
	}
}

// TestFluidIsAFunction: the same scenario has the same result, and one that is too large for single
// messages is fluid without being told.
// TestFluidOfShortTimes checks requests in a second where steps are shorter than one, and the requests in an outage, of
// which a step has less than one.
func TestFluidOfShortTimes(t *testing.T) {
	for _, horizon := range []time.Duration{900 * time.Millisecond, 1500 * time.Millisecond, 20 * time.Second, 61500 * time.Millisecond} {
		s := simulate.Scenario{Traffic: simulate.Traffic{Rate: 50, Even: true}, Horizon: horizon, Fleet: simulate.Fleet{Concurrency: 50}}
		want := run(t, s).PeakRequests
		s.Fluid = true
		r := run(t, s)
		highest := 0
		for _, b := range r.Series {
			highest = max(highest, b.Peak)
		}
		if r.PeakRequests < want-3 || r.PeakRequests > want+3 || highest != r.PeakRequests {
			t.Errorf("until %v: a peak of %d requests in a second, %d by the series, want about %d", horizon, r.PeakRequests, highest, want)
		}
	}
	s := simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 20, Even: true}, Horizon: 20 * time.Second, Policy: policy(t, "constant(1h) attempts=2"),
		Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 5 * time.Second, For: 5 * time.Second}}},
		Fleet:      simulate.Fleet{Concurrency: 50, NoBreaker: true},
	}
	s.Fluid = true
	for _, rate := range []float64{2, 20, 33} { // of which a step of 200 ms has 0.4, 4 and 6.6
		s.Traffic.Rate = rate
		o := run(t, s).Outages[0]
		if want := 5 * rate; math.Abs(float64(o.Requests)-want) > 2+want/20 || math.Abs(float64(o.Peak)-rate) > 2 {
			t.Errorf("%v a second: %d requests in an outage of 5s, then %d in a second at most; want %v and %v", rate, o.Requests, o.Peak, want, rate)
		}
	}
}

func TestFluidIsAFunction(t *testing.T) {
	s := simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 1e9 / 86400, For: 24 * time.Hour}, Policy: policy(t, "exponential(base=1s,max=15m) attempts=12"),
		Handler:    simulate.Handler{Fails: []float64{0.02}, Always: 0.001},
		Dependency: simulate.Dependency{Capacity: 20_000, Outages: []simulate.Outage{{At: 9 * time.Hour, For: 20 * time.Minute}}},
		Fleet:      simulate.Fleet{Consumers: 200, Concurrency: 20},
	}
	one, again := run(t, s), run(t, s)
	if !reflect.DeepEqual(one, again) {
		t.Error("a scenario has two results")
	}
	if !one.Scenario.Fluid || one.Messages.Arrived != 1_000_000_000 || one.Stop != simulate.StopSettled {
		t.Errorf("fluid %v, %+v, %v; want a billion messages that are settled", one.Scenario.Fluid, one.Messages, one.Stop)
	}
	v := one.Outages[0]
	if v.Backlog < 13e6 || v.Backlog > 15e6 || v.Cleared <= 0 || v.Cleared > 2*time.Hour {
		t.Errorf("%+v; want a backlog of 20 minutes of traffic, which the capacity clears", v)
	}
}
