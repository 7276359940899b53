package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// sound is a queue that no default policy conflicts with.
var sound = plan.Queue{
	Visibility:          30 * time.Second,
	Retention:           14 * 24 * time.Hour,
	MaxReceives:         100,
	DeadLetterARN:       "arn:aws:sqs:us-east-1:123456789012:dead",
	DeadLetterRetention: 0,
}

// with returns sound changed by f.
func with(f func(*plan.Queue)) plan.Queue {
	q := sound
	f(&q)
	return q
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policy   retry.Policy
		queue    plan.Queue
		settings plan.Settings
		code     string // of the one finding; empty: none
		severity plan.Severity
		says     string
	}{
		{name: "nothing to find", queue: sound},
		{name: "the queue's limit fills in for the policy's", queue: with(func(q *plan.Queue) { q.MaxReceives = 3 })},
		{
			name: "fewer receives than attempts", policy: retry.Policy{MaxAttempts: 20},
			queue: with(func(q *plan.Queue) { q.MaxReceives = 3 }),
			code:  plan.CodeReceivesLimit, severity: plan.Error, says: "allows 20 attempts, but the queue gives a message up after 3",
		},
		{
			name: "unlimited attempts", policy: retry.Policy{MaxAttempts: -1},
			queue: sound,
			code:  plan.CodeReceivesLimit, severity: plan.Error, says: "unlimited attempts",
		},
		{
			name: "FIFO receives", policy: retry.Policy{MaxAttempts: 20},
			queue: with(func(q *plan.Queue) { q.FIFO = true }),
			code:  plan.CodeFIFOReceives, severity: plan.Error, says: "at least 200",
		},
		{
			name:  "FIFO receives in tenfold",
			queue: with(func(q *plan.Queue) { q.FIFO = true; q.MaxReceives = 200 }), policy: retry.Policy{MaxAttempts: 20},
		},
		{
			name:  "no dead-letter queue",
			queue: with(func(q *plan.Queue) { q.MaxReceives, q.DeadLetterARN = 0, "" }),
			code:  plan.CodeNoDeadLetterQueue, severity: plan.Warning, says: "RedrivePolicy",
		},
		{
			name:     "a dead-letter queue of the consumer's",
			queue:    with(func(q *plan.Queue) { q.MaxReceives, q.DeadLetterARN = 0, "" }),
			settings: plan.Settings{DeadLetterURL: "https://sqs.us-east-1.amazonaws.com/123456789012/dead"},
		},
		{
			name:  "retention ends first",
			queue: with(func(q *plan.Queue) { q.Retention = time.Hour }),
			code:  plan.CodeRetention, severity: plan.Warning, says: "retries for 96h0m0s, but the queue deletes a message 1h0m0s after",
		},
		{
			name: "unlimited age is not held against the retention", policy: retry.Policy{MaxAge: -1},
			queue: with(func(q *plan.Queue) { q.Retention = time.Hour }),
		},
		{
			name:  "dead letters have no time left",
			queue: with(func(q *plan.Queue) { q.DeadLetterRetention = 14 * 24 * time.Hour }),
			code:  plan.CodeDeadLetterRetention, severity: plan.Warning, says: "14 days",
		},
		{
			name: "a wait beyond 12 hours", policy: retry.Policy{MaxAttempts: 3, Backoff: retry.List{time.Second, 20 * time.Hour}},
			queue: sound,
			code:  plan.CodeLongWait, severity: plan.Warning, says: "20h0m0s",
		},
		{
			name: "a wait beyond 12 hours that no attempt reaches", policy: retry.Policy{MaxAttempts: 2, Backoff: retry.List{time.Second, 20 * time.Hour}},
			queue: sound,
		},
		{
			name:     "visibility below the handler's timeout",
			queue:    sound,
			settings: plan.Settings{HandlerTimeout: time.Minute},
			code:     plan.CodeVisibility, severity: plan.Info, says: "30s",
		},
		{name: "nothing is known", queue: plan.Queue{DeadLetterARN: sound.DeadLetterARN}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := plan.Check(tt.policy, tt.queue, tt.settings)
			if tt.code == "" {
				if len(found) != 0 {
					t.Fatalf("found %v, want nothing", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("found %v, want one finding", found)
			}
			f := found[0]
			if f.Code != tt.code || f.Severity != tt.severity || !strings.Contains(f.String(), tt.says) || f.Remedy == "" {
				t.Errorf("found %v, want %s (%v) that says %q", f, tt.code, tt.severity, tt.says)
			}
		})
	}
}
