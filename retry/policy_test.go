package retry_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/retry"
)

var (
	errPlain = errors.New("connection refused")
	sent     = time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	first    = sent.Add(time.Hour)
)

// TestScheduleOfADay follows the schedule that was published for a base of one
// second and a limit of 24 hours: 16 doublings, one wait at the 12-hour cap cut
// short by the limit, and then no more.
func TestScheduleOfADay(t *testing.T) {
	p := retry.Policy{Jitter: retry.None, MaxAge: 24 * time.Hour}
	var waits []time.Duration
	a := retry.Failure{Seed: "m", First: first, Ended: first, Err: errPlain}
	for a.N = 1; ; a.N++ {
		d := p.Decide(a)
		if d.Action == retry.ActionDeadLetter {
			want := retry.Decision{Action: retry.ActionDeadLetter, At: a.Ended.Add(0), Reason: retry.ReasonAge}
			if diff := cmp.Diff(want, d); diff != "" {
				t.Errorf("the last decision (-want +got):\n%s", diff)
			}
			break
		}
		if d.Action != retry.ActionRetry || d.Reason != retry.ReasonPolicy {
			t.Fatalf("attempt %d: %v because of %v", a.N, d.Action, d.Reason)
		}
		waits = append(waits, d.At.Sub(a.Ended))
		a.Ended = d.At.Add(time.Millisecond) // the run takes a moment
	}
	if len(waits) != 17 {
		t.Fatalf("%d waits: %v", len(waits), waits)
	}
	for i, wait := range waits[:16] {
		if want := second << i; wait != want {
			t.Errorf("wait %d = %v, want %v", i+1, wait, want)
		}
	}
	if want := 24*time.Hour - 65535*second - 16*time.Millisecond; waits[16] != want {
		t.Errorf("the wait cut short by MaxAge = %v, want %v", waits[16], want)
	}
}

