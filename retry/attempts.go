package retry

import "time"

// attemptsWindow bounds the work of Attempts.
const attemptsWindow = 1024

// clockTolerance is by how much waits may exceed the time that was measured: the
// server's clock reaches a consumer in whole seconds, in the Date of a reply.
const clockTolerance = time.Second

// Attempts returns the number of the attempt that a message is at: made attempts
// are known to be behind it, from a history that it carries, and since then this
// is its receives-th receive, elapsed after the first. Without a history made is
// 0, and everything counts from the first receive.
//
// The number is made plus the number of receives or, if that is less, plus 1 + the
// most retries whose waits fit into elapsed, since receives also count what was no
// attempt: releases, crashes, and hops of a long wait.
//
// The waits are those of the seed; a policy with Rules is taken at the shortest
// wait of any. A wait that SQS cannot serve whole counts as served with the
// [AllowedShortfall], and the sum may exceed elapsed by a second, the resolution
// of a server's clock. Retries that a handler's [RetryAfter] hurried are counted
// only as far as the policy's own waits fit; MaxAge bounds such a message.
//
// At most 1,024 waits are considered: after those, every receive counts. It
// allocates nothing.
func (p Policy) Attempts(seed string, made, receives int, elapsed time.Duration) int {
	made = max(made, 0)
	if receives <= 1 {
		return made + 1
	}
	s := newStream(seed)
	left := addSaturating(max(elapsed, 0), clockTolerance)
	for n := 1; n < min(receives, attemptsWindow+1); n++ {
		left -= servedAtLeast(p.shortestWait(s, made+n))
		if left < 0 {
			return made + n
		}
	}
	return made + receives
}

// shortestWait returns the least wait before retry n that an error that does not
// steer can have had.
func (p *Policy) shortestWait(s stream, n int) time.Duration {
	shortest := p.Jitter.wait(p.Backoff, s, n)
	for i := range p.Rules {
		shortest = min(shortest, p.Rules[i].Jitter.wait(p.Rules[i].Backoff, s, n))
	}
	return shortest
}

// servedAtLeast returns the least time from one attempt's receive to the next
// attempt's for this wait between them. The twelve hours hold the run of the
// handler too, so a run and a wait that together pass them are cut no shorter
// than the visibility budget.
func servedAtLeast(wait time.Duration) time.Duration {
	const budget = MaxVisibility - visibilityMargin
	if wait <= budget {
		return wait
	}
	return max(budget, wait-AllowedShortfall(wait))
}
