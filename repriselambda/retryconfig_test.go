package repriselambda_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// TestPolicyOfEachFunction is found by its ARN or its name, with or without what
// follows it.
func TestPolicyOfEachFunction(t *testing.T) {
	const arn = "arn:aws:lambda:us-east-1:123456789012:function:"
	functions := map[string]retry.Policy{
		arn + "a":      {Backoff: retry.Constant(time.Minute), Jitter: retry.None},
		"b":            {Backoff: retry.Constant(2 * time.Minute), Jitter: retry.None},
		"b:live":       {Backoff: retry.Constant(3 * time.Minute), Jitter: retry.None},
		arn + "a:blue": {Backoff: retry.Constant(4 * time.Minute), Jitter: retry.None},
	}
	for record, want := range map[string]struct {
		invoked string
		wait    time.Duration
	}{
		arn + "a:$LATEST": {arn + "a", time.Minute},
		arn + "a:1":       {arn + "a:1", time.Minute},
		arn + "a:blue":    {arn + "a:blue", 4 * time.Minute},
		arn + "b:$LATEST": {arn + "b", 2 * time.Minute},
		arn + "b:green":   {arn + "b:green", 2 * time.Minute},
		arn + "b:live":    {arn + "b:live", 3 * time.Minute},
		arn + "c:$LATEST": {arn + "c", 5 * time.Minute},
	} {
		t.Run(record, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, fails(0), repriselambda.RetryConfig{Functions: functions, Retry: retry.Policy{Backoff: retry.Constant(5 * time.Minute), Jitter: retry.None}})
				began := time.Now()
				s.queue.Send(strings.ReplaceAll(s.lambda.record(order, "RetriesExhausted", "{}"), flaky+":$LATEST", record))
				s.run(time.Hour)
				made := s.lambda.made()
				if len(made) != 1 || made[0].Function != want.invoked || made[0].At.Sub(began) != want.wait {
					t.Errorf("invoked %v, want %s after %v", made, want.invoked, want.wait)
				}
			})
		})
	}
}

// TestRulesSeeFunctionErrors: one kind of failure has a schedule of its own.
func TestRulesSeeFunctionErrors(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		synctest.Test(t, func(t *testing.T) {
			isTimeout := func(err error) bool {
				f, ok := err.(*repriselambda.FunctionError)
				return ok && f.Type == "Timeout"
			}
			s := newSystem(t, fails(3), repriselambda.RetryConfig{Mode: mode, Timeout: 20 * time.Second, Retry: retry.Policy{
				Rules: []retry.Rule{{Match: isTimeout, Backoff: retry.Constant(17 * time.Minute), Jitter: retry.None}},
			}})
			began := time.Now()
			s.lambda.invoke(order)
			s.run(24 * time.Hour)
			if took := time.Since(began); took < 51*time.Minute || took > 51*time.Minute+3*time.Second {
				t.Errorf("%v: three retries took %v, want 51 minutes", mode, took)
			}
		})
	}
}

// TestPermanentErrors are not retried, at whichever attempt they come.
func TestPermanentErrors(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		for _, after := range []int64{0, 2} {
			t.Run(fmt.Sprintf("%v after %d", mode, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var runs atomic.Int64
					s := newSystem(t, func(c call) *failed {
						if runs.Add(1) > after {
							return &failed{"ValidationError", "no such order"}
						}
						return always(c)
					}, repriselambda.RetryConfig{Mode: mode, Timeout: 20 * time.Second, Permanent: []string{"ValidationError"}})
					s.lambda.invoke(order)
					s.run(24 * time.Hour)
					letters, _ := s.letters()
					if len(letters) != 1 || letters[0].Attributes["reprise-reason"] != "permanent" || letters[0].Attributes["reprise-error-type"] != "ValidationError" || letters[0].Attributes["reprise-attempts"] != fmt.Sprint(after+1) {
						t.Errorf("dead letters %+v", letters)
					}
					if n := runs.Load(); n != after+1 {
						t.Errorf("%d runs, want %d", n, after+1)
					}
				})
			})
		}
	}
}

func TestRetryConfig(t *testing.T) {
	q := &service{}
	good := repriselambda.RetryConfig{Client: agreeable{}, Lambda: q.client()}
	for want, change := range map[string]func(*repriselambda.RetryConfig){
		"Config.Lambda is nil":          func(c *repriselambda.RetryConfig) { c.Lambda = nil },
		"client":                        func(c *repriselambda.RetryConfig) { c.Client = nil },
		"Config.Mode is Mode(7)":        func(c *repriselambda.RetryConfig) { c.Mode = 7 },
		"Config.Timeout is 0s":          func(c *repriselambda.RetryConfig) { c.Mode = repriselambda.ModeDirect },
		"Config.Timeout is 15m0s":       func(c *repriselambda.RetryConfig) { c.Mode, c.Timeout = repriselambda.ModeDirect, 15*time.Minute },
		"Config.DeadLetterURL":          func(c *repriselambda.RetryConfig) { c.DeadLetterURL = "arn:aws:sqs:us-east-1:1:dead" },
		"Config.Concurrency":            func(c *repriselambda.RetryConfig) { c.Concurrency = -1 },
		`Config.Functions["a:$LATEST"]`: func(c *repriselambda.RetryConfig) { c.Functions = map[string]retry.Policy{"a:$LATEST": {}} },
		`Config.Functions["a"]: retry: Back`: func(c *repriselambda.RetryConfig) {
			c.Functions = map[string]retry.Policy{"a": {Backoff: retry.Constant(-1)}}
		},
		"retry: Jitter": func(c *repriselambda.RetryConfig) { c.Retry.Jitter = 99 },
	} {
		cfg := good
		change(&cfg)
		if _, err := repriselambda.RetryHandler(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one that says %s", err, want)
		}
	}
	if _, err := repriselambda.RetryHandler(good); err != nil {
		t.Error(err)
	}
}
