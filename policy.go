package reprise

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// guarded returns p with the user's code in it, backoffs and rules, made safe against panics,
// because the machine calls it where a panic would cost more than an attempt. report is
// called for each panic.
func guarded(p retry.Policy, report func(problem string)) retry.Policy {
	p.Backoff = guardedBackoff(p.Backoff, report)
	rules := make([]retry.Rule, len(p.Rules))
	for i, r := range p.Rules {
		match := r.Match
		r.Match = func(err error) (matches bool) {
			defer func() {
				if v := recover(); v != nil {
					report(fmt.Sprintf("the Match of rule %d of the retry policy panicked and counts as no match: %v\n%s", i, v, debug.Stack()))
				}
			}()
			return match(err)
		}
		r.Backoff = guardedBackoff(r.Backoff, report)
		rules[i] = r
	}
	p.Rules = rules
	return p
}

// guardedBackoff wraps a backoff of the user's. Those of package retry cannot panic and are
// returned as they are.
func guardedBackoff(b retry.Backoff, report func(problem string)) retry.Backoff {
	switch b.(type) {
	case nil, retry.Exponential, retry.Constant, retry.Linear, retry.Polynomial, retry.List:
		return b
	}
	return retry.Func(func(n int) (d time.Duration) {
		defer func() {
			if v := recover(); v != nil {
				d = retry.DefaultMax
				report(fmt.Sprintf("the retry policy's backoff panicked at retry %d and counts as %v: %v\n%s", n, d, v, debug.Stack()))
			}
		}()
		return b.Delay(n)
	})
}
