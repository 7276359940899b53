package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// TestFiguresAreOfTheTrace adds up the trace of every message, and holds the figures of the result
// against the sums.
func TestFiguresAreOfTheTrace(t *testing.T) {
	down := simulate.Outage{At: 20 * time.Second, For: 15 * time.Second, Share: 0.8, Takes: 300 * time.Millisecond}
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 3000}, Policy: policy(t, "exponential(base=1s,max=1m) attempts=5"), Trace: 3000, Bucket: 10 * time.Second,
		Handler: simulate.Handler{Takes: simulate.Exponential(100 * time.Millisecond), Fails: []float64{0.3}, Permanent: 0.05},
		Fleet:   simulate.Fleet{NoBreaker: true}, Dependency: simulate.Dependency{Outages: []simulate.Outage{down}},
		Network: simulate.Network{Spread: -1},
	})
	type tally struct{ attempts, inOutage, done, dead, peak, after int }
	var sum tally
	seconds, perMessage := make(map[time.Duration]int), make(map[int]int)
	first, ended := make(map[int]time.Duration), make(map[int]time.Duration)
	var firsts, ends []time.Duration
	last, cleared := time.Duration(0), time.Duration(0)
	series := make(map[time.Duration]simulate.Bucket)
	for _, a := range r.Trace {
		sum.attempts++
		perMessage[a.Message]++
		second := a.Started.Truncate(time.Second)
		seconds[second]++
		sum.peak = max(sum.peak, seconds[second])
		if a.Started >= down.At && a.Started < down.At+down.For {
			sum.inOutage++
		}
		if second+time.Second > down.At+down.For {
			sum.after = max(sum.after, seconds[second])
		}
		if a.Attempt == 1 {
			first[a.Message] = a.Started
			firsts = append(firsts, a.Started)
		}
		b := series[a.Started.Truncate(r.Scenario.Bucket)]
		b.Started++
		series[a.Started.Truncate(r.Scenario.Bucket)] = b
		b = series[a.Ended.Truncate(r.Scenario.Bucket)]
		switch {
		case a.Succeeded:
			sum.done++
			b.Done++
			ends = append(ends, a.Ended)
			ended[a.Message] = a.Ended
		default:
			b.Failed++
		}
		if a.Outcome == "dead-letter" {
			sum.dead++
			ended[a.Message] = a.Ended
		}
		series[a.Ended.Truncate(r.Scenario.Bucket)] = b
		last = max(last, a.Ended)
	}
	for _, at := range ended {
		cleared = max(cleared, at-down.At-down.For)
	}
	v := r.Outages[0]
	if got := (tally{r.Attempts.Started, v.Requests, r.Messages.Done, r.Messages.Dead, r.PeakRequests, v.Peak}); got != sum {
		t.Errorf("the result has %+v, its trace %+v", got, sum)
	}
	if share := float64(r.Attempts.Unavailable) / float64(v.Requests); share < 0.75 || share > 0.85 {
		t.Errorf("%.2f of the requests in an outage fail, want 0.8", share)
	}
	if r.Last != last || r.Ended < last || r.Wait.Most != slices.Max(firsts) || r.Wait.Count != len(firsts) || r.Latency.Most != slices.Max(ends) || r.Latency.Count != len(ends) {
		t.Errorf("last %v, waits %+v, latencies %+v; want %v, %v and %v", r.Last, r.Wait, r.Latency, last, slices.Max(firsts), slices.Max(ends))
	}
	slices.Sort(ends)
	if r.Latency.Least != ends[0] || r.Latency.P50 != ends[len(ends)/2] || r.Latency.P99 != ends[len(ends)*99/100] {
		t.Errorf("latencies %+v, want those of the trace", r.Latency)
	}
	if late := v.Cleared - cleared; late < 0 || late > time.Second { // until the dead letter is confirmed
		t.Errorf("cleared after %v, want %v", v.Cleared, cleared)
	}
	counts := make([]int, len(r.PerMessage))
	for _, n := range perMessage {
		counts[n]++
	}
	if !slices.Equal(counts, r.PerMessage) {
		t.Errorf("attempts per message %v, want %v", r.PerMessage, counts)
	}
	for _, b := range r.Series {
		if want := series[b.At]; b.Started != want.Started || b.Done != want.Done || b.Failed != want.Failed {
			t.Errorf("the period at %v has %d, %d, %d; want %d, %d, %d", b.At, b.Started, b.Done, b.Failed, want.Started, want.Done, want.Failed)
		}
	}
}

