package simulate_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// policy reads a policy's text.
func policy(t testing.TB, text string) retry.Policy {
	t.Helper()
	var p retry.Policy
	if err := p.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, s simulate.Scenario) *simulate.Result {
	t.Helper()
	r, err := simulate.Run(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, a := r.Messages, r.Attempts
	if m.Arrived != m.Done+m.Dead+m.Expired+m.Left {
		t.Errorf("%d messages arrived, but the states add up to %+v", m.Arrived, m)
	}
	if a.Started != a.Succeeded+a.Failed+a.Permanent+a.Unavailable+a.Rejected+a.Cut+a.Running {
		t.Errorf("%d attempts started, but the ends add up to %+v", a.Started, a)
	}
	var sum simulate.Bucket
	for _, b := range r.Series {
		sum.Arrived += b.Arrived
		sum.Started += b.Started
		sum.Done += b.Done
		sum.Dead += b.Dead
	}
	if sum.Arrived != m.Arrived || sum.Started != a.Started || sum.Done != m.Done || sum.Dead != m.Dead {
		t.Errorf("the periods add up to %+v, want those of %+v and %+v", sum, m, a)
	}
	return r
}

// outage is a busy scenario with all that can go wrong.
func outage(t testing.TB) simulate.Scenario {
	return simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 20, For: 10 * time.Minute, Bursts: []simulate.Burst{{At: 5 * time.Minute, Messages: 300}, {At: 6 * time.Minute, Messages: 100, Over: time.Minute}}},
		Policy:  policy(t, "exponential(base=1s,max=1m) attempts=8"),
		Handler: simulate.Handler{Takes: simulate.Lognormal(50*time.Millisecond, time.Second), Fails: []float64{0.2}, Permanent: 0.01},
		Dependency: simulate.Dependency{Capacity: 60, Outages: []simulate.Outage{
			{At: 2 * time.Minute, For: 2 * time.Minute},
		}},
		Fleet: simulate.Fleet{Consumers: 3, Restarts: []simulate.Restart{
			{At: 3 * time.Minute, Consumers: 1}, {At: 5*time.Minute + time.Second, Down: 30 * time.Second, Kill: true, Consumers: 2},
		}},
		Network: simulate.Network{LoseReply: 0.01, Throttle: 0.01, LoseRequest: 0.01, Fail: 0.01},
		Seed:    7,
	}
}

// TestSeedRepeats checks that a seed gives one result, and another seed another.
func TestSeedRepeats(t *testing.T) {
	one, again := run(t, outage(t)), run(t, outage(t))
	if !reflect.DeepEqual(one, again) {
		t.Errorf("a seed has two results:\n%+v\n%+v", one, again)
	}
	other := outage(t)
	other.Seed++
	if reflect.DeepEqual(one.Latency, run(t, other).Latency) {
		t.Error("two seeds have one result")
	}
	if one.Stop != simulate.StopSettled || one.Messages.Done == 0 || one.Messages.Dead == 0 || one.Attempts.Cut == 0 || one.Attempts.Unavailable == 0 {
		t.Errorf("stop %v, %+v, %+v: want a scenario in which everything happens", one.Stop, one.Messages, one.Attempts)
	}
	for _, v := range one.Outages {
		if v.Cleared < 0 || v.Recovered < 0 || v.Unsettled != 0 {
			t.Errorf("the outage has the recovery %+v, want one that ends", v)
		}
	}
}

// TestQueueingTheory holds waits against M/M/c: with Poisson arrivals, exponential times and 4
// handlers at 80 % load they are 0.7455 of a run.
func TestQueueingTheory(t *testing.T) {
	const takes = time.Second
	const want = 0.7455
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 3.2, For: 50_000 * time.Second},
		Handler: simulate.Handler{Takes: simulate.Exponential(takes)},
		Fleet:   simulate.Fleet{Concurrency: 4},
	})
	got := r.Wait.Mean.Seconds() / takes.Seconds()
	t.Logf("%d messages wait %.4f runs, want %.4f", r.Wait.Count, got, want)
	if math.Abs(got/want-1) > 0.1 {
		t.Errorf("the mean wait is %.4f runs, want %.4f to 10 %%", got, want)
	}
}

