package retry

import "time"

// attemptsWindow bounds the work of Attempts.
const attemptsWindow = 1024

// clockTolerance is how much waits may exceed the measured time: a consumer sees the server's clock
// in whole seconds, in the Date of a reply.
const clockTolerance = time.Second

// longestPoll is SQS's limit of WaitTimeSeconds.
const longestPoll = 20 * time.Second

// Attempts returns the number of a message's current attempt. The message's history counts made
// earlier attempts; since then this is its receives-th receive, at the time elapsed after the
// first. Without a history made is 0, and everything counts from the first receive.
//
// The number is made plus the number of receives or, if that is less, plus 1 + the largest number
// of retries whose waits fit into elapsed, because receives also count releases, crashes, and hops
// of a long wait, which are not attempts.
//
// The waits are those of the seed; for a policy with Rules the shortest wait of all rules is used.
// A wait that SQS cannot serve completely counts as served with the [AllowedShortfall], and the sum
// may exceed elapsed by a second, the resolution of a server's clock. Retries that came earlier
// because of a handler's [RetryAfter] are counted only as far as the policy's own waits fit; MaxAge
// limits such a message.
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

// shortestWait returns the shortest possible wait before retry n after a plain error.
func (p *Policy) shortestWait(s stream, n int) time.Duration {
	shortest := p.Jitter.wait(p.Backoff, s, n)
	for i := range p.Rules {
		shortest = min(shortest, p.Rules[i].Jitter.wait(p.Rules[i].Backoff, s, n))
	}
	return shortest
}

// servedAtLeast returns the shortest time from one attempt's receive to the next attempt's receive
// with this wait between them. The twelve hours include the run of the handler, so a run and a wait
// that together exceed them still take at least the visibility budget. They also include the long
// poll, which the time from receive to receive does not.
func servedAtLeast(wait time.Duration) time.Duration {
	const budget = MaxVisibility - visibilityMargin - longestPoll
	if wait <= budget {
		return wait
	}
	return max(budget, wait-AllowedShortfall(wait))
}
