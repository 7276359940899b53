package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

var first = time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)

// times are those of one message that Decide itself is asked about, attempt by
// attempt, with the draws of its seed.
func times(p retry.Policy, q plan.Queue, seed string, most int) (since []time.Duration, end retry.Reason) {
	p.MaxAttempts = plan.MaxAttempts(p, q)
	a := retry.Failure{N: 1, Seed: seed, First: first, Sent: first.Add(-q.Delay), Ended: first}
	for since = []time.Duration{0}; len(since) < most; a.N++ {
		d := p.Decide(a)
		if d.Action == retry.ActionDeadLetter {
			return since, d.Reason
		}
		a.Ended = d.At
		since = append(since, d.At.Sub(first))
	}
	return since, 0
}

// oldest is when the policy's age ends, counted from the first receive; negative
// if it does not.
func oldest(p retry.Policy, q plan.Queue) time.Duration {
	p = p.WithDefaults()
	if p.MaxAge >= 0 && p.AgeFrom == retry.Sent {
		return p.MaxAge - q.Delay
	}
	return p.MaxAge
}

var jitters = []retry.Jitter{
	retry.Full, retry.None, retry.Equal, retry.FromBase, retry.Decorrelated, retry.Percent(20), retry.Percent(100),
}

// randomPolicy returns some policy that Validate accepts.
func randomPolicy(random *rand.Rand) retry.Policy {
	some := func(most time.Duration) time.Duration { return 1 + time.Duration(random.Int64N(int64(most))) }
	base := some(time.Hour)
	limit := base + some(60*day)
	backoffs := []retry.Backoff{
		nil,
		retry.Exponential{Base: base, Factor: 1 + 3*random.Float64(), Max: limit},
		retry.Linear{Base: base, Step: some(time.Hour), Max: limit},
		retry.Polynomial{Base: base, Exponent: 4 * random.Float64(), Max: limit},
		retry.Constant(some(20 * time.Hour)),
		retry.Constant(0),
		retry.List{some(day), some(time.Minute), 0, some(3 * day)},
		retry.Func(func(n int) time.Duration { return time.Duration(n%7) * base }),
	}
	p := retry.Policy{
		Backoff:     backoffs[random.IntN(len(backoffs))],
		Jitter:      jitters[random.IntN(len(jitters))],
		MaxAttempts: random.IntN(60) - 5,
		AgeFrom:     retry.AgeFrom(random.IntN(2)),
	}
	switch random.IntN(3) {
	case 0:
		p.MaxAge = some(30 * day)
	case 1:
		p.MaxAge = -1
	}
	return p
}

// TestScheduleAgreesWithDecide: over random policies and queues, every message
// makes its attempts within the schedule, as many as its ends permit, and stops
// for one of their reasons.
func TestScheduleAgreesWithDecide(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	cut := 0
	for i := range 500 {
		p := randomPolicy(random)
		q := plan.Queue{Delay: time.Duration(random.IntN(3)) * 7 * time.Minute, MaxReceives: random.IntN(30)}
		s := plan.NewSchedule(p, q, plan.Settings{})
		ordered(t, s)
		for j := range 20 {
			seed := fmt.Sprintf("message-%d-%d", i, j)
			since, end := times(p, q, seed, plan.MaxListed)
			if len(since) > len(s.Attempts) || len(since) < s.Longest.Attempts {
				t.Fatalf("%+v on %+v: %s makes %d attempts, the schedule %d to %d", p, q, seed, len(since), s.Longest.Attempts, len(s.Attempts))
			}
			for n, at := range since {
				a := s.Attempts[n]
				if at < a.Since.Least || at > a.Since.Most {
					t.Fatalf("%+v on %+v: %s makes attempt %d at %v, the schedule says %v to %v", p, q, seed, n+1, at, a.Since.Least, a.Since.Most)
				}
				if n == 0 {
					continue
				}
				wait := at - since[n-1]
				switch short := wait < a.Wait.Least; {
				case short && at >= oldest(p, q)-p.WithDefaults().MaxAge/10 && at <= oldest(p, q):
					cut++
				case short || wait > a.Wait.Most:
					t.Fatalf("%+v on %+v: %s waits %v before attempt %d, the schedule says %v to %v", p, q, seed, wait, n+1, a.Wait.Least, a.Wait.Most)
				}
			}
			if stop := end.String(); end != 0 && stop != s.Shortest.Stop.String() && stop != s.Longest.Stop.String() {
				t.Fatalf("%+v on %+v: %s ends by %v, the schedule by %v or %v", p, q, seed, end, s.Shortest.Stop, s.Longest.Stop)
			}
		}
	}
	if cut == 0 {
		t.Error("no wait was cut short by an age: the test has missed that case")
	}
}