// TestCapacityIsABucket: requests are taken from a bucket of tokens that is full at first, and those
// beyond it fail after the time that a rejection takes.
func TestCapacityIsABucket(t *testing.T) {
	const capacity, burst, rejects = 20.0, 50.0, 7 * time.Millisecond
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 2000}, Policy: policy(t, "constant(1s) jitter=none attempts=unlimited"), Trace: 2000, Horizon: 30 * time.Second,
		Handler:    simulate.Handler{Takes: simulate.Constant(20 * time.Millisecond)},
		Dependency: simulate.Dependency{Capacity: capacity, Burst: burst, Rejects: rejects},
		Fleet:      simulate.Fleet{NoBreaker: true, Concurrency: 20},
	})
	var taken []time.Duration
	for _, a := range r.Trace {
		if a.Succeeded {
			taken = append(taken, a.Started)
		} else if took := a.Ended - a.Started; took != rejects {
			t.Fatalf("a rejection takes %v, want %v", took, rejects)
		}
	}
	slices.Sort(taken)
	if first := taken[0]; taken[int(burst)-1]-first > time.Second {
		t.Errorf("the burst is taken within %v, want a second", taken[int(burst)-1]-first)
	}
	for i, at := range taken {
		if most := burst + capacity*at.Seconds(); float64(i+1) > most+1e-6 {
			t.Fatalf("%d requests are taken until %v, want %.1f", i+1, at, most)
		}
	}
	if want := burst + capacity*25; float64(len(taken)) < want {
		t.Errorf("%d requests are taken in 30 s, want %v or more", len(taken), want)
	}
	if r.Attempts.Rejected != len(r.Trace)-len(taken) || r.Attempts.Wasted() != r.Attempts.Rejected {
		t.Errorf("%+v, want %d rejections, all of them wasted", r.Attempts, len(r.Trace)-len(taken))
	}
}

// TestSameLuck: what happens to an attempt of a message belongs to the message, not to the run.
func TestSameLuck(t *testing.T) {
	type try struct{ message, attempt int }
	luck := func(text string, concurrency int) map[try]simulate.Traced {
		all := make(map[try]simulate.Traced)
		for _, a := range run(t, simulate.Scenario{
			Traffic: simulate.Traffic{Rate: 10, For: time.Minute}, Policy: policy(t, text), Trace: 1000, Seed: 3,
			Handler: simulate.Handler{Takes: simulate.Exponential(time.Second), Fails: []float64{0.5}}, Fleet: simulate.Fleet{Concurrency: concurrency},
		}).Trace {
			all[try{a.Message, a.Attempt}] = a
		}
		return all
	}
	one, other := luck("constant(1s) attempts=4", 5), luck("exponential(base=1s,max=1h) attempts=6", 50)
	failed := 0
	for made, a := range one {
		b, ok := other[made]
		if !ok || a.Succeeded != b.Succeeded || a.Ended-a.Started != b.Ended-b.Started || a.ID != b.ID {
			t.Fatalf("attempt %d of message %d: %+v with one policy, %+v with another", made.attempt, made.message, a, b)
		}
		if !a.Succeeded {
			failed++
		}
	}
	if share := float64(failed) / float64(len(one)); share < 0.4 || share > 0.6 {
		t.Errorf("%.2f of the attempts fail, want a half", share)
	}
}

// TestFailsByAttempt: the chance is that of the attempt's number, and the last repeats.
func TestFailsByAttempt(t *testing.T) {
	for want, fails := range map[int][]float64{1: {0}, 3: {1, 1, 0}, 5: {0.999999999, 1}} {
		r := run(t, simulate.Scenario{Traffic: simulate.Traffic{Backlog: 100}, Policy: policy(t, "constant(1s) attempts=5"), Handler: simulate.Handler{Fails: fails}})
		if len(r.PerMessage) != want+1 || r.PerMessage[want] != 100 {
			t.Errorf("of chances %v: attempts per message %v, want %d of each", fails, r.PerMessage, want)
		}
	}
}

// TestRestarts: a consumer that stops lets its runs end, one that crashes cuts them short, and while
// it is down nothing runs.
func TestRestarts(t *testing.T) {
	for _, kill := range []bool{false, true} {
		r := run(t, simulate.Scenario{
			Traffic: simulate.Traffic{Backlog: 500}, Trace: 500, Handler: simulate.Handler{Takes: simulate.Constant(time.Second)},
			Fleet: simulate.Fleet{Restarts: []simulate.Restart{{At: 10*time.Second + 500*time.Millisecond, Down: 30 * time.Second, Kill: kill}}},
		})
		if cut := map[bool]int{false: 0, true: 10}[kill]; r.Attempts.Cut != cut || r.Messages.Done != 500 {
			t.Errorf("kill %v: %+v, %+v; want %d attempts cut short, and all done", kill, r.Attempts, r.Messages, cut)
		}
		for _, a := range r.Trace {
			if a.Started > 12*time.Second && a.Started < 40*time.Second {
				t.Fatalf("kill %v: an attempt starts at %v, when no consumer runs", kill, a.Started)
			}
		}
	}
}