func TestDecide(t *testing.T) {
	steady := retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 3, MaxAge: time.Hour}
	unlimited := retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: -1, MaxAge: -1}
	sinceSent := steady
	sinceSent.AgeFrom = retry.Sent
	withRules := steady
	withRules.Rules = []retry.Rule{
		{Backoff: retry.Constant(0), Jitter: retry.None}, // matches nothing
		retry.On(io.EOF, retry.Constant(5*second), retry.None),
		retry.OnType[*fs.PathError](nil, retry.None),
		retry.On(io.EOF, retry.Constant(6*second), retry.None),
	}
	path := &fs.PathError{Op: "open", Path: "x", Err: io.EOF}

	type attempt struct {
		n     int
		ended time.Duration // after first
		err   error
	}
	type decision struct {
		action retry.Action
		reason retry.Reason
		after  time.Duration // after the end of the attempt
	}
	tests := []struct {
		name    string
		policy  retry.Policy
		attempt attempt
		want    decision
	}{
		{"plain error", steady, attempt{1, 0, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, time.Minute}},
		{"no error", steady, attempt{1, 0, nil}, decision{retry.ActionRetry, retry.ReasonPolicy, time.Minute}},
		{"attempt below 1", steady, attempt{-5, 0, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, time.Minute}},

		{"last attempt but one", steady, attempt{2, 0, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, time.Minute}},
		{"last attempt", steady, attempt{3, 0, errPlain}, decision{retry.ActionDeadLetter, retry.ReasonAttempts, 0}},
		{"beyond the last attempt", steady, attempt{math.MaxInt, 0, errPlain}, decision{retry.ActionDeadLetter, retry.ReasonAttempts, 0}},
		{"default attempts, last but one", retry.Policy{Backoff: retry.Constant(second), Jitter: retry.None}, attempt{19, 0, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, second}},
		{"default attempts, last", retry.Policy{}, attempt{20, 0, errPlain}, decision{retry.ActionDeadLetter, retry.ReasonAttempts, 0}},
		{"unlimited attempts", unlimited, attempt{1 << 31, 0, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, time.Minute}},

		{"due exactly at MaxAge", steady, attempt{1, 59 * time.Minute, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, time.Minute}},
		{"cut short to MaxAge", steady, attempt{1, time.Hour - second, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, second}},
		{"failed at MaxAge", steady, attempt{1, time.Hour, errPlain}, decision{retry.ActionDeadLetter, retry.ReasonAge, 0}},
		{"failed past MaxAge", steady, attempt{1, 2 * time.Hour, errPlain}, decision{retry.ActionDeadLetter, retry.ReasonAge, 0}},
		{"age from sent", sinceSent, attempt{1, 0, errPlain}, decision{retry.ActionDeadLetter, retry.ReasonAge, 0}},
		{"default age, within", retry.Policy{Jitter: retry.None}, attempt{1, 96*time.Hour - time.Minute, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, second}},
		{"default age, past", retry.Policy{}, attempt{1, 96 * time.Hour, errPlain}, decision{retry.ActionDeadLetter, retry.ReasonAge, 0}},
		{"unlimited age", unlimited, attempt{1, 365 * 24 * time.Hour, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, time.Minute}},
		{"attempts before age", steady, attempt{3, 2 * time.Hour, errPlain}, decision{retry.ActionDeadLetter, retry.ReasonAttempts, 0}},

		{"permanent", steady, attempt{1, 0, retry.Permanent(errPlain)}, decision{retry.ActionDeadLetter, retry.ReasonPermanent, 0}},
		{"permanent beyond attempts", steady, attempt{9, 0, retry.Permanent(errPlain)}, decision{retry.ActionDeadLetter, retry.ReasonPermanent, 0}},
		{"permanent, wrapped", steady, attempt{1, 0, fmt.Errorf("shipping: %w", retry.Permanent(errPlain))}, decision{retry.ActionDeadLetter, retry.ReasonPermanent, 0}},
		{"permanent inside another verdict", steady, attempt{1, 0, retry.Release(second, retry.RetryAfter(second, retry.Permanent(errPlain)))}, decision{retry.ActionDeadLetter, retry.ReasonPermanent, 0}},
		{"permanent beside another verdict", steady, attempt{1, 0, errors.Join(errPlain, retry.RetryAfter(second, errPlain), retry.Permanent(nil))}, decision{retry.ActionDeadLetter, retry.ReasonPermanent, 0}},

		{"retry after", steady, attempt{1, 0, retry.RetryAfter(7*second, errPlain)}, decision{retry.ActionRetry, retry.ReasonRetryAfter, 7 * second}},
		{"retry after, joined", steady, attempt{1, 0, errors.Join(errPlain, retry.RetryAfter(7*second, nil))}, decision{retry.ActionRetry, retry.ReasonRetryAfter, 7 * second}},
		{"retry after a negative time", steady, attempt{1, 0, retry.RetryAfter(-second, errPlain)}, decision{retry.ActionRetry, retry.ReasonRetryAfter, 0}},
		{"retry after the last attempt", steady, attempt{3, 0, retry.RetryAfter(7*second, errPlain)}, decision{retry.ActionDeadLetter, retry.ReasonAttempts, 0}},
		{"retry after MaxAge is not cut short", steady, attempt{1, 0, retry.RetryAfter(2*time.Hour, errPlain)}, decision{retry.ActionDeadLetter, retry.ReasonAge, 0}},
		{"retry after, exactly at MaxAge", steady, attempt{1, 0, retry.RetryAfter(time.Hour, errPlain)}, decision{retry.ActionRetry, retry.ReasonRetryAfter, time.Hour}},

		{"release", steady, attempt{1, 0, retry.Release(7*second, errPlain)}, decision{retry.ActionRelease, retry.ReasonRelease, 7 * second}},
		{"release without a reason", steady, attempt{1, 0, retry.Release(0, nil)}, decision{retry.ActionRelease, retry.ReasonRelease, 0}},
		{"release of a negative time", steady, attempt{1, 0, retry.Release(-second, nil)}, decision{retry.ActionRelease, retry.ReasonRelease, 0}},
		{"release beyond the limits", steady, attempt{9, 9 * time.Hour, retry.Release(7*second, errPlain)}, decision{retry.ActionRelease, retry.ReasonRelease, 7 * second}},
		{"release around retry after", steady, attempt{1, 0, retry.Release(7*second, retry.RetryAfter(second, errPlain))}, decision{retry.ActionRelease, retry.ReasonRelease, 7 * second}},
		{"retry after around release", steady, attempt{1, 0, retry.RetryAfter(second, retry.Release(7*second, errPlain))}, decision{retry.ActionRetry, retry.ReasonRetryAfter, second}},

		{"rule by value", withRules, attempt{1, 0, fmt.Errorf("reading: %w", io.EOF)}, decision{retry.ActionRetry, retry.ReasonPolicy, 5 * second}},
		{"first matching rule", withRules, attempt{2, 0, path}, decision{retry.ActionRetry, retry.ReasonPolicy, 5 * second}},
		{"rule by type, default backoff", withRules, attempt{2, 0, &fs.PathError{Err: errPlain}}, decision{retry.ActionRetry, retry.ReasonPolicy, 2 * second}},
		{"no rule matches", withRules, attempt{1, 0, errPlain}, decision{retry.ActionRetry, retry.ReasonPolicy, time.Minute}},
		{"rules leave the limits", withRules, attempt{3, 0, io.EOF}, decision{retry.ActionDeadLetter, retry.ReasonAttempts, 0}},
		{"steering before rules", withRules, attempt{1, 0, retry.RetryAfter(9*second, io.EOF)}, decision{retry.ActionRetry, retry.ReasonRetryAfter, 9 * second}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ended := first.Add(test.attempt.ended)
			got := test.policy.Decide(retry.Failure{
				N: test.attempt.n, Seed: "m", Sent: sent, First: first, Ended: ended, Err: test.attempt.err,
			})
			want := retry.Decision{Action: test.want.action, Reason: test.want.reason, At: ended.Add(test.want.after)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideWithoutKnownTimes(t *testing.T) {
	ended := first.Add(1000 * time.Hour)
	for _, from := range []retry.AgeFrom{retry.FirstReceive, retry.Sent} {
		p := retry.Policy{AgeFrom: from}
		if d := p.Decide(retry.Failure{N: 1, Ended: ended}); d.Action != retry.ActionRetry {
			t.Errorf("AgeFrom %d, no times known: %v because of %v", from, d.Action, d.Reason)
		}
		if d := p.Decide(retry.Failure{N: 1, First: first, Ended: ended}); d.Reason != retry.ReasonAge {
			t.Errorf("AgeFrom %d, first receive known: %v because of %v", from, d.Action, d.Reason)
		}
	}
}

// TestDecideUsesWait: the schedule that Wait foretells is the one that runs.
func TestDecideUsesWait(t *testing.T) {
	for _, j := range jitters {
		p := retry.Policy{Jitter: j, MaxAge: -1, MaxAttempts: -1}
		for n := 1; n <= 50; n++ {
			d := p.Decide(retry.Failure{N: n, Seed: messageID(n), First: first, Ended: first, Err: errPlain})
			if got, want := d.At.Sub(first), p.Wait(messageID(n), n); got != want {
				t.Errorf("jitter %v: Decide waits %v before retry %d, Wait says %v", j, got, n, want)
			}
		}
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	rules := []retry.Rule{retry.On(io.EOF, retry.List{second}, retry.Equal)}
	backoffs := []retry.Backoff{
		nil, retry.Exponential{Base: second}, retry.Exponential{Factor: 1.5}, retry.Constant(second),
		retry.Linear{}, retry.Polynomial{}, retry.List{second},
	}
	errs := []error{
		errPlain, fmt.Errorf("a: %w", errPlain), errors.Join(errPlain, io.EOF), retry.Permanent(errPlain),
		fmt.Errorf("a: %w", retry.RetryAfter(second, errPlain)), errors.Join(errPlain, retry.Release(second, nil)),
	}
	for _, b := range backoffs {
		for _, j := range jitters {
			for _, err := range errs {
				p := retry.Policy{Backoff: b, Jitter: j, Rules: rules}
				a := retry.Failure{N: 7, Seed: messageID(7), Sent: sent, First: first, Ended: first, Err: err}
				if n := testing.AllocsPerRun(100, func() { p.Decide(a) }); n != 0 {
					t.Errorf("%v: %v allocations after %q", policyText(p), n, err)
				}
			}
		}
	}
}

func policyText(p retry.Policy) string { return fmt.Sprintf("%#v with jitter %v", p.Backoff, p.Jitter) }

func TestExhausted(t *testing.T) {
	p := retry.Policy{MaxAttempts: 3, MaxAge: time.Hour}
	unlimited := retry.Policy{MaxAttempts: -1, MaxAge: -1}
	tests := []struct {
		name   string
		policy retry.Policy
		next   int
		now    time.Duration // after first
		want   retry.Reason  // zero: not exhausted
	}{
		{"first attempt", p, 1, 0, 0},
		{"first attempt, however late", p, 1, 1000 * time.Hour, 0},
		{"last attempt", p, 3, 0, 0},
		{"one too many", p, 4, 0, retry.ReasonAttempts},
		{"at MaxAge", p, 2, time.Hour, 0},
		{"arriving a little past MaxAge", p, 2, time.Hour + time.Minute, 0},
		{"past MaxAge", p, 2, time.Hour + time.Minute + 1, retry.ReasonAge},
		{"both", p, 4, 2 * time.Hour, retry.ReasonAttempts},
		{"default attempts", retry.Policy{}, 20, 0, 0},
		{"beyond default attempts", retry.Policy{}, 21, 0, retry.ReasonAttempts},
		{"beyond default age", retry.Policy{}, 2, 97 * time.Hour, retry.ReasonAge},
		{"unlimited", unlimited, 1 << 31, 10000 * time.Hour, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, exhausted := test.policy.Exhausted(test.next, first, sent, first.Add(test.now))
			if got != test.want || exhausted != (test.want != 0) {
				t.Errorf("Exhausted(%d) = %v, %v; want %v", test.next, got, exhausted, test.want)
			}
		})
	}
	p.AgeFrom = retry.Sent
	if reason, _ := p.Exhausted(2, first, sent, first.Add(2*time.Minute)); reason != retry.ReasonAge {
		t.Errorf("from sent: %v, want age", reason)
	}
}

// TestDecideAndExhaustedAgree: a retry that Decide grants is not given up at its
// due time, and one that Decide refuses would be.
func TestDecideAndExhaustedAgree(t *testing.T) {
	p := retry.Policy{Backoff: retry.Constant(10 * time.Minute), MaxAttempts: 12, MaxAge: time.Hour}
	for n := 1; n < 15; n++ {
		for minutes := range 120 {
			ended := first.Add(time.Duration(minutes) * time.Minute)
			d := p.Decide(retry.Failure{N: n, Seed: messageID(n), First: first, Ended: ended, Err: errPlain})
			reason, exhausted := p.Exhausted(n+1, first, sent, d.At)
			if granted := d.Action == retry.ActionRetry; granted && exhausted {
				t.Errorf("attempt %d ended after %d min: retried at %v, then exhausted by %v", n, minutes, d.At, reason)
			}
			if d.Reason == retry.ReasonAttempts && reason != retry.ReasonAttempts {
				t.Errorf("attempt %d ended after %d min: given up for attempts, then %v", n, minutes, reason)
			}
		}
	}
}

func TestWithDefaults(t *testing.T) {
	given := retry.Policy{Rules: []retry.Rule{{}, {Backoff: retry.Linear{Step: second}}}}
	got := given.WithDefaults()
	want := retry.Policy{
		Backoff:     retry.Exponential{Base: second, Factor: 2, Max: 12 * time.Hour},
		MaxAttempts: 20,
		MaxAge:      96 * time.Hour,
		Rules: []retry.Rule{
			{Backoff: retry.Exponential{Base: second, Factor: 2, Max: 12 * time.Hour}},
			{Backoff: retry.Linear{Base: second, Step: second, Max: 12 * time.Hour}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if given.Rules[0].Backoff != nil {
		t.Errorf("the rules of the policy changed to %v", given.Rules)
	}
	own := retry.Policy{Backoff: retry.Polynomial{Base: time.Minute}, Jitter: retry.None, MaxAttempts: -1, MaxAge: -1}
	want = own
	want.Backoff = retry.Polynomial{Base: time.Minute, Exponent: 2, Max: 12 * time.Hour}
	if diff := cmp.Diff(want, own.WithDefaults()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if list := (retry.Policy{Backoff: retry.List{second}}); !cmp.Equal(list.WithDefaults().Backoff, list.Backoff) {
		t.Errorf("a list changed to %v", list.WithDefaults().Backoff)
	}
}

func TestNames(t *testing.T) {
	got := fmt.Sprint(
		retry.ActionRetry, retry.ActionRelease, retry.ActionDeadLetter, retry.Action(0), retry.Action(4), "; ",
		retry.ReasonPolicy, retry.ReasonRetryAfter, retry.ReasonRelease, retry.ReasonPermanent,
		retry.ReasonAttempts, retry.ReasonAge, retry.ReasonReceives, retry.ReasonUnavailable, retry.ReasonCrash, retry.Reason(0), retry.ReasonCrash+1, "; ",
		retry.Full, retry.Decorrelated, retry.Percent(12.5), retry.Decorrelated+1,
	)
	const want = "retry release dead-letter Action(0) Action(4); " +
		"policy retry-after release permanent attempts age receives unavailable crash Reason(0) Reason(12); " +
		"full decorrelated 12.5% Jitter(5)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSteeringErrors(t *testing.T) {
	tests := []struct {
		err, bare error
		text      string
	}{
		{retry.Permanent(errPlain), retry.Permanent(nil), "permanent"},
		{retry.RetryAfter(time.Minute, errPlain), retry.RetryAfter(time.Minute, nil), "retry after 1m0s"},
		{retry.Release(second, errPlain), retry.Release(second, nil), "release for 1s"},
	}
	for _, test := range tests {
		if got, want := test.err.Error(), test.text+": connection refused"; got != want {
			t.Errorf("text %q, want %q", got, want)
		}
		if !errors.Is(test.err, errPlain) {
			t.Errorf("%q does not unwrap to its cause", test.err)
		}
		if test.bare == nil || test.bare.Error() != test.text || errors.Unwrap(test.bare) != nil {
			t.Errorf("without a cause: %q, want %q", test.bare, test.text)
		}
	}
}