// TestScheduleWithoutJitterIsDecide: where nothing is drawn, the schedule is what
// Decide says, to the nanosecond.
func TestScheduleWithoutJitterIsDecide(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		p := randomPolicy(random)
		p.Jitter = retry.None
		q := plan.Queue{Delay: time.Duration(random.IntN(3)) * 7 * time.Minute}
		since, end := times(p, q, "any", plan.MaxListed)
		s := plan.NewSchedule(p, q, plan.Settings{})
		var got []time.Duration
		for _, a := range s.Attempts {
			if a.Since.Least != a.Since.Expected || a.Since.Expected != a.Since.Most {
				t.Fatalf("%+v: attempt %d has the span %v without jitter", p, a.N, a.Since)
			}
			got = append(got, a.Since.Most)
		}
		if diff := cmp.Diff(since, got); diff != "" {
			t.Fatalf("%+v on %+v (-Decide +schedule):\n%s", p, q, diff)
		}
		if end != 0 && s.Expected.Stop.String() != end.String() {
			t.Fatalf("%+v on %+v ends by %v, want %v", p, q, s.Expected.Stop, end)
		}
	}
}

// ordered fails the test unless spans are in order and times do not go back.
func ordered(t *testing.T, s plan.Schedule) {
	t.Helper()
	check := func(what string, n int, s plan.Span) {
		if s.Least < 0 || s.Least > s.Expected || s.Expected > s.Most {
			t.Fatalf("attempt %d: %s is %+v, out of order", n, what, s)
		}
	}
	if len(s.Attempts) == 0 || len(s.Attempts) > plan.MaxListed {
		t.Fatalf("%d attempts", len(s.Attempts))
	}
	before := plan.Span{}
	for i, a := range s.Attempts {
		if a.N != i+1 || (a.Leg.Carry == plan.CarryNone) != (i == 0) || i > 0 && a.Leg.Receives < 1 {
			t.Fatalf("attempt %d is %+v", i+1, a)
		}
		check("the wait", a.N, a.Wait)
		check("the time", a.N, a.Since)
		if a.Since.Least < before.Least || a.Since.Expected < before.Expected || a.Since.Most < before.Most {
			t.Fatalf("attempt %d at %+v comes before the one at %+v", a.N, a.Since, before)
		}
		before = a.Since
	}
	for _, e := range []plan.End{s.Shortest, s.Expected, s.Longest} {
		if e.Stop == 0 || e.Attempts < 1 || e.Attempts > len(s.Attempts) || e.Receives < e.Attempts || e.After < 0 {
			t.Fatalf("end %+v of %d attempts", e, len(s.Attempts))
		}
	}
	if s.Longest.Attempts > s.Expected.Attempts || s.Expected.Attempts > s.Shortest.Attempts {
		t.Fatalf("the ends are out of order: %+v, %+v, %+v", s.Shortest, s.Expected, s.Longest)
	}
}

// TestExpectedIsTheMean compares the expected waits with those of ten thousand
// messages. The tolerance is four standard errors of a wait that is spread like
// that jitter's, and for the means that are themselves estimated a few percent.
func TestExpectedIsTheMean(t *testing.T) {
	const messages = 10_000
	for _, backoff := range []retry.Backoff{
		retry.Exponential{Base: time.Second, Max: 365 * day},
		retry.Exponential{Base: time.Minute, Max: time.Hour},
		retry.List{time.Hour, time.Second},
	} {
		for _, j := range jitters {
			p := retry.Policy{Backoff: backoff, Jitter: j, MaxAttempts: 40, MaxAge: -1}
			s := plan.NewSchedule(p, plan.Queue{}, plan.Settings{})
			if at := s.Attempts; j == retry.Decorrelated && at[33].Wait != at[32].Wait {
				t.Errorf("%v: the wait before retry 33, which is distributed as the one before, is %+v and not %+v", backoff, at[33].Wait, at[32].Wait)
			}
			for _, n := range []int{1, 2, 3, 5, 9, 32, 33, 39} {
				var sum, squares float64
				for i := range messages {
					wait := p.Wait(fmt.Sprintf("5fea7756-%d", i), n).Seconds()
					sum, squares = sum+wait, squares+wait*wait
				}
				mean := sum / messages
				tolerance := 4*math.Sqrt(max(squares/messages-mean*mean, 0)/messages) + 1e-9
				if j == retry.Decorrelated && n > 2 {
					tolerance *= 2 // both are estimates
				}
				if got := s.Attempts[n].Wait.Expected.Seconds(); math.Abs(got-mean) > tolerance {
					t.Errorf("%v, %v: the wait before retry %d is expected to be %v s, the mean of %d messages is %v ± %v", backoff, j, n, got, messages, mean, tolerance)
				}
			}
		}
	}
}

