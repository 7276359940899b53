package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

func ExamplePolicy_Decide() {
	policy := retry.Policy{
		Backoff:     retry.Exponential{Base: 2 * time.Second},
		Jitter:      retry.None,
		MaxAttempts: 4,
	}
	received := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	a := retry.Failure{Seed: "5fea7756-0ea4-451a-a703-a558b933e274", First: received, Ended: received}
	a.Err = errors.New("connection refused")
	for a.N = 1; a.N <= 4; a.N++ {
		d := policy.Decide(a)
		fmt.Printf("attempt %d: %v at %s (%v)\n", a.N, d.Action, d.At.Format(time.TimeOnly), d.Reason)
		a.Ended = d.At
	}
	// Output:
	// attempt 1: retry at 09:00:02 (policy)
	// attempt 2: retry at 09:00:06 (policy)
	// attempt 3: retry at 09:00:14 (policy)
	// attempt 4: dead-letter at 09:00:14 (attempts)
}

// Jitter depends on the message and the retry alone, so every process knows when
// a message is due.
func ExamplePolicy_Wait() {
	policy := retry.Policy{Backoff: retry.Exponential{Base: time.Minute}, Jitter: retry.Equal}
	for n := 1; n <= 4; n++ {
		a := policy.Wait("5fea7756-0ea4-451a-a703-a558b933e274", n)
		b := policy.Wait("e2a1f1f2-6c54-4c0c-a8ab-1d6a3a8a5e0b", n)
		fmt.Println(n, a.Round(time.Second), b.Round(time.Second))
	}
	// Output:
	// 1 46s 33s
	// 2 1m6s 1m42s
	// 3 2m32s 3m38s
	// 4 5m9s 5m8s
}

// A message that nobody kept a history for: six receives, of which three were
// deploys within the first ten seconds.
func ExamplePolicy_Attempts() {
	policy := retry.Policy{Backoff: retry.Exponential{Base: 4 * time.Second}, Jitter: retry.None}
	fmt.Println(policy.Attempts("5fea7756", 0, 6, 13*time.Second))
	// Output: 3
}

func ExamplePolicy_UnmarshalText() {
	var policy retry.Policy
	err := policy.UnmarshalText([]byte("exponential(base=2s) jitter=20% attempts=20 age=24h"))
	fmt.Println(policy.WithDefaults().Backoff, err)

	err = policy.UnmarshalText([]byte("exponential jitter=lots"))
	fmt.Println(err)
	// Output:
	// {2s 2 12h0m0s} <nil>
	// policy text: "jitter=lots": unknown jitter "lots"; known are full, none, equal, from-base, decorrelated, or a percentage such as 20%
}

func ExamplePolicy_MarshalText() {
	text, err := retry.Policy{}.WithDefaults().MarshalText()
	fmt.Println(string(text), err)
	// Output: exponential(base=1s,factor=2,max=12h) jitter=full attempts=20 age=96h <nil>
}

// Rules give particular errors a schedule of their own.
func ExampleRule() {
	policy := retry.Policy{
		Jitter: retry.None,
		Rules: []retry.Rule{
			retry.On(context.DeadlineExceeded, retry.Constant(10*time.Minute), retry.None),
			retry.OnType[*net.OpError](retry.List{5 * time.Second, time.Minute}, retry.None),
		},
	}
	ended := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	for _, err := range []error{
		fmt.Errorf("shipping: %w", context.DeadlineExceeded),
		&net.OpError{Op: "dial", Err: errors.New("refused")},
		errors.New("anything else"),
	} {
		d := policy.Decide(retry.Failure{N: 1, Seed: "m", Ended: ended, Err: err})
		fmt.Println(d.At.Sub(ended))
	}
	// Output:
	// 10m0s
	// 5s
	// 1s
}

func ExampleRetryAfter() {
	ended := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	err := fmt.Errorf("shipping: %w", retry.RetryAfter(90*time.Second, errors.New("429 Too Many Requests")))
	d := retry.Policy{}.Decide(retry.Failure{N: 1, Seed: "m", Ended: ended, Err: err})
	fmt.Println(d.Action, d.At.Format(time.TimeOnly), d.Reason)
	// Output: retry 09:01:30 retry-after
}

// A wait of twelve hours, 40 minutes after the message was received: SQS counts
// its limit from the receive.
func ExampleVisibility() {
	requested := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	now := requested.Add(40 * time.Minute)
	fmt.Println(retry.Visibility(requested, now, now.Add(90*time.Second)))
	fmt.Println(retry.Visibility(requested, now, now.Add(12*time.Hour)))
	// Output:
	// 90 false
	// 40795 true
}