// TestDrain holds the recovery from an outage against λT/(μ(1-e)-λ).
func TestDrain(t *testing.T) {
	const rate, down, fails = 10.0, 10 * time.Minute, 0.2
	r := run(t, simulate.Scenario{
		Traffic:    simulate.Traffic{Rate: rate, Even: true, For: 3 * time.Hour},
		Policy:     policy(t, "constant(1s) jitter=none attempts=unlimited"),
		Handler:    simulate.Handler{Takes: simulate.Constant(500 * time.Millisecond), Fails: []float64{fails}},
		Fleet:      simulate.Fleet{Concurrency: 10, Prefetch: -1, NoBreaker: true},
		Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: 30 * time.Minute, For: down}}},
	})
	got, want := r.Outages[0].Recovered, time.Duration(rate*down.Seconds()/(20*(1-fails)-rate)*float64(time.Second))
	t.Logf("recovered after %v, want %v: %+v", got, want, r.Outages[0])
	if ratio := got.Seconds() / want.Seconds(); math.Abs(ratio-1) > 0.1 {
		t.Errorf("the fleet recovers in %v, want %v to 10 %%", got, want)
	}
}

// TestAttemptsOfFailures holds the number of attempts and of dead letters against (1-e^m)/(1-e) and e^m.
func TestAttemptsOfFailures(t *testing.T) {
	const n, e, m = 20_000, 0.5, 4
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: n}, Policy: policy(t, "exponential(base=1s,max=10s) attempts=4"),
		Handler: simulate.Handler{Takes: simulate.Constant(10 * time.Millisecond), Fails: []float64{e}}, Fleet: simulate.Fleet{Concurrency: 100},
	})
	attempts, dead := float64(r.Attempts.Started)/n, float64(r.Messages.Dead)/n
	wantAttempts, wantDead := (1-math.Pow(e, m))/(1-e), math.Pow(e, m)
	if math.Abs(attempts/wantAttempts-1) > 0.02 || math.Abs(dead/wantDead-1) > 0.06 {
		t.Errorf("%.4f attempts a message and %.4f dead letters, want %.4f and %.4f", attempts, dead, wantAttempts, wantDead)
	}
	if len(r.PerMessage) != m+1 || r.PerMessage[m] == 0 {
		t.Errorf("attempts per message: %v, want up to %d", r.PerMessage, m)
	}
}

// TestInterrupted checks that a simulation that is interrupted returns what it has.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop, calls := errors.New("stop"), 0
	r, err := simulate.Run(ctx, simulate.Scenario{Traffic: simulate.Traffic{Rate: 100}, Horizon: simulate.MaxHorizon / 400}, func(p simulate.Progress) {
		if calls++; p.Attempts > 10_000 {
			cancel(stop)
		}
	})
	if !errors.Is(err, stop) || r == nil || r.Stop != simulate.StopInterrupted || r.Messages.Done < 9000 || r.Messages.Done > 100_000 || calls < 2 {
		t.Errorf("error %v after %d calls, result %+v; want the cause and some ten thousand messages", err, calls, r)
	}
}

// TestExpired checks that what no dead-letter queue takes expires.
func TestExpired(t *testing.T) {
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 50}, Policy: policy(t, "constant(1s) attempts=2"), Handler: simulate.Handler{Always: 1},
		Queue: simulate.Queue{NoDeadLetters: true, Retention: time.Hour},
	})
	if r.Messages.Expired != 50 || r.Ended < time.Hour || r.Ended > 2*time.Hour {
		t.Errorf("%+v after %v, want 50 expired messages after an hour", r.Messages, r.Ended)
	}
}

// TestOldestOfCopies checks that a message that copies have kept in the queue for longer than its retention is still
// the oldest, with its own age.
func TestOldestOfCopies(t *testing.T) {
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 1, Bursts: []simulate.Burst{{At: 3*time.Hour + 50*time.Minute, Messages: 1}}}, Policy: policy(t, "constant(20m) jitter=none attempts=100 age=24h"),
		Handler: simulate.Handler{Always: 1, Takes: simulate.Constant(time.Second)}, Queue: simulate.Queue{Retention: time.Hour}, Horizon: 4 * time.Hour,
	})
	if last := r.Series[len(r.Series)-1]; r.Requests.Copies == 0 || last.Open != 2 || last.Oldest < 4*time.Hour-time.Minute || last.Oldest > 4*time.Hour {
		t.Errorf("after %v and %d copies %d messages are open, the oldest for %v; want 2, and almost four hours", r.Ended, r.Requests.Copies, last.Open, last.Oldest)
	}
}

// TestPeakOfALongSeries checks that the peak outlasts the joining of periods: a burst in the first minute of twenty.
func TestPeakOfALongSeries(t *testing.T) {
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 1, Bursts: []simulate.Burst{{At: 31 * time.Second, Messages: 100}}}, Handler: simulate.Handler{Takes: simulate.Constant(time.Millisecond)},
		Policy: policy(t, "constant(1s) attempts=2"), Horizon: 20 * time.Minute,
	})
	at, peak := time.Duration(0), 0
	for _, b := range r.Series {
		if b.Peak > peak {
			at, peak = b.At, b.Peak
		}
	}
	if len(r.Series) > 300 || peak != r.PeakRequests || peak < 100 || at != 30*time.Second {
		t.Errorf("of %d periods that at %v has the peak, %d requests in a second; want %d, in that at 30 s", len(r.Series), at, peak, r.PeakRequests)
	}
}