// TestScheduleEnds is where attempts end, and why.
func TestScheduleEnds(t *testing.T) {
	visibility := plan.Settings{Via: plan.ViaVisibility}
	hourly := retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: 10}
	change := func(f func(*retry.Policy)) retry.Policy { p := hourly; f(&p); return p }
	for _, tt := range []struct {
		name     string
		policy   retry.Policy
		queue    plan.Queue
		settings plan.Settings
		want     plan.End
	}{
		{
			name: "attempts", policy: hourly,
			want: plan.End{Stop: plan.StopAttempts, Attempts: 10, Receives: 10, After: 9 * time.Hour},
		},
		{
			name: "one attempt", policy: change(func(p *retry.Policy) { p.MaxAttempts = 1 }),
			want: plan.End{Stop: plan.StopAttempts, Attempts: 1, Receives: 1},
		},
		{
			name: "age", policy: change(func(p *retry.Policy) { p.MaxAge = 150 * time.Minute }),
			want: plan.End{Stop: plan.StopAge, Attempts: 4, Receives: 4, After: 150 * time.Minute},
		},
		{
			name: "age from the sending", policy: change(func(p *retry.Policy) { p.MaxAge, p.AgeFrom = 150*time.Minute, retry.Sent }),
			queue: plan.Queue{Delay: 15 * time.Minute},
			want:  plan.End{Stop: plan.StopAge, Attempts: 4, Receives: 4, After: 135 * time.Minute},
		},
		{
			name: "the delay is longer than the age", policy: change(func(p *retry.Policy) { p.MaxAge, p.AgeFrom = time.Minute, retry.Sent }),
			queue: plan.Queue{Delay: 15 * time.Minute},
			want:  plan.End{Stop: plan.StopAge, Attempts: 1, Receives: 1},
		},
		{
			name: "the queue's own limit", policy: change(func(p *retry.Policy) { p.MaxAttempts = 0 }),
			queue: plan.Queue{MaxReceives: 3}, settings: visibility,
			want: plan.End{Stop: plan.StopAttempts, Attempts: 3, Receives: 3, After: 2 * time.Hour},
		},
		{
			name: "receives", policy: hourly,
			queue: plan.Queue{MaxReceives: 3}, settings: visibility,
			want: plan.End{Stop: plan.StopReceives, Attempts: 3, Receives: 3, After: 2 * time.Hour},
		},
		{
			name: "receives on a FIFO queue", policy: hourly,
			queue: plan.Queue{MaxReceives: 3, FIFO: true},
			want:  plan.End{Stop: plan.StopReceives, Attempts: 3, Receives: 3, After: 2 * time.Hour},
		},
		{
			name: "receives, met by copies", policy: hourly,
			queue: plan.Queue{MaxReceives: 3},
			// Received 1, 2, 3; a copy, received after 15 min and after the hour, and
			// once more; and so on: the attempts are receives 1 2 3 | 2 3 | 2 3 | 2 3 | 2.
			want: plan.End{Stop: plan.StopAttempts, Attempts: 10, Receives: 14, Copies: 4, After: 9 * time.Hour},
		},
		{
			name: "one receive, met by copies of a quarter of an hour", policy: change(func(p *retry.Policy) { p.MaxAttempts = 3 }),
			queue: plan.Queue{MaxReceives: 1},
			want:  plan.End{Stop: plan.StopAttempts, Attempts: 3, Receives: 9, Copies: 8, After: 2 * time.Hour},
		},
		{
			name: "a copy for each wait", policy: change(func(p *retry.Policy) { p.Backoff, p.MaxAttempts = retry.Constant(time.Minute), 4 }),
			settings: plan.Settings{Via: plan.ViaRequeue},
			want:     plan.End{Stop: plan.StopAttempts, Attempts: 4, Receives: 4, Copies: 3, After: 3 * time.Minute},
		},
		{
			name: "retention", policy: hourly,
			queue: plan.Queue{Retention: 3 * time.Hour}, settings: visibility,
			want: plan.End{Stop: plan.StopRetention, Attempts: 3, Receives: 3, After: 3 * time.Hour},
		},
		{
			name: "retention, before which a consumer gives a message up", policy: hourly,
			queue: plan.Queue{Retention: 3 * time.Hour, DeadLetterARN: "arn:aws:sqs:eu-west-1:123456789012:dead"}, settings: visibility,
			want: plan.End{Stop: plan.StopRetention, Attempts: 3, Receives: 3, After: 2 * time.Hour},
		},
		{
			name: "a wait of ten years in copies of an hour", policy: change(func(p *retry.Policy) { p.Backoff, p.MaxAttempts, p.MaxAge = retry.Constant(3650*day), 2, -1 }),
			queue: plan.Queue{Retention: 80 * time.Minute, MaxReceives: 5},
			// A copy is replaced after an hour, once it has been received and hidden.
			want: plan.End{Stop: plan.StopAttempts, Attempts: 2, Receives: 1 + 2*3650*24, Copies: 3650 * 24, After: 3650 * day},
		},
		{
			name: "retention, less the delay", policy: hourly,
			queue: plan.Queue{Retention: 3 * time.Hour, Delay: 15 * time.Minute}, settings: visibility,
			want: plan.End{Stop: plan.StopRetention, Attempts: 3, Receives: 3, After: 165 * time.Minute},
		},
		{
			name: "retention, met by copies", policy: hourly,
			queue: plan.Queue{Retention: 3 * time.Hour},
			// The attempt at 3 h comes when the message is gone, so a copy is sent at 2 h,
			// which is gone at 5 h; those at 5, 7 and 9 h likewise.
			want: plan.End{Stop: plan.StopAttempts, Attempts: 10, Receives: 14, Copies: 4, After: 9 * time.Hour},
		},
		{
			name: "a wait that outlives several copies", policy: change(func(p *retry.Policy) { p.Backoff, p.MaxAttempts = retry.Constant(2*time.Hour), 2 }),
			queue: plan.Queue{Retention: time.Hour},
			// Each copy is replaced when a quarter of its retention is left: 45 + 45 + 30
			// minutes, and each is received and hidden once.
			want: plan.End{Stop: plan.StopAttempts, Attempts: 2, Receives: 1 + 2 + 2 + 2, Copies: 3, After: 2 * time.Hour},
		},
		{
			name: "the last receive comes when the message is gone", policy: change(func(p *retry.Policy) { p.Backoff = retry.Constant(30 * time.Hour) }),
			queue: plan.Queue{MaxReceives: 2, Retention: 43_195 * time.Second}, settings: visibility,
			want: plan.End{Stop: plan.StopRetention, Attempts: 1, Receives: 1, After: 43_195 * time.Second},
		},
		{
			name: "parking", policy: change(func(p *retry.Policy) { p.Backoff, p.MaxAttempts = retry.Constant(30*time.Hour), 3 }),
			settings: visibility,
			want:     plan.End{Stop: plan.StopAttempts, Attempts: 3, Receives: 7, After: 60 * time.Hour},
		},
		{
			name: "parking for as long as two receives serve, less what is allowed", policy: change(func(p *retry.Policy) {
				p.Backoff, p.MaxAttempts = retry.Constant(86_390*time.Second+retry.AllowedShortfall(12*time.Hour)), 2
			}),
			settings: visibility,
			want:     plan.End{Stop: plan.StopAttempts, Attempts: 2, Receives: 3, After: 86_390*time.Second + retry.AllowedShortfall(12*time.Hour)},
		},
		{
			name: "a copy that is hidden once", policy: change(func(p *retry.Policy) { p.Backoff, p.MaxAttempts = retry.Constant(12*time.Hour+10*time.Minute), 2 }),
			settings: plan.Settings{Via: plan.ViaRequeue},
			want:     plan.End{Stop: plan.StopAttempts, Attempts: 2, Receives: 3, Copies: 1, After: 12*time.Hour + 10*time.Minute},
		},
		{
			name: "parking uses up the receives", policy: change(func(p *retry.Policy) { p.Backoff, p.MaxAttempts = retry.Constant(30*time.Hour), 3 }),
			queue: plan.Queue{MaxReceives: 5}, settings: visibility,
			// Receives 1 and 4 are attempts; the fifth comes 43,195 s later, and is the last.
			want: plan.End{Stop: plan.StopReceives, Attempts: 2, Receives: 5, After: 30*time.Hour + 43_195*time.Second},
		},
		{
			name: "retention ends before the last receive", policy: change(func(p *retry.Policy) { p.Backoff, p.MaxAttempts = retry.Constant(30*time.Hour), 3 }),
			queue: plan.Queue{MaxReceives: 5, Retention: 31 * time.Hour}, settings: visibility,
			want: plan.End{Stop: plan.StopRetention, Attempts: 2, Receives: 4, After: 31 * time.Hour},
		},
		{
			name: "thirty days on a queue that keeps messages for four", policy: change(func(p *retry.Policy) { p.Backoff, p.MaxAge = retry.Constant(3*day), 30*day }),
			queue: plan.Queue{Retention: 4 * day},
			want:  plan.End{Stop: plan.StopAttempts, Attempts: 10, Receives: 1 + 9*(1+6), Copies: 9, After: 27 * day},
		},
		{
			name: "more than a list holds", policy: change(func(p *retry.Policy) { p.Backoff, p.MaxAttempts = retry.Constant(time.Second), -1 }),
			want: plan.End{Stop: plan.StopUnlisted, Attempts: 1000, Receives: 1000, After: 999 * time.Second},
		},
		{
			name: "retention that is not known", policy: change(func(p *retry.Policy) { p.MaxAttempts, p.MaxAge = -1, -1 }),
			settings: visibility,
			want:     plan.End{Stop: plan.StopRetention, Attempts: 96, Receives: 96, After: 4 * day},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := plan.NewSchedule(tt.policy, tt.queue, tt.settings)
			ordered(t, s)
			for _, got := range []plan.End{s.Shortest, s.Expected, s.Longest} {
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestScheduleBeyondTheLongest: attempts that only messages with short waits reach
// come at the end of the age at the latest.
func TestScheduleBeyondTheLongest(t *testing.T) {
	p := retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.Full, MaxAttempts: 6, MaxAge: 150 * time.Minute}
	s := plan.NewSchedule(p, plan.Queue{}, plan.Settings{})
	var got []plan.Span
	for _, a := range s.Attempts {
		got = append(got, a.Since)
	}
	const minute = time.Minute
	want := []plan.Span{{}, {0, 30 * minute, 60 * minute}, {0, 60 * minute, 120 * minute}, {0, 90 * minute, 150 * minute}, {0, 120 * minute, 150 * minute}, {0, 150 * minute, 150 * minute}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Longest.Stop != plan.StopAge || s.Longest.Attempts != 4 || s.Shortest.Stop != plan.StopAttempts || s.Shortest.Attempts != 6 {
		t.Errorf("ends %+v and %+v, want 4 attempts by age and 6 by attempts", s.Longest, s.Shortest)
	}
}

// TestScheduleOfTheLastRetry: the second attempt is the last, and comes in the range that LastRetry gives.
func TestScheduleOfTheLastRetry(t *testing.T) {
	const minute = time.Minute
	for _, tt := range []struct {
		name    string
		backoff retry.Constant
		jitter  retry.Jitter
		want    plan.Span
	}{
		{"not before the shortest wait", retry.Constant(102 * minute), retry.Percent(5), plan.Span{Least: 5814 * time.Second, Expected: 5907 * time.Second, Most: 100 * minute}},
		{"the shortest wait is as long as the age", retry.Constant(200 * minute), retry.Equal, plan.Span{Least: 100 * minute, Expected: 100 * minute, Most: 100 * minute}},
		{"the shortest wait is longer than the age", retry.Constant(210 * minute), retry.Equal, plan.Span{Least: 90 * minute, Expected: 95 * minute, Most: 100 * minute}},
	} {
		p := retry.Policy{Backoff: tt.backoff, Jitter: tt.jitter, MaxAge: 100 * minute}
		if got := plan.NewSchedule(p, plan.Queue{}, plan.Settings{}).Attempts; len(got) != 2 || got[1].Since != tt.want {
			t.Errorf("%s: %+v, want a second attempt at %+v", tt.name, got, tt.want)
		}
	}
}

// TestScheduleIsThePolicys: a schedule follows the policy's own waits, not those of a rule that matches every error.
func TestScheduleIsThePolicys(t *testing.T) {
	p := retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.Full, MaxAttempts: 6, MaxAge: 150 * time.Minute}
	want := plan.NewSchedule(p, plan.Queue{}, plan.Settings{})
	p.Rules = []retry.Rule{{Match: func(error) bool { return true }, Backoff: retry.Constant(time.Second), Jitter: retry.None}}
	if diff := cmp.Diff(want, plan.NewSchedule(p, plan.Queue{}, plan.Settings{})); diff != "" {
		t.Errorf("(-without the rule +with it):\n%s", diff)
	}
}

// TestScheduleEndsWithRetention: where no copies are sent, nothing comes after SQS
// has deleted the message.
func TestScheduleEndsWithRetention(t *testing.T) {
	p := retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.Full, MaxAttempts: 9}
	s := plan.NewSchedule(p, plan.Queue{Retention: 195 * time.Minute, Delay: 15 * time.Minute}, plan.Settings{Via: plan.ViaVisibility})
	ordered(t, s)
	if len(s.Attempts) != 9 || s.Longest.Stop != plan.StopRetention || s.Longest.Attempts != 3 {
		t.Fatalf("%d attempts and the end %+v, want 9, and 3 by retention", len(s.Attempts), s.Longest)
	}
	for _, a := range s.Attempts {
		most := time.Duration(a.N-1) * time.Hour
		want := plan.Span{Expected: min(most/2, 3*time.Hour), Most: min(most, 3*time.Hour)}
		if a.Since != want {
			t.Errorf("attempt %d at %+v, want %+v", a.N, a.Since, want)
		}
	}
}

// TestScheduleAsksLittle: a backoff may be code of the user's, slow or worse.
func TestScheduleAsksLittle(t *testing.T) {
	for _, j := range jitters {
		asked := 0
		p := retry.Policy{Jitter: j, MaxAttempts: -1, Backoff: retry.Func(func(n int) time.Duration {
			asked++
			return time.Duration(min(n, 50)) * time.Minute
		})}
		plan.NewSchedule(p, plan.Queue{}, plan.Settings{})
		if asked > plan.MaxListed+1 { // and for the wait at which it has stopped growing
			t.Errorf("%v: the backoff is asked %d times", j, asked)
		}
	}
	most := 0
	p := retry.Policy{Jitter: retry.None, MaxAttempts: 5, MaxAge: -1, Backoff: retry.Func(func(n int) time.Duration {
		most = max(most, n)
		return time.Minute
	})}
	if plan.NewSchedule(p, plan.Queue{}, plan.Settings{}); most != 4 {
		t.Errorf("the backoff of 5 attempts is asked for the wait before retry %d, want 4", most)
	}
}

func FuzzSchedule(f *testing.F) {
	f.Add("exponential(base=2s) jitter=full attempts=20 age=24h", int64(0), int64(4*day), 3, uint8(0), false)
	f.Add("list(1s,30h,0s) jitter=decorrelated attempts=unlimited age=unlimited", int64(time.Minute), int64(time.Minute), 1, uint8(1), true)
	f.Add("constant(2562047h) jitter=100% attempts=unlimited age=unlimited since=sent", int64(math.MaxInt64), int64(1), 1, uint8(2), false)
	f.Fuzz(func(t *testing.T, text string, delay, retention int64, maxReceives int, via uint8, fifo bool) {
		var p retry.Policy
		if p.UnmarshalText([]byte(text)) != nil {
			return
		}
		q := plan.Queue{FIFO: fifo, Delay: time.Duration(delay), Retention: time.Duration(retention), MaxReceives: maxReceives}
		s := plan.Settings{Via: plan.Via(via), Rate: float64(maxReceives), HandlerTimeout: time.Duration(delay), Lease: time.Duration(retention)}
		schedule := plan.NewSchedule(p, q, s)
		ordered(t, schedule)
		if schedule.String() == "" {
			t.Error("the schedule shows as nothing")
		}
		for _, found := range plan.Check(p, q, s) {
			if found.Code == "" || found.Problem == "" || found.Remedy == "" {
				t.Errorf("finding %+v lacks a part", found)
			}
		}
		if delay < 0 || delay > int64(day) || q.FIFO && retention > 0 || s.Via == plan.ViaVisibility {
			return
		}
		// By Decide itself, as long as nothing but the policy ends the attempts.
		since, _ := times(p, q, text, len(schedule.Attempts))
		for n, at := range since {
			if a := schedule.Attempts[n].Since; !fifo && (at < a.Least || at > a.Most) {
				t.Errorf("attempt %d at %v, the schedule says %+v", n+1, at, a)
			}
		}
	})
}

// TestWaitsAreCarried: how a wait is served, at the limits of what hiding, delays and copies can do.
func TestWaitsAreCarried(t *testing.T) {
	const twice = 43_631_313_131_313 // ns: eleven hours, 59 minutes and 55 seconds are 99 % of it
	requeue, visibility := plan.Settings{Via: plan.ViaRequeue}, plan.Settings{Via: plan.ViaVisibility}
	for _, tt := range []struct {
		wait      time.Duration
		retention time.Duration // 0: 14 days
		receives  int           // the queue's limit; 0: none
		settings  plan.Settings
		want      plan.Leg
	}{
		{wait: 3 * time.Hour, retention: 4 * time.Hour, want: plan.Leg{Carry: plan.CarryHide, Receives: 1}},
		{wait: 3*time.Hour + 1, retention: 4 * time.Hour, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 2, Receives: 2 + 1}},
		{wait: 7 * time.Hour, retention: 4 * time.Hour, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 3, Receives: 2 + 2 + 2}},
		{wait: 15 * time.Minute, settings: requeue, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 1, Receives: 1}},
		{wait: 15*time.Minute + 1, settings: requeue, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 1, Receives: 2}},
		{wait: 12*time.Hour + 15*time.Minute - 1, settings: requeue, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 1, Receives: 2}},
		{wait: 12*time.Hour + 15*time.Minute, settings: requeue, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 2, Receives: 2 + 2}},
		{wait: 24*time.Hour + 10*time.Minute, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 2, Receives: 3 + 1}},
		{wait: 2*(12*time.Hour-5*time.Second) + 15*time.Minute, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 2, Receives: 3 + 1}},
		{wait: 2*(12*time.Hour-5*time.Second) + 15*time.Minute + time.Second + 1, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 2, Receives: 3 + 2}},
		{wait: 30 * time.Hour, receives: 3, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 2, Receives: 3 + 2}},
		{wait: 54 * time.Hour, receives: 3, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 3, Receives: 3 + 3 + 2}},
		{wait: time.Hour, receives: 1, want: plan.Leg{Carry: plan.CarryRequeue, Copies: 4, Receives: 4}},
		{wait: twice, want: plan.Leg{Carry: plan.CarryHide, Receives: 1}},
		{wait: twice + 100, settings: visibility, want: plan.Leg{Carry: plan.CarryPark, Receives: 2}},
		{wait: 30 * time.Hour, settings: visibility, want: plan.Leg{Carry: plan.CarryPark, Receives: 3}},
	} {
		t.Run(fmt.Sprintf("%v of %v, %d receives, %v", tt.wait, tt.retention, tt.receives, tt.settings.Via), func(t *testing.T) {
			q := plan.Queue{Retention: tt.retention, MaxReceives: tt.receives}
			if q.Retention == 0 {
				q.Retention = 14 * 24 * time.Hour
			}
			p := retry.Policy{Backoff: retry.Constant(tt.wait), Jitter: retry.None, MaxAttempts: 2, MaxAge: -1}
			if got := plan.NewSchedule(p, q, tt.settings).Attempts[1].Leg; got != tt.want {
				t.Errorf("carried by %d copies and %d receives, want %d and %d: %v, want %v", got.Copies, got.Receives, tt.want.Copies, tt.want.Receives, got, tt.want)
			}
		})
	}
}

// TestCopiesBeginAnew: the retention of a copy counts from when it is sent, also where it is the
// last of several.
func TestCopiesBeginAnew(t *testing.T) {
	waits := []time.Duration{7 * time.Hour, 90 * time.Minute}
	p := retry.Policy{Backoff: retry.Func(func(n int) time.Duration { return waits[min(n, len(waits))-1] }), Jitter: retry.None, MaxAttempts: 3, MaxAge: -1}
	s := plan.NewSchedule(p, plan.Queue{Retention: 4 * time.Hour}, plan.Settings{})
	if got := s.Attempts[2].Leg; got.Carry != plan.CarryHide {
		t.Errorf("an hour and a half after a copy's first hour, it is carried as %+v, want it hidden", got)
	}
}
