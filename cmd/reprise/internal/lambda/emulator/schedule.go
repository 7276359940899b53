package emulator

import "time"

// condition is why Lambda has finished with an asynchronous event.
type condition string

const (
	succeeded        condition = "Success"
	retriesExhausted condition = "RetriesExhausted"
	eventAgeExceeded condition = "EventAgeExceeded"
	zeroConcurrency  condition = "ZeroReservedConcurrency"
)

// The waits of Lambda's asynchronous queue.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
const (
	firstRetryWait    = time.Minute
	laterRetryWait    = 2 * time.Minute
	firstThrottleWait = time.Second
	maxThrottleWait   = 5 * time.Minute
)

// schedule decides when an asynchronous event is invoked again. It does not wait.
type schedule struct {
	retries int
	maxAge  time.Duration
	scale   float64 // by which every wait and the age are shortened
}

func newSchedule(a AsyncConfig, scale float64) schedule {
	return schedule{retries: *a.MaxRetryAttempts, maxAge: a.MaxEventAge, scale: scale}
}

// afterFailure decides about an event of this age after its failures-th failure: it is invoked
// again after wait, or given up now if why is set.
func (s schedule) afterFailure(failures int, age time.Duration) (wait time.Duration, why condition) {
	if failures > s.retries {
		return 0, retriesExhausted
	}
	if failures == 1 {
		return s.within(firstRetryWait, age)
	}
	return s.within(laterRetryWait, age)
}

// afterThrottle decides about an event after its throttles-th throttle or server error.
func (s schedule) afterThrottle(throttles int, age time.Duration) (wait time.Duration, why condition) {
	return s.within(throttleWait(throttles), age)
}

// throttleWait doubles with each throttle, up to a bound.
func throttleWait(throttles int) time.Duration {
	wait := firstThrottleWait
	for n := 1; n < throttles && wait < maxThrottleWait; n++ {
		wait *= 2
	}
	return min(wait, maxThrottleWait)
}

// within gives up an event that would be too old after wait. Lambda does so at once,
// rather than when the event has reached its age.
func (s schedule) within(wait, age time.Duration) (time.Duration, condition) {
	wait = s.scaled(wait)
	if age+wait >= s.scaled(s.maxAge) {
		return 0, eventAgeExceeded
	}
	return wait, ""
}

func (s schedule) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.scale)
}
