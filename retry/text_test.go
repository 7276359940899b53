package retry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/retry"
)

func TestText(t *testing.T) {
	tests := []struct {
		text      string
		canonical string // "": text itself
		want      retry.Policy
	}{
		{
			text: "exponential(base=2s,factor=2,max=12h) jitter=full attempts=20 age=24h",
			want: retry.Policy{
				Backoff:     retry.Exponential{Base: 2 * second, Factor: 2, Max: 12 * time.Hour},
				MaxAttempts: 20,
				MaxAge:      24 * time.Hour,
			},
		},
		{text: "", canonical: "jitter=full"},
		{text: "jitter=full", want: retry.Policy{}},
		{text: "exponential jitter=full", want: retry.Policy{Backoff: retry.Exponential{}}},
		{
			text:      "\tsince=first-receive  exponential( max = 1h30m , base=1500ms )\njitter=equal ",
			canonical: "exponential(base=1.5s,max=1h30m) jitter=equal",
			want: retry.Policy{
				Backoff: retry.Exponential{Base: 1500 * time.Millisecond, Max: 90 * time.Minute},
				Jitter:  retry.Equal,
			},
		},
		{
			text:      "attempts=unlimited age=unlimited since=sent linear() jitter=none",
			canonical: "linear jitter=none attempts=unlimited age=unlimited since=sent",
			want: retry.Policy{
				Backoff: retry.Linear{}, Jitter: retry.None, MaxAttempts: -1, MaxAge: -1, AgeFrom: retry.Sent,
			},
		},
		{
			text: "linear(base=10s,step=5s,max=1m) jitter=from-base",
			want: retry.Policy{
				Backoff: retry.Linear{Base: 10 * second, Step: 5 * second, Max: time.Minute}, Jitter: retry.FromBase,
			},
		},
		{
			text: "polynomial(base=1m,exponent=1.5,max=100h0m0.000000001s) jitter=decorrelated",
			want: retry.Policy{
				Backoff: retry.Polynomial{Base: time.Minute, Exponent: 1.5, Max: 100*time.Hour + 1},
				Jitter:  retry.Decorrelated,
			},
		},
		{text: "jitter=full attempts=1 age=1ns", want: retry.Policy{MaxAttempts: 1, MaxAge: 1}},
		{text: "constant(30s) jitter=20%", want: retry.Policy{Backoff: retry.Constant(30 * second), Jitter: retry.Percent(20)}},
		{text: "constant(0s) jitter=0.01%", want: retry.Policy{Backoff: retry.Constant(0), Jitter: retry.Percent(0.01)}},
		{
			text: "list(1s,5s,1m,0s) jitter=0%",
			want: retry.Policy{Backoff: retry.List{second, 5 * second, time.Minute, 0}, Jitter: retry.Percent(0)},
		},
		{
			text:      "list(90m, 60s, 1ns, 3600s)",
			canonical: "list(1h30m,1m,1ns,1h) jitter=full",
			want:      retry.Policy{Backoff: retry.List{90 * time.Minute, time.Minute, 1, time.Hour}},
		},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			got := retry.Policy{MaxAttempts: 99, Rules: []retry.Rule{{}}} // what was there before must not survive
			if err := got.UnmarshalText([]byte(test.text)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			canonical := test.canonical
			if canonical == "" {
				canonical = test.text
			}
			if text, err := got.MarshalText(); err != nil || string(text) != canonical {
				t.Errorf("written %q, %v; want %q", text, err, canonical)
			}
		})
	}
}

func TestMarshalTextOfAnyNegativeLimit(t *testing.T) {
	text, err := retry.Policy{MaxAttempts: -7, MaxAge: -time.Hour}.MarshalText()
	if want := "jitter=full attempts=unlimited age=unlimited"; err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
}

type foreign struct{}

func (foreign) Delay(int) time.Duration { return 0 }

func TestMarshalTextRefuses(t *testing.T) {
	tests := []struct {
		policy retry.Policy
		want   string
	}{
		{retry.Policy{Backoff: retry.Func(func(int) time.Duration { return 0 })}, "Policy.Backoff, a retry.Func, has no text form"},
		{retry.Policy{Backoff: foreign{}}, "Policy.Backoff, a retry_test.foreign, has no text form"},
		{retry.Policy{Rules: []retry.Rule{retry.On(errPlain, nil, retry.Full)}}, "Policy.Rules has no text form"},
		{retry.Policy{Jitter: retry.Percent(-1)}, "Jitter is a Percent out of range"},
	}
	for _, test := range tests {
		text, err := test.policy.MarshalText()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("written %q, error %v; want an error with %q", text, err, test.want)
		}
	}
}

