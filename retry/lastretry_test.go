package retry_test

import (
	"io"
	"math"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// TestLastRetriesAreSpread follows messages that fail together and at every
// attempt: each is tried exactly once in the last part of MaxAge, never later, and
// these last attempts do not all come back at one instant.
func TestLastRetriesAreSpread(t *testing.T) {
	const messages = 3000
	for name, test := range map[string]struct {
		policy retry.Policy
		part   time.Duration
	}{
		"a day, by the article":         {retry.Policy{Jitter: retry.FromBase, MaxAttempts: -1, MaxAge: 24 * time.Hour}, 144 * time.Minute},
		"the default":                   {retry.Policy{MaxAttempts: -1}, 576 * time.Minute},
		"waits that are short":          {retry.Policy{Backoff: retry.Exponential{Max: time.Minute}, MaxAttempts: -1, MaxAge: 4 * time.Hour}, time.Minute},
		"half of the wait":              {retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.Equal, MaxAttempts: -1, MaxAge: 20 * time.Hour}, 30 * time.Minute},
		"waits that get shorter":        {retry.Policy{Backoff: retry.List{time.Hour, time.Minute}, MaxAge: 20 * time.Minute, MaxAttempts: -1}, 2 * time.Minute},
		"the first wait passes the age": {retry.Policy{Backoff: retry.Constant(12 * time.Hour), Jitter: retry.Percent(20), MaxAge: time.Hour}, 6 * time.Minute},
		"since sent":                    {retry.Policy{MaxAttempts: -1, MaxAge: 24 * time.Hour, AgeFrom: retry.Sent}, 144 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			origin, age := first, test.policy.WithDefaults().MaxAge
			if test.policy.AgeFrom == retry.Sent {
				origin = sent
			}
			var inTenths [10]int
			for i := range messages {
				a := retry.Failure{N: 1, Seed: messageID(i), Sent: sent, First: first, Ended: first, Err: errPlain}
				within := 0
				for d := test.policy.Decide(a); d.Action == retry.ActionRetry; d = test.policy.Decide(a) {
					a.N, a.Ended = a.N+1, d.At
					if a.Ended.Sub(origin) >= age-test.part {
						within++
					}
				}
				last := a.Ended.Sub(origin)
				if within != 1 || last > age {
					t.Fatalf("%s: the last of %d attempts is at the age of %v, %d are in the last %v of %v", messageID(i), a.N, last, within, test.part, age)
				}
				inTenths[min(9, 10*(last-(age-test.part))/test.part)]++
			}
			for tenth, count := range inTenths {
				if count > messages/10*3 {
					t.Errorf("tenth %d of the last %v sees %d of %d last attempts: %v", tenth+1, test.part, count, messages, inTenths)
				}
			}
		})
	}
}

