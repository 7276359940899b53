package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// of is an environment of those variables alone.
func of(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

// standard is the default policy, changed.
func standard(change func(*retry.Policy)) retry.Policy {
	p := repriselambda.DefaultRetry()
	change(&p)
	return p
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "retry.json")
	if err := os.WriteFile(file, []byte(`{"functions": {"billing": "constant(1m) jitter=none attempts=3"}, "permanent": ["ValidationError"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	billing := retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 3}
	for name, c := range map[string]struct {
		variables map[string]string
		want      repriselambda.RetryConfig
		table     string
	}{
		"nothing": {want: repriselambda.RetryConfig{Retry: repriselambda.DefaultRetry()}},
		"the article's": {
			variables: map[string]string{"MAX_AGE": "3600", "MAX_RETRIES": "5", "BASE_BACKOFF": "10"},
			want: repriselambda.RetryConfig{Retry: standard(func(p *retry.Policy) {
				p.Backoff = retry.Exponential{Base: 10 * time.Second, Max: retry.MaxVisibility}
				p.MaxAttempts, p.MaxAge = 6, time.Hour
			})},
		},
		"durations in words": {
			variables: map[string]string{"MAX_AGE": "720h", "BASE_BACKOFF": "13h"},
			want: repriselambda.RetryConfig{Retry: standard(func(p *retry.Policy) {
				p.Backoff = retry.Exponential{Base: 13 * time.Hour, Max: 13 * time.Hour}
				p.MaxAge = 30 * 24 * time.Hour
			})},
		},
		"no retry at all": {
			variables: map[string]string{"MAX_RETRIES": "0"},
			want:      repriselambda.RetryConfig{Retry: standard(func(p *retry.Policy) { p.MaxAttempts = 1 })},
		},
		"direct": {
			variables: map[string]string{"MODE": "direct", "TARGET_TIMEOUT": "60", "CONCURRENCY": "5", "AWS_LAMBDA_FUNCTION_NAME": "retrier", "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/1/dead", "IDEMPOTENCY_TABLE": "once", "ALLOWED_FUNCTIONS": " orders, billing:live,"},
			want: repriselambda.RetryConfig{
				Mode: repriselambda.ModeDirect, Retry: repriselambda.DefaultRetry(), Timeout: time.Minute, Concurrency: 5,
				Name: "retrier", DeadLetterURL: "https://sqs.eu-west-1.amazonaws.com/1/dead", AllowedFunctions: []string{"orders", "billing:live"},
			},
			table: "once",
		},
		"policies": {
			variables: map[string]string{"RETRY_POLICY": "linear(base=5s) jitter=equal age=2h", "RETRY_CONFIG": ` {"functions": {"billing": "constant(1m) jitter=none attempts=3"}}`},
			want: repriselambda.RetryConfig{
				Retry:     retry.Policy{Backoff: retry.Linear{Base: 5 * time.Second}, Jitter: retry.Equal, MaxAge: 2 * time.Hour},
				Functions: map[string]retry.Policy{"billing": billing},
			},
		},
		"policies in a file": {
			variables: map[string]string{"RETRY_CONFIG": file},
			want:      repriselambda.RetryConfig{Retry: repriselambda.DefaultRetry(), Functions: map[string]retry.Policy{"billing": billing}, Permanent: []string{"ValidationError"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			env, err := read(of(c.variables))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, env.retry); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			if env.table != c.table {
				t.Errorf("table %q, want %q", env.table, c.table)
			}
		})
	}
}

// TestReadBad: what makes no sense is named, with the problem and the remedy, and
// all of it at once.
func TestReadBad(t *testing.T) {
	for _, c := range []struct {
		variables map[string]string
		want      []string
	}{
		{map[string]string{"MODE": "sync"}, []string{`MODE is "sync"`, "set envelope or direct"}},
		{map[string]string{"MODE": "direct"}, []string{`TARGET_TIMEOUT is ""`, "set the longest timeout"}},
		{map[string]string{"MODE": "direct", "TARGET_TIMEOUT": "soon"}, []string{`TARGET_TIMEOUT is "soon"`, "set seconds"}},
		{map[string]string{"MAX_AGE": "0"}, []string{`MAX_AGE is "0"`, "above zero"}},
		{map[string]string{"MAX_AGE": "-5m", "MAX_RETRIES": "-1"}, []string{`MAX_AGE is "-5m"`, `MAX_RETRIES is "-1"`, "set 0 to 1000000"}},
		{map[string]string{"MAX_RETRIES": "many", "BASE_BACKOFF": "9000h"}, []string{`MAX_RETRIES is "many"`, `BASE_BACKOFF is "9000h"`, "a year"}},
		{map[string]string{"RETRY_POLICY": "exponental"}, []string{`RETRY_POLICY is "exponental"`, "write it like"}},
		{map[string]string{"RETRY_POLICY": "constant(1s)", "MAX_AGE": "60"}, []string{`MAX_AGE is "60"`, "set one of the two"}},
		{map[string]string{"RETRY_CONFIG": "absent.json"}, []string{`RETRY_CONFIG is "absent.json"`, "path of a file"}},
		{map[string]string{"RETRY_CONFIG": `{"function": {}}`}, []string{"RETRY_CONFIG", "unknown field", "write it like"}},
		{map[string]string{"RETRY_CONFIG": `{"functions": {"a": "constant(1x)"}}`}, []string{"RETRY_CONFIG", "1x"}},
		{map[string]string{"RETRY_CONFIG": `{} {}`}, []string{"RETRY_CONFIG", "text follows"}},
		{map[string]string{"CONCURRENCY": "0"}, []string{`CONCURRENCY is "0"`, "set 1 to"}},
		{map[string]string{"REPRISE_SIGNING_KEYS": "id:short"}, []string{"REPRISE_SIGNING_KEYS: line 1", "32 or more"}},
	} {
		_, err := read(of(c.variables))
		if err == nil {
			t.Errorf("%v: no error", c.variables)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q does not say %q", c.variables, err, want)
			}
		}
	}
}

// TestHandler: with each mode's own the function can be made, and what only the
// library knows to be wrong is reported too.
func TestHandler(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, variables := range []map[string]string{
		{},
		{"MODE": "direct", "TARGET_TIMEOUT": "60s", "IDEMPOTENCY_TABLE": "once"},
	} {
		if handle, err := handler(context.Background(), of(variables)); err != nil || handle == nil {
			t.Errorf("%v: %v", variables, err)
		}
	}
	for want, variables := range map[string]map[string]string{
		"Config.DeadLetterURL": {"DEAD_LETTER_QUEUE_URL": "arn:aws:sqs:us-east-1:1:dead"},
		"Config.Timeout":       {"MODE": "direct", "TARGET_TIMEOUT": "15m"},
		"RETRY_POLICY":         {"RETRY_POLICY": "?"},
		"AllowedFunctions[0]":  {"ALLOWED_FUNCTIONS": "orders*"},
	} {
		if _, err := handler(context.Background(), of(variables)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one about %s", variables, err, want)
		}
	}
}
