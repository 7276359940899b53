package reprise_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestNewRefuses: New reports each bad input with its name, the problem and the remedy, and starts
// nothing.
func TestNewRefuses(t *testing.T) {
	q := reprisetest.NewQueue(t, nil)
	client, url, h := q.Direct(), q.URL(), reprise.HandlerFunc(kit.Succeed)
	for _, tt := range []struct {
		name   string
		client reprise.Client
		url    string
		h      reprise.Handler
		cfg    reprise.Config
		want   []string
	}{
		{"no client", nil, url, h, reprise.Config{}, []string{"client is nil", "sqs.NewFromConfig"}},
		{"no handler", client, url, nil, reprise.Config{}, []string{"handler is nil", "JSON(f)"}},
		{"no function for a handler", client, url, reprise.HandlerFunc(nil), reprise.Config{}, []string{"handler is nil"}},
		{"no function of JSON values", client, url, reprise.JSON[int](nil), reprise.Config{}, []string{"handler is nil"}},
		{"no function of JSON values and messages", client, url, reprise.JSONMessage[int](nil), reprise.Config{}, []string{"handler is nil"}},
		{"empty URL", client, "", h, reprise.Config{}, []string{"URL is empty", "GetQueueUrl"}},
		{"a name for a URL", client, "orders", h, reprise.Config{}, []string{`"orders"`, "not an http or https URL"}},
		{"an ARN for a URL", client, "arn:aws:sqs:us-east-1:123456789012:orders", h, reprise.Config{}, []string{"is an ARN", "GetQueueUrl"}},
		{"a URL without an account", client, "https://sqs.us-east-1.amazonaws.com/orders", h, reprise.Config{}, []string{"does not end in /account/name"}},
		{"a broken URL", client, "https://sqs\x7f/1/orders", h, reprise.Config{}, []string{"not an http or https URL"}},
		{"concurrency", client, url, h, reprise.Config{Concurrency: -1}, []string{"Config.Concurrency is -1", "1 to 100000"}},
		{"prefetch", client, url, h, reprise.Config{Prefetch: 1 << 20}, []string{"Config.Prefetch is 1048576", "negative number for none"}},
		{"handler timeout", client, url, h, reprise.Config{HandlerTimeout: -time.Second}, []string{"Config.HandlerTimeout is -1s"}},
		{"lease too short", client, url, h, reprise.Config{Lease: time.Second}, []string{"Config.Lease is 1s", "2s to 1h0m0s"}},
		{"lease too long", client, url, h, reprise.Config{Lease: 13 * time.Hour}, []string{"Config.Lease is 13h0m0s"}},
		{"lease of parts of a second", client, url, h, reprise.Config{Lease: 2500 * time.Millisecond}, []string{"Config.Lease is 2.5s", "whole seconds"}},
		{"a negative long poll", client, url, h, reprise.Config{LongPoll: -1}, []string{"Config.LongPoll is -1ns", "1s to 20s"}},
		{"a long poll of more than SQS's", client, url, h, reprise.Config{LongPoll: 21 * time.Second}, []string{"Config.LongPoll is 21s", "0 for 20s"}},
		{"a long poll of parts of a second", client, url, h, reprise.Config{LongPoll: 1500 * time.Millisecond}, []string{"Config.LongPoll is 1.5s", "whole seconds"}},
		{"stop budget", client, url, h, reprise.Config{StopBudget: -1}, []string{"Config.StopBudget is -1ns"}},
		{"dead-letter URL", client, url, h, reprise.Config{DeadLetterURL: "dead"}, []string{"Config.DeadLetterURL", `"dead"`}},
		{"the queue as its own dead-letter queue", client, url, h, reprise.Config{DeadLetterURL: url + "/"}, []string{"is the queue itself", "name another"}},
		{"policy", client, url, h, reprise.Config{Retry: retry.Policy{Backoff: retry.Exponential{Factor: -2}}}, []string{"Config.Retry", "factor"}},
		{"everything at once", nil, "", nil, reprise.Config{Lease: -1}, []string{"client is nil", "handler is nil", "URL is empty", "Config.Lease"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := reprise.New(tt.client, tt.url, tt.h, tt.cfg)
			if err == nil || c != nil {
				t.Fatal("accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// TestRunTwice: a consumer runs once.
func TestRunTwice(t *testing.T) {
	q := reprisetest.NewQueue(t, nil)
	c, err := reprise.New(q.Direct(), q.URL(), reprise.HandlerFunc(kit.Succeed), reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Status().Health; got != reprise.HealthNew {
		t.Errorf("health %v before Run, want new", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Errorf("Run of an ended context: %v, want nil after an empty drain", err)
	}
	if got := c.Status().Health; got != reprise.HealthStopped {
		t.Errorf("health %v after Run, want stopped", got)
	}
	if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Run was called twice") {
		t.Errorf("second Run: %v", err)
	}
}

// TestPanicErrorUnwraps: a PanicError unwraps to the panic's value if that is an error.
func TestPanicErrorUnwraps(t *testing.T) {
	if err := error(&reprise.PanicError{Value: kit.ErrUnavailable}); !errors.Is(err, kit.ErrUnavailable) {
		t.Error("does not unwrap to its value")
	}
	if err := error(&reprise.PanicError{Value: "text"}); errors.Unwrap(err) != nil || !strings.Contains(err.Error(), "text") {
		t.Errorf("%v", err)
	}
}