// TestUnits: each 64 KB of payload is billed as a request.
func TestUnits(t *testing.T) {
	for bytes, each := range map[int]int{1: 1, 64 << 10: 1, 64<<10 + 1: 2, 256 << 10: 4} {
		r := run(t, simulate.Scenario{
			Traffic: simulate.Traffic{Backlog: 20, Bytes: bytes}, Policy: policy(t, "constant(1s) attempts=2"),
			Handler: simulate.Handler{Always: 1}, Fleet: simulate.Fleet{Concurrency: 1, Prefetch: -1},
		})
		q := r.Requests
		want := q.Sends*each + q.Receives*each + q.EmptyReceives + q.Deletes + q.Hides + q.Renewals + q.Copies*each
		if q.Sends != 20 || q.Receives != 40 || q.DeadLetters == 0 || q.Units < want+q.DeadLetters || q.Units > want+20*each {
			t.Errorf("%d bytes: %+v; want %d units and those of 20 dead letters", bytes, q, want)
		}
		if cost := r.Cost(); cost != float64(q.Units)*0.4/1e6 {
			t.Errorf("%d units cost %v", q.Units, cost)
		}
	}
}

// TestBatches: a run works on several messages, makes one request, and fails as a whole only if that does.
func TestBatches(t *testing.T) {
	s := simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 1000}, Policy: policy(t, "constant(5s) jitter=none attempts=4"), Trace: 1000,
		Handler:    simulate.Handler{Takes: simulate.Constant(100 * time.Millisecond), Fails: []float64{0.3}},
		Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 200 * time.Millisecond, For: time.Second}}},
		Fleet:      simulate.Fleet{Concurrency: 2, NoBreaker: true, Batch: simulate.Batch{Size: 25}},
	}
	r := run(t, s)
	runs := make(map[time.Duration]map[bool]int) // by their end: how their messages ended
	largest := 0
	for _, a := range r.Trace {
		if runs[a.Ended] == nil {
			runs[a.Ended] = make(map[bool]int)
		}
		runs[a.Ended][a.Succeeded]++
		largest = max(largest, runs[a.Ended][true]+runs[a.Ended][false])
	}
	mixed := 0
	for at, of := range runs {
		down := at >= 300*time.Millisecond && at < 1300*time.Millisecond
		if down && of[true] > 0 {
			t.Errorf("a batch that ends at %v, in the outage, has %d successes", at, of[true])
		}
		if !down && of[true] > 0 && of[false] > 0 {
			mixed++
		}
	}
	if mixed < 10 || largest < 25 || largest > 50 || r.Attempts.Unavailable < 100 || r.PeakRequests > 20 || r.Messages.Done < 980 {
		t.Errorf("%d batches in which some messages fail, at most %d messages end together, %+v, at most %d requests in a second, %+v", mixed, largest, r.Attempts, r.PeakRequests, r.Messages)
	}
}

// TestRetryLane: while a backlog is worked off, retries come when they are due if they have a lane, and
// with priority none waits.
func TestRetryLane(t *testing.T) {
	late := func(lane simulate.RetryLane) time.Duration {
		r := run(t, simulate.Scenario{
			Traffic: simulate.Traffic{Backlog: 5000}, Policy: policy(t, "constant(10s) jitter=none attempts=3"), Trace: 5000,
			Handler: simulate.Handler{Fails: []float64{0.2, 0}}, Fleet: simulate.Fleet{RetryLane: lane},
		})
		due := make(map[int]time.Duration)
		most := time.Duration(0)
		for _, a := range r.Trace {
			if at, retried := due[a.Message]; retried {
				most = max(most, a.Started-at)
			}
			due[a.Message] = a.Due
		}
		if r.Messages.Done != 5000 || len(due) != 5000 {
			t.Errorf("%+v: %+v", lane, r.Messages)
		}
		return most
	}
	none, equal, first := late(simulate.RetryLane{}), late(simulate.RetryLane{Weight: 1}), late(simulate.RetryLane{Weight: 1, Priority: 1})
	if none < 20*time.Second || equal > 3*time.Second || first > 3*time.Second {
		t.Errorf("retries are late by up to %v without a lane, %v with one, %v with priority", none, equal, first)
	}
}

// TestRepeated: each message succeeds at its first attempt, so that every other attempt, which fails, was for
// a message that was done.
func TestRepeated(t *testing.T) {
	var crashes []simulate.Restart
	for i := range 40 {
		crashes = append(crashes, simulate.Restart{At: time.Duration(i)*10*time.Second + 5*time.Second, Kill: true})
	}
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 1000},
		Handler: simulate.Handler{Takes: simulate.Constant(20 * time.Millisecond), Fails: []float64{0, 1}},
		Fleet:   simulate.Fleet{Restarts: crashes, Concurrency: 100, Lease: 10 * time.Second},
		Network: simulate.Network{LoseRequest: 0.3},
	})
	a := r.Attempts
	if a.Failed == 0 || a.Repeated != a.Failed || a.Succeeded != 1000 || a.Wasted() != a.Started-1000 {
		t.Errorf("attempts %+v: want all that failed to be repeated, and wasted", a)
	}
}