// TestUnmarshalTextRefuses: the error names the word, the problem and the remedy.
func TestUnmarshalTextRefuses(t *testing.T) {
	const backoffs = "known backoffs are exponential(base=,factor=,max=), linear(base=,step=,max=), " +
		"polynomial(base=,exponent=,max=), constant(WAIT), list(WAIT,WAIT,...)"
	const words = "known are a backoff, jitter=, attempts=, age=, since="
	const duration = "write a number with its unit, such as 500ms, 30s, 15m or 12h"
	tests := []struct{ text, want string }{
		{"fibonacci", `policy text: "fibonacci": unknown word; ` + words + "; " + backoffs},
		{"(base=2s)", `policy text: "(base=2s)": unknown word; ` + words + "; " + backoffs},
		{"tries=5", `policy text: "tries=5": unknown setting "tries"; ` + words},
		{"jitter=some", `policy text: "jitter=some": unknown jitter "some"; known are full, none, equal, from-base, decorrelated, or a percentage such as 20%`},
		{"jitter=120%", `policy text: "jitter=120%": not a percentage from 0 to 100; write one such as 20%`},
		{"jitter=x%", `policy text: "jitter=x%": not a percentage from 0 to 100; write one such as 20%`},
		{"attempts=0", `policy text: "attempts=0": not a number of 1 or more; write one, or unlimited, or leave the word out for the default`},
		{"attempts=many", `policy text: "attempts=many": not a number of 1 or more; write one, or unlimited, or leave the word out for the default`},
		{"age=14d", `policy text: "age=14d": not a positive duration; ` + duration + ", or unlimited, or leave the word out for the default"},
		{"age=0s", `policy text: "age=0s": not a positive duration; ` + duration + ", or unlimited, or leave the word out for the default"},
		{"age=-1h", `policy text: "age=-1h": not a positive duration; ` + duration + ", or unlimited, or leave the word out for the default"},
		{"since=birth", `policy text: "since=birth": unknown instant "birth"; known are first-receive and sent`},
		{"age=1h age=2h", `policy text: "age=2h": the age is given twice; keep one`},
		{"linear exponential", `policy text: "exponential": the backoff is given twice; keep one`},
		{"exponential(base=2s", `policy text: "exponential(base=2s": the parenthesis is not closed; end the backoff with )`},
		{"exponential()jitter=full", `policy text: "exponential()jitter=full": something follows the ); put a space between words`},
		{"exponential(base=2)", `policy text: "exponential(base=2)": base=2 is not a positive duration; ` + duration + ", or leave it out for the default"},
		{"exponential(base=0s)", `policy text: "exponential(base=0s)": base=0s is not a positive duration; ` + duration + ", or leave it out for the default"},
		{"exponential(factor=fast)", `policy text: "exponential(factor=fast)": factor=fast is not a positive number; write one such as 2 or 1.5, or leave it out for the default`},
		{"exponential(factor=0)", `policy text: "exponential(factor=0)": factor=0 is not a positive number; write one such as 2 or 1.5, or leave it out for the default`},
		{"exponential(factor=1e999)", `policy text: "exponential(factor=1e999)": factor=1e999 is not a positive number; write one such as 2 or 1.5, or leave it out for the default`},
		{"exponential(step=2s)", `policy text: "exponential(step=2s)": step=2s is unknown here, or given twice; ` + backoffs},
		{"exponential(2s)", `policy text: "exponential(2s)": 2s is unknown here, or given twice; ` + backoffs},
		{"linear(base=2s,base=3s)", `policy text: "linear(base=2s,base=3s)": base=3s is unknown here, or given twice; ` + backoffs},
		{"list(1s,,2s)", `policy text: "list(1s,,2s)": an argument is empty; remove it or complete it`},
		{"list(1s,soon)", `policy text: "list(1s,soon)": soon is not a duration; ` + duration},
		{"linear(base=)", `policy text: "linear(base=)": an argument is empty; remove it or complete it`},
		{"constant", `policy text: "constant": a constant has one wait; write one such as constant(30s), or a list`},
		{"constant(1s,2s)", `policy text: "constant(1s,2s)": a constant has one wait; write one such as constant(30s), or a list`},
		{"list()", `policy text "list()": retry: Backoff is an empty retry.List: it gives no wait; list at least one, or leave Backoff nil for the default`},
		{"exponential(factor=NaN)", `policy text "exponential(factor=NaN)": retry: Backoff.Factor is NaN: not a finite number; use a number of at least 1, or zero for the default, 2`},
	}
	for _, test := range tests {
		got := retry.Policy{MaxAttempts: 99}
		err := got.UnmarshalText([]byte(test.text))
		if err == nil || err.Error() != test.want {
			t.Errorf("%q:\ngot  %v\nwant %v", test.text, err, test.want)
		}
		if diff := cmp.Diff(retry.Policy{MaxAttempts: 99}, got); diff != "" {
			t.Errorf("%q: the policy changed in spite of the error:\n%s", test.text, diff)
		}
	}
}

// FuzzText: what can be read is written in one canonical way, which reads as the
// same policy.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "exponential(base=2s,factor=2,max=12h) jitter=full attempts=20 age=24h",
		"linear(base=1s,step=2s,max=3s) jitter=33.33% since=sent", "list(1s,2h45m) attempts=unlimited",
		"polynomial(exponent=1e-3) jitter=decorrelated", "constant(1.000000001s) age=unlimited", "exponential( factor = 1.7e+300 )",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var read, again retry.Policy
		if read.UnmarshalText([]byte(text)) != nil {
			return
		}
		canonical, err := read.MarshalText()
		if err != nil {
			t.Fatalf("%q was read as %#v, and cannot be written: %v", text, read, err)
		}
		if err := again.UnmarshalText(canonical); err != nil {
			t.Fatalf("%q was written as %q, and cannot be read: %v", text, canonical, err)
		}
		if diff := cmp.Diff(read, again); diff != "" {
			t.Errorf("%q and its canonical form %q differ:\n%s", text, canonical, diff)
		}
		if second, err := again.MarshalText(); err != nil || string(second) != string(canonical) {
			t.Errorf("%q is written as %q, then as %q, %v", text, canonical, second, err)
		}
	})
}
