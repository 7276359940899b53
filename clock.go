package reprise

import (
	"sync"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"github.com/reprise-sqs/reprise/internal/clocks"
)

// serverClock estimates how far SQS's clock is ahead of ours, so that our clock's error does
// not falsify ages that are computed from SQS's timestamps.
type serverClock struct {
	ahead atomic.Int64 // nanoseconds

	mu       sync.Mutex
	estimate clocks.Ahead
}

// observe reads the difference between the clocks from the reply to a request of the time asked: the SDK
// computes it from the Date header. It returns for how long the reply had waited until now, to be read and taken in.
func (s *serverClock) observe(reply middleware.Metadata, asked, now time.Time) (late time.Duration) {
	skew, ok := awsmiddleware.GetAttemptSkew(reply)
	read, known := awsmiddleware.GetResponseAt(reply)
	if !ok || !known {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	late = s.estimate.Observe(skew, asked, read)
	s.ahead.Store(int64(s.estimate.Lead()))
	return late + clocks.Elapsed(read, now)
}

// lead returns how far SQS's clock is ahead of ours.
func (s *serverClock) lead() time.Duration { return time.Duration(s.ahead.Load()) }
