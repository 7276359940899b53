package simulate_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

func schedule(t testing.TB, a simulate.Alone) *simulate.Schedule {
	t.Helper()
	s, err := simulate.NewSchedule(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestClosedForms holds drawn waits against the closed forms, and those against known values.
func TestClosedForms(t *testing.T) {
	for _, test := range []struct {
		policy   string
		mean, sd float64 // of the sum of waits, in seconds; 0: not known
	}{
		{"exponential(base=1s,max=1m) jitter=none attempts=4", 7, 0},
		{"exponential(base=1s,max=1m) jitter=full attempts=4", 3.5, 1.3},
		{"exponential(base=1s,max=1m) jitter=equal attempts=4", 5.25, 0.7},
		{"exponential(base=1s,max=1m) jitter=decorrelated attempts=4", 11.25, 0},
		{"exponential(base=1s,max=1m) jitter=full attempts=6", 15.5, 5.3},
		{"exponential(base=1s,max=1m) jitter=equal attempts=6", 23.3, 2.7},
		{"exponential(base=1s,max=1m) jitter=full attempts=11", 151.5, 36.2},
		{"exponential(base=1s,max=1m) jitter=equal attempts=11", 227.3, 18.1},
	} {
		p := policy(t, test.policy)
		f := simulate.NewForms(p, 1)
		if !f.HasWait || math.Abs(f.Wait.Seconds()-test.mean) > 0.06 || f.HasDeviation && math.Abs(f.Deviation.Seconds()-test.sd) > 0.06 {
			t.Errorf("%s: the forms are %+v, want a mean of %v s and a deviation of %v s", test.policy, f, test.mean, test.sd)
		}
		const messages = 50_000
		s := schedule(t, simulate.Alone{Policy: p, Messages: messages})
		// Four standard errors, where the deviation is known.
		allowed := 0.02 * test.mean
		if f.HasDeviation {
			allowed = 4*f.Deviation.Seconds()/math.Sqrt(messages) + 1e-9
		}
		if got := s.Ends.Mean.Seconds(); math.Abs(got-f.Wait.Seconds()) > allowed || s.GivenUp != messages {
			t.Errorf("%s: %d of the drawn messages are given up, after %.3f s as a mean, want all after %.3f s", test.policy, s.GivenUp, got, f.Wait.Seconds())
		}
	}
	// Under its maximum decorrelated jitter has no closed form: known are the means of many draws.
	for attempts, want := range map[string]float64{"6": 33.8, "11": 154.5} {
		p := policy(t, "exponential(base=1s,max=1m) jitter=decorrelated attempts="+attempts)
		if f := simulate.NewForms(p, 1); f.HasWait {
			t.Errorf("%s attempts: the forms are %+v, want none", attempts, f)
		}
		if got := schedule(t, simulate.Alone{Policy: p, Messages: 50_000}).Ends.Mean.Seconds(); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s attempts with decorrelated jitter end after %.2f s, want %.2f", attempts, got, want)
		}
	}
}

// TestSuccessesOfASchedule holds attempts and dead letters against (1-e^m)/(1-e) and e^m, and the most
// attempts of 1,000 messages against the extreme value.
func TestSuccessesOfASchedule(t *testing.T) {
	p := policy(t, "exponential(base=1s,max=1m) attempts=5")
	f, s := simulate.NewForms(p, 0.4), schedule(t, simulate.Alone{Policy: p, Messages: 100_000, Fails: 0.4})
	attempts := 0
	for _, a := range s.Attempts {
		attempts += a.Reached
	}
	if got := float64(attempts) / 100_000; math.Abs(got/f.Attempts-1) > 0.01 {
		t.Errorf("%.4f attempts, want %.4f", got, f.Attempts)
	}
	if got := float64(s.GivenUp) / 100_000; math.Abs(got/f.DeadLettered-1) > 0.1 || s.Succeeded+s.GivenUp != 100_000 {
		t.Errorf("%.4f are given up, want %.4f", got, f.DeadLettered)
	}
	most, wantMost := 0.0, math.Log(1000)/math.Log(2)+0.577/math.Log(2)+0.5
	for seed := range uint64(40) {
		s := schedule(t, simulate.Alone{Policy: policy(t, "constant(1s) attempts=100"), Messages: 1000, Fails: 0.5, Seed: seed})
		most += float64(len(s.Attempts)) / 40
	}
	if math.Abs(most-wantMost) > 1 {
		t.Errorf("of 1,000 messages the most attempts are %.1f, want %.1f", most, wantMost)
	}
}

// TestScheduleLoad checks that every retry of a day is counted once, and that jitter spreads them.
func TestScheduleLoad(t *testing.T) {
	herds := make(map[string]int)
	for _, jitter := range []string{"none", "full"} {
		s := schedule(t, simulate.Alone{Policy: policy(t, "exponential(base=1m,max=1h) attempts=10 jitter="+jitter), Messages: 10_000})
		sum := 0
		for _, n := range s.Load {
			sum += n
		}
		if sum != 90_000 {
			t.Errorf("%s: %d retries in a day, want 90,000", jitter, sum)
		}
		_, herds[jitter] = s.Herd()
	}
	if herds["none"] != 10_000 || herds["full"] > 7000 {
		t.Errorf("the most retries in a minute: %v, want all of 10,000 without jitter, and much fewer with it", herds)
	}
}

// TestScheduleInvalid checks that nonsense is refused.
func TestScheduleInvalid(t *testing.T) {
	for _, a := range []simulate.Alone{
		{Messages: -1}, {Fails: 2}, {Takes: -1}, {Policy: retry.Policy{Backoff: retry.Constant(-1)}},
	} {
		if _, err := simulate.NewSchedule(t.Context(), a); err == nil {
			t.Errorf("%+v is accepted", a)
		}
	}
}

// TestScheduleOfSlowAttempts checks that a wait begins when its attempt has ended.
func TestScheduleOfSlowAttempts(t *testing.T) {
	s := schedule(t, simulate.Alone{Policy: policy(t, "constant(10s) jitter=none attempts=3"), Messages: 2, Takes: 3 * time.Second})
	for i, want := range []time.Duration{0, 13 * time.Second, 26 * time.Second} {
		if got := s.Attempts[i]; got.Least != want || got.Most != want {
			t.Errorf("attempt %d comes after %v to %v, want %v", got.N, got.Least, got.Most, want)
		}
	}
}

// TestSchedulesMeet holds the policy alone against the machines of the consumer and the queue, attempt
// by attempt: there each comes when it is due, and later by no more than the rounding to whole seconds
// and the network take.
func TestSchedulesMeet(t *testing.T) {
	const messages, takes = 2000, 10 * time.Millisecond
	const most = time.Second + 250*time.Millisecond
	for _, text := range []string{
		"exponential(base=5s,max=10m) attempts=8", "exponential(base=5s,max=10m) jitter=equal attempts=8", "constant(30s) jitter=none attempts=5",
		"exponential(base=5s,max=5m) jitter=decorrelated attempts=8", "list(3s,20s,2m) jitter=20% attempts=6", "exponential(base=1m,max=1h) age=2h",
	} {
		p := policy(t, text)
		alone := schedule(t, simulate.Alone{Policy: p, Messages: messages, Takes: takes})
		whole := run(t, simulate.Scenario{
			Traffic: simulate.Traffic{Backlog: messages}, Policy: p, Trace: messages,
			Handler: simulate.Handler{Takes: simulate.Constant(takes), Always: 1},
			Fleet:   simulate.Fleet{Concurrency: 1000, Prefetch: 1000, NoBreaker: true},
		})
		due := make([]time.Duration, messages)
		times := make([][]time.Duration, len(alone.Attempts))
		late := time.Duration(0)
		for _, a := range whole.Trace {
			wait := a.Started - due[a.Message]
			if a.Attempt > 1 && (wait < 0 || wait > most) {
				t.Fatalf("%s: attempt %d of message %d starts %v after it is due, want at most %v", text, a.Attempt, a.Message, wait, most)
			}
			if a.Attempt > 1 {
				late = max(late, wait)
			}
			due[a.Message] = a.Due
			if a.Attempt > len(times) {
				t.Fatalf("%s: the machines make an attempt %d, the policy alone %d", text, a.Attempt, len(times))
			}
			times[a.Attempt-1] = append(times[a.Attempt-1], a.Started)
		}
		widest := time.Duration(0)
		for i, a := range alone.Attempts {
			slices.Sort(times[i])
			// MaxAge may end a message an attempt sooner if it is late.
			if len(times[i]) != a.Reached && (p.MaxAge == 0 || len(times[i]) < a.Reached*99/100) {
				t.Errorf("%s: %d messages reach attempt %d, %d of the policy alone", text, len(times[i]), a.N, a.Reached)
			}
			for _, d := range []time.Duration{times[i][0] - a.Least, times[i][len(times[i])/2] - a.Median, times[i][len(times[i])-1] - a.Most} {
				widest = max(widest, d)
				if allowed := time.Duration(i+1) * most; d < -allowed || d > allowed {
					t.Errorf("%s: attempt %d comes %v after that of the policy alone, want within %v", text, a.N, d, allowed)
				}
			}
		}
		t.Logf("%s: the %d attempts come up to %v after they are due, and up to %v after those of the policy alone", text, len(times), late, widest)
	}
}

// TestContention holds the experiment against the published program: its calls to 3 %, its times to
// 5 %, and the order of the strategies. The values are means of 100 trials of that program.
func TestContention(t *testing.T) {
	type row map[string][2]float64 // time in ms, calls
	published := map[int]row{
		50:  {"exponential": {36098, 621}, "decorrelated": {2179, 372}, "equal": {4142, 347}, "full": {2925, 332}, "none": {1142, 691}},
		100: {"exponential": {63719, 1866}, "decorrelated": {4569, 998}, "equal": {6699, 813}, "full": {4952, 797}, "none": {2026, 2423}},
		190: {"exponential": {101091, 5173}, "decorrelated": {7915, 2438}, "equal": {9364, 1758}, "full": {7372, 1771}, "none": {3541, 8020}},
	}
	policies := map[string]retry.Policy{
		"exponential":  policy(t, "exponential(base=10ms,max=2s) jitter=none"),
		"decorrelated": policy(t, "exponential(base=5ms,max=2s) jitter=decorrelated"),
		"equal":        policy(t, "exponential(base=10ms,max=2s) jitter=equal"),
		"full":         policy(t, "exponential(base=10ms,max=2s) jitter=full"),
		"none":         policy(t, "constant(0s) jitter=none"),
	}
	for clients, row := range published {
		got := make(map[string]simulate.Contended)
		for name, want := range row {
			c, err := simulate.Contend(t.Context(), simulate.Contention{Clients: clients, Policy: policies[name]})
			if err != nil {
				t.Fatal(err)
			}
			got[name] = c
			took := float64(c.Took.Microseconds()) / 1000
			t.Logf("%3d clients, %-12s %8.0f ms (%+.1f %%) %6.0f calls (%+.1f %%)", clients, name, took, 100*(took/want[0]-1), c.Calls, 100*(c.Calls/want[1]-1))
			if math.Abs(c.Calls/want[1]-1) > 0.03 || math.Abs(took/want[0]-1) > 0.05 {
				t.Errorf("%d clients, %s: %.0f ms and %.0f calls, want %.0f ms to 5 %% and %.0f calls to 3 %%", clients, name, took, c.Calls, want[0], want[1])
			}
		}
		if clients != 100 {
			continue
		}
		inOrder(t, got, "calls", func(c simulate.Contended) float64 { return c.Calls }, "full", "equal", "decorrelated", "exponential", "none")
		inOrder(t, got, "times", func(c simulate.Contended) float64 { return c.Took.Seconds() }, "none", "decorrelated", "full", "equal", "exponential")
	}
}

func inOrder(t *testing.T, got map[string]simulate.Contended, what string, of func(simulate.Contended) float64, names ...string) {
	t.Helper()
	for i := range names[1:] {
		if of(got[names[i]]) >= of(got[names[i+1]]) {
			t.Errorf("%s: %s has %v, %s has %v; want the order %v", what, names[i], of(got[names[i]]), names[i+1], of(got[names[i+1]]), names)
		}
	}
}

// BenchmarkSchedule draws the schedule of a million messages of which every attempt fails.
func BenchmarkSchedule(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.ReadMemStats(&before)
		schedule(b, simulate.Alone{Messages: 1_000_000})
		runtime.ReadMemStats(&after)
	}
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6, "MB/schedule")
}