// TestLastRetry: the range of a retry that is cut short, on the edges.
func TestLastRetry(t *testing.T) {
	equal := retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.Equal, MaxAttempts: -1, MaxAge: 100 * time.Minute}
	ruled := equal
	ruled.Rules = []retry.Rule{retry.On(io.EOF, retry.Constant(2*time.Hour), retry.None)}
	none := equal
	none.Jitter = retry.None
	atOnce := retry.Policy{Backoff: retry.List{0, time.Hour}, MaxAttempts: -1, MaxAge: 100 * time.Minute}
	unlimited := equal
	unlimited.MaxAge = -1
	type want struct {
		from, to time.Duration // after first
		ok       bool
	}
	for name, test := range map[string]struct {
		policy retry.Policy
		n      int
		ended  time.Duration // after first
		err    error
		want   want
	}{
		"a tenth":                       {equal, 3, 50 * time.Minute, errPlain, want{90 * time.Minute, 100 * time.Minute, true}},
		"not before the shortest wait":  {equal, 3, 65 * time.Minute, errPlain, want{95 * time.Minute, 100 * time.Minute, true}},
		"the shortest wait is too long": {equal, 3, 75 * time.Minute, errPlain, want{90 * time.Minute, 100 * time.Minute, true}},
		"just before the last part":     {equal, 3, 90*time.Minute - 1, errPlain, want{90 * time.Minute, 100 * time.Minute, true}},
		"in the last part":              {equal, 3, 90 * time.Minute, errPlain, want{90 * time.Minute, 100 * time.Minute, false}},
		"a rule without jitter":         {ruled, 3, 95 * time.Minute, io.EOF, want{100 * time.Minute, 100 * time.Minute, true}},
		"without jitter":                {none, 3, 50 * time.Minute, errPlain, want{100 * time.Minute, 100 * time.Minute, true}},
		"no wait, in the last part":     {atOnce, 1, 90 * time.Minute, errPlain, want{90 * time.Minute, 100 * time.Minute, false}},
		"without jitter, at the age":    {none, 3, 100 * time.Minute, errPlain, want{100 * time.Minute, 100 * time.Minute, false}},
	} {
		t.Run(name, func(t *testing.T) {
			a := retry.Failure{N: test.n, Seed: "m", Sent: sent, First: first, Ended: first.Add(test.ended), Err: test.err}
			from, to, ok := test.policy.LastRetry(a)
			if got := (want{from.Sub(first), to.Sub(first), ok}); got != test.want {
				t.Errorf("LastRetry = %v, want %v", got, test.want)
			}
			d := test.policy.Decide(a)
			if granted := d.Action == retry.ActionRetry; granted != ok || granted && (d.At.Before(from) || d.At.After(to)) {
				t.Errorf("Decide = %v at %v, which is not in %v", d.Action, d.At.Sub(first), test.want)
			}
		})
	}
	if from, to, ok := unlimited.LastRetry(retry.Failure{First: first, Ended: first}); !ok || !from.IsZero() || !to.IsZero() {
		t.Errorf("without an age: %v, %v, %v", from, to, ok)
	}
}

// TestLastRetryIsUniform compares the ages of retries that are cut short with the
// uniform distribution over their range, by the Kolmogorov-Smirnov test at the 1 %
// level.
func TestLastRetryIsUniform(t *testing.T) {
	p := retry.Policy{Backoff: retry.Constant(10 * time.Hour), Jitter: retry.Percent(20), MaxAge: time.Hour}
	sample := make([]float64, 20_000)
	for i := range sample {
		d := p.Decide(retry.Failure{N: 1, Seed: messageID(i), First: first, Ended: first, Err: errPlain})
		sample[i] = float64(d.At.Sub(first)-54*time.Minute) / float64(6*time.Minute)
	}
	if distance := ksUniform(sample); distance > 1.63/math.Sqrt(float64(len(sample))) {
		t.Errorf("Kolmogorov-Smirnov distance from uniform over the last tenth is %.4f", distance)
	}
}

// TestLastRetryGolden pins instants, recomputed from the documentation of Jitter in
// another language. They must never change: processes of different versions share
// queues.
func TestLastRetryGolden(t *testing.T) {
	p := retry.Policy{Backoff: retry.Constant(10 * time.Hour), Jitter: retry.Percent(20), MaxAge: time.Hour}
	d := p.Decide(retry.Failure{N: 1, Seed: "5fea7756-0ea4-451a-a703-a558b933e274", First: first, Ended: first, Err: errPlain})
	if got := d.At.Sub(first); got != 3_349_202_992_618 {
		t.Errorf("the last retry is due after %d ns", got)
	}
}

// TestRetryAfterInTheLastPart: a handler's own wait is bound by MaxAge alone.
func TestRetryAfterInTheLastPart(t *testing.T) {
	p := retry.Policy{MaxAge: time.Hour}
	a := retry.Failure{N: 1, Seed: "m", First: first, Ended: first.Add(58 * time.Minute), Err: retry.RetryAfter(time.Minute, errPlain)}
	if d := p.Decide(a); d.Action != retry.ActionRetry || !d.At.Equal(first.Add(59*time.Minute)) {
		t.Errorf("%v at %v, want a retry at 59m", d.Action, d.At.Sub(first))
	}
}
