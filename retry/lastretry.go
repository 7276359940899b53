package retry

import "time"

// lastShare is the share of MaxAge, at its end, over which last retries are spread.
const lastShare = 10

// LastRetry returns the range of instants from which Decide draws the retry after
// a, if the policy's wait would exceed MaxAge. It lies in the last part of MaxAge, which is as long
// as the widest range that the jitter can draw from, but no longer than a tenth of MaxAge; without
// jitter the range is MaxAge itself. An attempt that fails in that part is the last, so each
// message is tried there once, and messages that failed together do not all come back in one
// instant. The range does not begin before the end of the shortest wait that the jitter can draw,
// unless that exceeds MaxAge too.
//
// Ok is false if a is such a last attempt: none of the policy's own waits may
// follow it. Without a MaxAge, or without the instant from which it counts, from
// and to are zero and ok is true.
func (p Policy) LastRetry(f Failure) (from, to time.Time, ok bool) {
	origin, limit := p.ageLimit(f.First, f.Sent)
	if limit == noAgeLimit {
		return time.Time{}, time.Time{}, true
	}
	backoff, jitter := p.scheduleFor(f.Err)
	to = origin.Add(limit)
	from = to.Add(-lastPart(limit, backoff, jitter))
	if !f.Ended.Before(from) {
		return from, to, false
	}
	least, _ := jitter.bounds(backoff, max(f.N, 1))
	if earliest := f.Ended.Add(least); earliest.After(from) && !earliest.After(to) {
		from = earliest
	}
	return from, to, true
}

// lastPart returns the length of the part of an age limit in which last retries run. It is the same
// for every attempt, so that Decide recognises an attempt made there as the last.
func lastPart(limit time.Duration, b Backoff, j Jitter) time.Duration {
	if j == None {
		return 0
	}
	widest := time.Duration(0)
	for _, n := range [...]int{1, ceilingRetry} {
		least, longest := j.bounds(b, n)
		widest = max(widest, longest-least)
	}
	return min(limit/lastShare, widest)
}