// BenchmarkRun simulates messages of which a fifth of the attempts fails.
func BenchmarkRun(b *testing.B) {
	b.ReportAllocs()
	r := run(b, simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: b.N}, Policy: policy(b, "exponential(base=1s,max=1m)"),
		Handler: simulate.Handler{Takes: simulate.Constant(20 * time.Millisecond), Fails: []float64{0.2}}, Fleet: simulate.Fleet{Concurrency: 100},
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(r.Attempts.Started), "ns/attempt")
}

// TestInterruptedAlone: what was found until the context ended is returned with its cause.
func TestInterruptedAlone(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	s, err := simulate.NewSchedule(ctx, simulate.Alone{Policy: policy(t, "constant(1s) attempts=9"), Messages: 100, Progress: func(attempt, messages int) {
		if messages != 100 {
			t.Errorf("%d messages reach attempt %d, want all", messages, attempt)
		}
		if attempt == 3 {
			cancel(stop)
		}
	}})
	if !errors.Is(err, stop) || len(s.Attempts) != 3 {
		t.Errorf("%v, with %d attempts, want three", err, len(s.Attempts))
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	whole, err := simulate.Contend(t.Context(), simulate.Contention{Clients: 5, Trials: 3})
	if err != nil {
		t.Fatal(err)
	}
	part, err := simulate.Contend(ctx, simulate.Contention{Clients: 5, Trials: 100, Progress: func(trials int) {
		if trials == 3 {
			cancel(stop)
		}
	}})
	if !errors.Is(err, stop) || part != whole {
		t.Errorf("%v and %+v, want the mean of three trials, %+v", err, part, whole)
	}
}
