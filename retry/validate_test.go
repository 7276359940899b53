package retry_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

func TestValidateAccepts(t *testing.T) {
	match := func(error) bool { return true }
	for _, p := range []retry.Policy{
		{},
		{MaxAttempts: -1, MaxAge: -1},
		{Jitter: retry.Percent(0)},
		{Jitter: retry.Percent(100), AgeFrom: retry.Sent},
		{Backoff: retry.Exponential{Factor: 1}},
		{Backoff: retry.Exponential{Base: 13 * time.Hour, Max: 720 * time.Hour}},
		{Backoff: retry.Linear{Base: second, Max: second}},
		{Backoff: retry.Polynomial{Exponent: 0.5}},
		{Backoff: retry.List{0, second}},
		{Backoff: retry.Constant(0)},
		{Backoff: retry.Func(func(int) time.Duration { return 0 })},
		{Rules: []retry.Rule{{Match: match}, retry.On(errPlain, retry.List{second}, retry.Decorrelated)}},
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%#v: %v", p, err)
		}
	}
}

// TestValidateRefuses: each message names the field, its value, the problem and
// the remedy.
func TestValidateRefuses(t *testing.T) {
	tests := []struct {
		policy retry.Policy
		want   string
	}{
		{retry.Policy{Backoff: retry.Exponential{Base: -second}},
			"retry: Backoff.Base is -1s: a wait cannot be negative; leave it zero for the default, 1s"},
		{retry.Policy{Backoff: retry.Exponential{Max: -second}},
			"retry: Backoff.Max is -1s: a wait cannot be negative; leave it zero for the default, 12h"},
		{retry.Policy{Backoff: retry.Exponential{Base: time.Minute, Max: second}},
			"retry: Backoff.Max is 1s: it is less than Base, 1m; raise Max or lower Base"},
		{retry.Policy{Backoff: retry.Linear{Base: 13 * time.Hour}},
			"retry: Backoff.Max is 12h: it is less than Base, 13h; raise Max or lower Base"},
		{retry.Policy{Backoff: retry.Exponential{Factor: 0.5}},
			"retry: Backoff.Factor is 0.5: waits would shrink; use a number of at least 1, or zero for the default, 2"},
		{retry.Policy{Backoff: retry.Exponential{Factor: math.NaN()}},
			"retry: Backoff.Factor is NaN: not a finite number; use a number of at least 1, or zero for the default, 2"},
		{retry.Policy{Backoff: retry.Polynomial{Exponent: math.Inf(1)}},
			"retry: Backoff.Exponent is +Inf: not a finite number; use a number of at least 0, or zero for the default, 2"},
		{retry.Policy{Backoff: retry.Polynomial{Exponent: -1}},
			"retry: Backoff.Exponent is -1: waits would shrink; use a number of at least 0, or zero for the default, 2"},
		{retry.Policy{Backoff: retry.Linear{Step: -second}},
			"retry: Backoff.Step is -1s: waits would shrink; leave it zero for the default, Base"},
		{retry.Policy{Backoff: retry.Constant(-second)},
			"retry: Backoff is -1s: a wait cannot be negative; use 0 or more"},
		{retry.Policy{Backoff: retry.List{}},
			"retry: Backoff is an empty retry.List: it gives no wait; list at least one, or leave Backoff nil for the default"},
		{retry.Policy{Backoff: retry.List{second, -second}},
			"retry: Backoff[1] is -1s: a wait cannot be negative; use 0 or more"},
		{retry.Policy{Backoff: retry.Func(nil)},
			"retry: Backoff is a nil retry.Func: it gives no wait; set a function, or leave Backoff nil for the default"},
		{retry.Policy{Jitter: retry.Decorrelated + 1},
			"retry: Jitter is 5: no such jitter; use retry.Full, None, Equal, FromBase, Decorrelated, or Percent(p) with p from 0 to 100"},
		{retry.Policy{Jitter: retry.Percent(101)},
			"retry: Jitter is a Percent out of range: no such jitter; use retry.Full, None, Equal, FromBase, Decorrelated, or Percent(p) with p from 0 to 100"},
		{retry.Policy{AgeFrom: 2},
			"retry: AgeFrom is 2: no such instant; use retry.FirstReceive or retry.Sent"},
		{retry.Policy{Rules: []retry.Rule{{Backoff: retry.List{second}}}},
			"retry: Rules[0].Match is nil: it matches nothing; set a func(error) bool, or use retry.On or retry.OnType"},
		{retry.Policy{Rules: []retry.Rule{retry.On(errPlain, nil, retry.Full), retry.On(errPlain, retry.List{}, retry.Full)}},
			"retry: Rules[1].Backoff is an empty retry.List: it gives no wait; list at least one, or leave Backoff nil for the default"},
	}
	for _, test := range tests {
		err := test.policy.Validate()
		if err == nil || err.Error() != test.want {
			t.Errorf("got  %v\nwant %v", err, test.want)
		}
		// What Validate refuses still decides without harm.
		for _, n := range []int{1, 7, 1 << 31} {
			if wait := test.policy.Wait("m", n); wait < 0 {
				t.Errorf("%v, and the wait before retry %d is %v", err, n, wait)
			}
		}
	}
}

func TestValidateReportsEveryProblem(t *testing.T) {
	err := retry.Policy{
		Backoff: retry.Exponential{Base: -1, Factor: 0.1, Max: -1},
		Jitter:  retry.Percent(-1),
		AgeFrom: 9,
		Rules:   []retry.Rule{{Jitter: 50}},
	}.Validate()
	for _, field := range []string{
		"Backoff.Base", "Backoff.Max", "Backoff.Factor", "Jitter", "AgeFrom", "Rules[0].Match", "Rules[0].Jitter",
	} {
		if err == nil || !strings.Contains(err.Error(), "retry: "+field+" is ") {
			t.Errorf("%s is not reported in:\n%v", field, err)
		}
	}
}