// TestNothingWaitsInTheEnd checks the number of waiting messages, although lost replies make copies of some, which run
// beside each other: when all is settled, none waits.
func TestNothingWaitsInTheEnd(t *testing.T) {
	r := run(t, simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 500}, Policy: policy(t, "constant(5s) attempts=20"), Fleet: simulate.Fleet{Via: "requeue"},
		Handler: simulate.Handler{Fails: []float64{0.6}, Takes: simulate.Uniform(100*time.Millisecond, 10*time.Second)}, Network: simulate.Network{LoseReply: 0.2},
	})
	most := 0
	for _, b := range r.Series {
		most = max(most, b.Waiting)
	}
	if last := r.Series[len(r.Series)-1]; r.Stop != simulate.StopSettled || r.Attempts.Repeated == 0 || last.Waiting != 0 || most < 20 || most > 500 {
		t.Errorf("%v, %d attempts repeated, %d messages wait in the end, %d at most; want none of 500", r.Stop, r.Attempts.Repeated, last.Waiting, most)
	}
}

// TestMovedByTheQueue checks that messages are found that SQS itself moves to the dead-letter queue.
func TestMovedByTheQueue(t *testing.T) {
	s := simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 5}, Queue: simulate.Queue{MaxReceives: 1},
		Handler: simulate.Handler{Takes: simulate.Constant(10 * time.Minute)},
	}
	for i := range 3 {
		s.Fleet.Restarts = append(s.Fleet.Restarts, simulate.Restart{At: time.Duration(i+1) * time.Minute, Kill: true})
	}
	if r := run(t, s); r.Messages.Dead != 5 || r.Attempts.Cut == 0 {
		t.Errorf("%+v, %+v; want 5 dead letters after crashes", r.Messages, r.Attempts)
	}
}

// TestFIFO checks that groups are simulated.
func TestFIFO(t *testing.T) {
	for _, waits := range []string{"hold", "block", "skip"} {
		r := run(t, simulate.Scenario{
			Traffic: simulate.Traffic{Backlog: 500}, Queue: simulate.Queue{FIFO: true, Groups: 20}, Fleet: simulate.Fleet{Waits: waits},
			Policy: policy(t, "constant(2s) attempts=20"), Handler: simulate.Handler{Fails: []float64{0.3}},
		})
		if r.Messages.Done+r.Messages.Dead != 500 || (waits == "skip") != (r.Messages.Dead > 0) {
			t.Errorf("%s: %+v, want 500 messages, dead ones only if they are skipped", waits, r.Messages)
		}
	}
}

