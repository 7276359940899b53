package simulate_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// shop is processes with three queues, which have fewer handlers than these need: orders before mails
// and reports, which take turns three to one.
func shop(t *testing.T) simulate.Scenario {
	t.Helper()
	return simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 4000}, Policy: policy(t, "constant(2s) attempts=3"), Seed: 4,
		Handler: simulate.Handler{Takes: simulate.Exponential(100 * time.Millisecond)}, Fleet: simulate.Fleet{Consumers: 2, Concurrency: 5, Weight: 3},
		Pool: []simulate.Pooled{
			{Name: "orders", Priority: 1, Traffic: simulate.Traffic{Rate: 40, For: 40 * time.Second, Bytes: 100_000}, Policy: &retry.Policy{MaxAttempts: 1}, Handler: &simulate.Handler{Fails: []float64{0.25}}},
			{Name: "reports", Traffic: simulate.Traffic{Backlog: 4000}},
		},
	}
}

// TestPool: the queue of a higher priority is served as if it were nearly alone, those of one priority
// by their weights, and each has its own policy and handler.
func TestPool(t *testing.T) {
	s := shop(t)
	s.Horizon = 40 * time.Second
	r := run(t, s)
	if len(r.Queues) != 3 {
		t.Fatalf("the queues are %+v", r.Queues)
	}
	own, orders, reports := r.Queues[0], r.Queues[1], r.Queues[2]
	if own.Name != "main" || own.Weight != 3 || orders.Name != "orders" || orders.Priority != 1 || reports.Weight != 1 {
		t.Errorf("the queues are %+v", r.Queues)
	}
	if ratio := float64(own.Attempts) / float64(reports.Attempts); ratio < 2.7 || ratio > 3.3 || own.Messages.Left == 0 {
		t.Errorf("%d attempts of weight 3, %d of weight 1, ratio %.2f", own.Attempts, reports.Attempts, ratio)
	}
	if orders.Messages.Left > 25 || orders.Wait.P99 > 500*time.Millisecond || own.Wait.P99 < 30*time.Second {
		t.Errorf("%d orders are left, which wait %v, and the others %v", orders.Messages.Left, orders.Wait.P99, own.Wait.P99)
	}
	if m := orders.Messages; m.Dead < m.Arrived/6 || m.Dead > m.Arrived/3 || own.Messages.Dead+reports.Messages.Dead > 0 {
		t.Errorf("%+v; want a quarter of the orders given up after one attempt, and no others", r.Queues)
	}
	if reports.PeakOpen < 3000 || reports.Oldest < 35*time.Second || orders.Oldest > time.Second {
		t.Errorf("%+v; want reports to be as old as the simulation, and orders young", r.Queues)
	}
}

// TestPoolAddsUp: the figures of all queues together are the sums of those of each, whatever happens,
// and a seed gives the same result again.
func TestPoolAddsUp(t *testing.T) {
	s := shop(t)
	s.Handler.Fails, s.Handler.Permanent = []float64{0.3}, 0.02
	s.Dependency = simulate.Dependency{Capacity: 60, Outages: []simulate.Outage{{At: 20 * time.Second, For: 15 * time.Second}, {At: 50 * time.Second, For: 5 * time.Second, Share: 0.5}}}
	s.Fleet.Restarts = []simulate.Restart{{At: 10 * time.Second, Consumers: 1}, {At: 30 * time.Second, Down: time.Second}}
	for name, change := range map[string]func(*simulate.Scenario){
		"plain":  func(*simulate.Scenario) {},
		"a lane": func(s *simulate.Scenario) { s.Fleet.RetryLane = simulate.RetryLane{Weight: 1} },
		"batch":  func(s *simulate.Scenario) { s.Fleet.Batch = simulate.Batch{Size: 4, Linger: 100 * time.Millisecond} },
		"FIFO":   func(s *simulate.Scenario) { s.Queue.FIFO = true },
	} {
		one := s
		change(&one)
		r := run(t, one)
		var sum simulate.Messages
		attempts, peak, cleared := 0, 0, make([]time.Duration, 2)
		for _, q := range r.Queues {
			sum.Arrived += q.Messages.Arrived
			sum.Done += q.Messages.Done
			sum.Dead += q.Messages.Dead
			sum.Expired += q.Messages.Expired
			sum.Left += q.Messages.Left
			attempts += q.Attempts
			peak = max(peak, q.PeakOpen)
			for i, d := range q.Cleared {
				cleared[i] = max(cleared[i], d)
			}
			if m := q.Messages; m.Arrived != m.Done+m.Dead || q.Latency.Count != m.Done || q.Wait.Count != m.Arrived {
				t.Errorf("%s, %s: %+v, %d waits, %d latencies", name, q.Name, m, q.Wait.Count, q.Latency.Count)
			}
		}
		if sum != r.Messages || attempts != r.Attempts.Started || r.Stop != simulate.StopSettled || peak > r.PeakOpen || r.Messages.Dead == 0 {
			t.Errorf("%s: %+v and %d attempts in all, %+v and %d of the queues; %v", name, r.Messages, r.Attempts.Started, sum, attempts, r.Stop)
		}
		for i, o := range r.Outages {
			if cleared[i] != o.Cleared || o.Cleared <= 0 {
				t.Errorf("%s: outage %d is cleared after %v, of the queues after %v", name, i, o.Cleared, cleared[i])
			}
		}
		if name == "plain" && !reflect.DeepEqual(r, run(t, one)) {
			t.Error("a seed has two results")
		}
	}
}

