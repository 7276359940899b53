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
	return t.Add(-s.lead())
}

// lead is how far SQS's clock is ahead of ours.
func (s *serverClock) lead() time.Duration { return time.Duration(s.ahead.Load()) }