// TestInvalid checks that errors name the field, the problem and the remedy.
func TestInvalid(t *testing.T) {
	backlog := simulate.Traffic{Backlog: 1}
	for want, s := range map[string]simulate.Scenario{
		"traffic is empty: set traffic.backlog":                 {},
		"traffic.rate is -1: set 0 to":                          {Traffic: simulate.Traffic{Rate: -1}},
		"traffic.rate is NaN: set 0 to":                         {Traffic: simulate.Traffic{Rate: math.NaN()}},
		"it never ends: set traffic.for, or a horizon":          {Traffic: simulate.Traffic{Rate: 1}},
		"set at most 1000000000000: less traffic":               {Traffic: simulate.Traffic{Rate: 1e6}, Horizon: 300 * 24 * time.Hour},
		"queue.fifo is true: a fluid simulation, which more":    {Traffic: backlog, Queue: simulate.Queue{FIFO: true}, Fluid: true},
		"of a fluid simulation, is 21: set 0 to 20":             {Traffic: backlog, Dependency: simulate.Dependency{Outages: outages(21)}, Fluid: true},
		"traffic.every is 0s: set it with traffic.series":       {Traffic: simulate.Traffic{Series: []int{1}}},
		"traffic.for is 1h0m0s: it says how long":               {Traffic: simulate.Traffic{Backlog: 1, For: time.Hour}},
		"policy: retry: Backoff.Base is -1s":                    {Traffic: backlog, Policy: retry.Policy{Backoff: retry.Exponential{Base: -time.Second}}},
		"it never gives up, and there are messages":             {Traffic: backlog, Policy: retry.Policy{MaxAttempts: -1, MaxAge: -1}, Handler: simulate.Handler{Fails: []float64{0.1, 1}}},
		"queue.retention is 1s: set 1m0s to":                    {Traffic: backlog, Queue: simulate.Queue{Retention: time.Second}},
		"queue.max-receives is 3: it needs a dead-letter queue": {Traffic: backlog, Queue: simulate.Queue{MaxReceives: 3, NoDeadLetters: true}},
		"queue.groups is 3: only FIFO":                          {Traffic: backlog, Queue: simulate.Queue{Groups: 3}},
		"handler.fails[1] is 1.5: set a share":                  {Traffic: backlog, Handler: simulate.Handler{Fails: []float64{0, 1.5}}},
		"handler.takes is -1s: a run takes more than nothing":   {Traffic: backlog, Handler: simulate.Handler{Takes: simulate.Constant(-time.Second)}},
		"dependency.capacity is -1: set 0 to":                   {Traffic: backlog, Dependency: simulate.Dependency{Capacity: -1}},
		"outages[1].at is 2m0s: the outage before is not over":  {Traffic: backlog, Dependency: simulate.Dependency{Outages: []simulate.Outage{{At: time.Minute, For: time.Hour}, {At: 2 * time.Minute, For: 1}}}},
		"fleet.consumers is -1: set 1 to":                       {Traffic: backlog, Fleet: simulate.Fleet{Consumers: -1}},
		"fleet.lease is 2.5s: SQS counts it in whole seconds":   {Traffic: backlog, Fleet: simulate.Fleet{Lease: 2500 * time.Millisecond}},
		`fleet.via is "x": set auto, visibility, requeue`:       {Traffic: backlog, Fleet: simulate.Fleet{Via: "x"}},
		"fleet.probe is true: a probe belongs to the breaker":   {Traffic: backlog, Fleet: simulate.Fleet{Probe: true, NoBreaker: true}},
		"fleet.batch.linger is 1s: it belongs to batches":       {Traffic: backlog, Fleet: simulate.Fleet{Batch: simulate.Batch{Linger: time.Second}}},
		"fleet.batch.size is 9999: times fleet.concurrency":     {Traffic: backlog, Fleet: simulate.Fleet{Concurrency: 11, Batch: simulate.Batch{Size: 9999}}},
		"fleet.retry-lane.priority is 1: it belongs to":         {Traffic: backlog, Fleet: simulate.Fleet{RetryLane: simulate.RetryLane{Priority: 1}}},
		"fleet.retry-lane.weight is 1: on a FIFO queue":         {Traffic: backlog, Queue: simulate.Queue{FIFO: true}, Fleet: simulate.Fleet{RetryLane: simulate.RetryLane{Weight: 1}}},
		"fleet.retry-lane.weight is 2: messages are sent":       {Traffic: backlog, Fleet: simulate.Fleet{Via: "visibility", RetryLane: simulate.RetryLane{Weight: 2}}},
		"fleet.batch.size is 5: a fluid simulation":             {Traffic: backlog, Fluid: true, Fleet: simulate.Fleet{Batch: simulate.Batch{Size: 5}}},
		"fleet.restarts[0].consumers is 2: set 1 to 1":          {Traffic: backlog, Fleet: simulate.Fleet{Restarts: []simulate.Restart{{Consumers: 2}}}},
		"fleet.via is requeue: a copy would come out of turn":   {Traffic: backlog, Queue: simulate.Queue{FIFO: true}, Fleet: simulate.Fleet{Via: "requeue"}},
		"network.throttle is 2: set a share":                    {Traffic: backlog, Network: simulate.Network{Throttle: 2}},
		"no request succeeds":                                   {Traffic: backlog, Network: simulate.Network{Throttle: 1}},
		"horizon is -1s: set 0s to":                             {Traffic: backlog, Horizon: -time.Second},
	} {
		if _, err := simulate.Run(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one that contains %q", err, want)
		}
	}
}

// outages are n outages, one after the other.
func outages(n int) (all []simulate.Outage) {
	for i := range n {
		all = append(all, simulate.Outage{At: time.Duration(i) * time.Minute, For: time.Second})
	}
	return all
}