// TestPoolIsChecked: what is wrong with a pool is named, with the remedy.
func TestPoolIsChecked(t *testing.T) {
	some := simulate.Traffic{Backlog: 1}
	forever := policy(t, "constant(1s) attempts=unlimited age=unlimited")
	for want, s := range map[string]simulate.Scenario{
		"fleet.weight is 2: it is the queue's part among those of a pool":         {Fleet: simulate.Fleet{Weight: 2}},
		"fleet.weight is 1001: set 1 to 1000":                                     {Fleet: simulate.Fleet{Weight: 1001}, Pool: []simulate.Pooled{{Name: "a", Traffic: some}}},
		"pool[0].name is empty: set a name":                                       {Pool: []simulate.Pooled{{Traffic: some}}},
		`pool[0].name is "main": another queue has this name`:                     {Pool: []simulate.Pooled{{Name: "main", Traffic: some}}},
		`pool[1].name is "a": another queue has this name`:                        {Pool: []simulate.Pooled{{Name: "a", Traffic: some}, {Name: "a", Traffic: some}}},
		"pool[0].weight is -1: set 1 to 1000":                                     {Pool: []simulate.Pooled{{Name: "a", Traffic: some, Weight: -1}}},
		"pool[0].priority is 3000000000: set":                                     {Pool: []simulate.Pooled{{Name: "a", Traffic: some, Priority: 3_000_000_000}}},
		`pool[0], "a": traffic is empty: set traffic.backlog`:                     {Pool: []simulate.Pooled{{Name: "a"}}},
		`pool[0], "a": traffic.rate is 5: it never ends`:                          {Pool: []simulate.Pooled{{Name: "a", Traffic: simulate.Traffic{Rate: 5}}}},
		`pool[0], "a": handler.always is 2: set a share`:                          {Pool: []simulate.Pooled{{Name: "a", Traffic: some, Handler: &simulate.Handler{Always: 2}}}},
		`pool[0], "a": policy is "constant(1s)`:                                   {Pool: []simulate.Pooled{{Name: "a", Traffic: some, Policy: &forever, Handler: &simulate.Handler{Always: 0.1}}}},
		"the length of pool is 21: set 0 to 20":                                   {Pool: make([]simulate.Pooled, 21)},
		"the length of pool is 1: a fluid simulation, which more than":            {Fluid: true, Pool: []simulate.Pooled{{Name: "a", Traffic: some}}},
		"the length of pool is 2: a fluid simulation, which more than 10000000 m": {Pool: []simulate.Pooled{{Name: "a", Traffic: simulate.Traffic{Backlog: 5_000_000}}, {Name: "b", Traffic: simulate.Traffic{Backlog: 5_000_000}}}},
	} {
		s.Traffic = some
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %.600v, want %q", err, want)
		}
	}
}
