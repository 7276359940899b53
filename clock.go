package reprise

import (
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// serverClock estimates how far SQS's clock is ahead of ours, so that our clock's error does
// not falsify ages that are computed from SQS's timestamps.
type serverClock struct {
	ahead atomic.Int64 // nanoseconds
}

// skewNoise is the largest difference that may not be an error of a clock: a Date header
// counts whole seconds, and a reply takes its time.
const skewNoise = 3 * time.Second

// observe reads the difference between the clocks from a reply: the SDK computes it from the
// Date header.
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

// lead returns how far SQS's clock is ahead of ours.
func (s *serverClock) lead() time.Duration { return time.Duration(s.ahead.Load()) }
