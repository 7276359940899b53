package reprise

import (
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// serverClock estimates how far SQS's clock is ahead of ours, so that ages
// computed from SQS's timestamps are not wrong by our clock's error.
type serverClock struct {
	ahead atomic.Int64 // nanoseconds
}

// skewNoise is what a Date header, which counts whole seconds, and a call's
// latency can seem to differ without any clock being wrong.
const skewNoise = 3 * time.Second

// observe learns from a reply's Date header, which the SDK keeps as the
// difference to our clock.
func (s *serverClock) observe(reply middleware.Metadata) {
	skew, ok := awsmiddleware.GetAttemptSkew(reply)
	if !ok {
		return
	}
	if skew.Abs() < skewNoise {
		skew = 0
	}
	s.ahead.Store(int64(skew))
}

// local translates an instant of SQS's clock to ours. Zero stays zero.
func (s *serverClock) local(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-time.Duration(s.ahead.Load()))
}

// server translates an instant of our clock to SQS's. See local.
func (s *serverClock) server(t time.Time) time.Time {
	return t.Add(time.Duration(s.ahead.Load()))
}

// elapsed is the time from then to now: the larger of what the monotonic and the
// wall clock say. A suspended machine stops the monotonic clock while SQS goes
// on counting.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)), 0)
}

// passed says that now is at or after t by either clock. See elapsed.
func passed(t, now time.Time) bool {
	return !now.Before(t) || !now.Round(0).Before(t.Round(0))
}

// ewma is an exponentially weighted mean of durations.
type ewma struct{ mean time.Duration }

func (e *ewma) add(d time.Duration) {
	if e.mean == 0 {
		e.mean = d
		return
	}
	e.mean += (d - e.mean) / 8
}
