package retry

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/clocks"
)

// MaxVisibility is how long SQS lets one receive hide a message. It counts from the ReceiveMessage
// request, and SQS refuses a timeout that reaches it exactly. See
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html.
const MaxVisibility = 12 * time.Hour

// visibilityMargin keeps requests below MaxVisibility. AWS suggests 43,195 s instead of 43,200 s:
// the server's time began before the reply arrived, and the request that hides the message takes
// time too.
const visibilityMargin = 5 * time.Second

// Visibility returns the seconds of visibility timeout that hide a message until
// due, if sent now, for a message whose ReceiveMessage request began at
// requested. They are rounded up, so that the message never returns early, and
// end 5 s before the twelve hours that SQS grants from the request. Short reports that they do not
// reach due.
//
// The seconds are at least 1, because 0 would make a failing message come back in a tight loop:
// only a zero due, which asks for the message to be visible at once, gives 0. The only other 0,
// with short set, reports that the twelve hours are used up: SQS has taken the message back, and no
// request should be sent.
func Visibility(requested, now, due time.Time) (seconds int32, short bool) {
	if due.IsZero() {
		return 0, false
	}
	held := clocks.Elapsed(requested, now)
	if held+time.Second >= MaxVisibility {
		return 0, true
	}
	// Inside the margin one second still fits under the limit.
	budget := max((MaxVisibility - visibilityMargin - held).Truncate(time.Second), time.Second)
	wanted := due.Sub(now)
	if wanted > budget {
		return int32(budget / time.Second), true
	}
	return int32((max(wanted, 1) + time.Second - 1) / time.Second), false
}

// AllowedShortfall is how much a wait may be cut to fit into the twelve hours of one receive, so
// that the message need not be hidden a second time: 1 % of the wait, at least a minute.
func AllowedShortfall(wait time.Duration) time.Duration {
	return max(wait/100, time.Minute)
}