// TestNotesOfATimeout checks that a run that a timeout cuts short keeps a handler busy for no longer than that, also in a
// pool.
func TestNotesOfATimeout(t *testing.T) {
	for _, tt := range []struct {
		timeout time.Duration
		pool    bool
		want    string
	}{
		{0, false, "traffic.rate is 4: such traffic needs 4 attempts a second, of which fleet.concurrency permits 1,"},
		{time.Second, false, ""},
		{3 * time.Second, false, "fleet.concurrency permits 3.333,"},
		{0, true, "pool: the traffic of all queues needs 80 handlers"},
		{time.Second, true, ""},
		{3 * time.Second, true, "pool: the traffic of all queues needs 24 handlers"},
	} {
		s := simulate.Scenario{
			Traffic: simulate.Traffic{Rate: 4}, Horizon: 10 * time.Second, Handler: simulate.Handler{Takes: simulate.Constant(10 * time.Second)},
			Fleet: simulate.Fleet{Timeout: tt.timeout}, Policy: policy(t, "attempts=1"),
		}
		if tt.pool {
			s.Pool = []simulate.Pooled{{Name: "other", Traffic: s.Traffic}}
		}
		notes := strings.Join(run(t, s).Notes, "\n")
		if (tt.want == "") != (notes == "") || !strings.Contains(notes, tt.want) {
			t.Errorf("with a timeout of %v, in a pool %v, the notes are %q, want %q", tt.timeout, tt.pool, notes, tt.want)
		}
	}
}

// TestNotesOfBatchesInAPool checks that the handlers that further queues need are counted by batches once, not twice.
func TestNotesOfBatchesInAPool(t *testing.T) {
	s := simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 10}, Horizon: 10 * time.Second, Handler: simulate.Handler{Takes: simulate.Constant(10 * time.Second)},
		Fleet: simulate.Fleet{Batch: simulate.Batch{Size: 10}}, Policy: policy(t, "attempts=1"),
	}
	s.Pool = []simulate.Pooled{{Name: "other", Traffic: s.Traffic}}
	notes := strings.Join(run(t, s).Notes, "\n")
	if !strings.Contains(notes, "pool: the traffic of all queues needs 20 handlers, of which there are 10") {
		t.Errorf("ten messages a second of each queue, in batches of ten that take 10s: the notes are %q, want 20 handlers", notes)
	}
}

// TestPeakOfThePresentSecond checks that the requests of a second that the horizon cuts short count.
func TestPeakOfThePresentSecond(t *testing.T) {
	for _, horizon := range []time.Duration{900 * time.Millisecond, 1500 * time.Millisecond} {
		r := run(t, simulate.Scenario{
			Traffic: simulate.Traffic{Bursts: []simulate.Burst{{At: horizon - 500*time.Millisecond, Messages: 7}}}, Horizon: horizon,
		})
		if r.Attempts.Started != 7 || r.PeakRequests != 7 || r.Series[len(r.Series)-1].Peak != 7 {
			t.Errorf("until %v: %d attempts, a peak of %d requests in a second, %d in the last period; want 7",
				horizon, r.Attempts.Started, r.PeakRequests, r.Series[len(r.Series)-1].Peak)
		}
	}
}

// TestNotes checks that what cannot clear is named where a horizon has it simulated.
func TestNotes(t *testing.T) {
	r := run(t, simulate.Scenario{Traffic: simulate.Traffic{Rate: 200}, Horizon: time.Minute})
	if r.Stop != simulate.StopHorizon || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "needs 200 attempts a second, of which fleet.concurrency permits 100") || r.Messages.Left < 5000 {
		t.Errorf("stop %v, notes %q, %+v; want the horizon, and a note about the backlog", r.Stop, r.Notes, r.Messages)
	}
}

// TestTimes checks the text of distributions, and their means.
func TestTimes(t *testing.T) {
	for _, text := range []string{"200ms", "exponential(200ms)", "uniform(100ms,300ms)", "lognormal(200ms,2s)"} {
		var d simulate.Times
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != text {
			t.Errorf("%q is read as %v: %v", text, d, err)
		}
		r := run(t, simulate.Scenario{Traffic: simulate.Traffic{Backlog: 20_000}, Handler: simulate.Handler{Takes: d}, Fleet: simulate.Fleet{Concurrency: 10, Prefetch: 100}})
		// The handlers are always busy, so that the last attempt ends when all of their work is done.
		if got, want := r.Last.Seconds()*10/20_000, d.Mean().Seconds(); math.Abs(got/want-1) > 0.05 {
			t.Errorf("%s takes %.4f s as a mean, want %.4f", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"": "no duration", "5": "no duration", "-1s": "more than nothing", "13h": "at most 12h", "uniform(2s,1s)": "shorter than the first",
		"normal(1s)": "no distribution", "uniform(1s": "no distribution", "uniform(1s)": "1 durations, want 2", "exponential(1s,2s)": "2 durations, want 1",
	} {
		var d simulate.Times
		if err := d.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one that contains %q", text, err, want)
		}
	}
}
