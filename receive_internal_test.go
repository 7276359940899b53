package reprise

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// TestRepliesLost: of the requests that the SDK has repeated before the reply came, those that SQS may have carried out
// count. One that it has refused, as it refuses too many at once, has brought nothing: counted as well, it would explain
// the receives of a message that kills its process.
func TestRepliesLost(t *testing.T) {
	api := func(code string, fault smithy.ErrorFault) error {
		return &smithy.GenericAPIError{Code: code, Fault: fault}
	}
	cut := errors.New("connection reset by peer")
	throttled, broken := api("RequestThrottled", smithy.FaultClient), api("InternalError", smithy.FaultServer)
	for name, tt := range map[string]struct {
		before []error // the reply
		want   int
	}{
		"nothing was repeated":         {nil, 0},
		"cut connections":              {[]error{cut, cut}, 2},
		"throttled":                    {[]error{throttled, throttled, throttled}, 0},
		"failures of SQS":              {[]error{broken, api("ServiceUnavailable", smithy.FaultUnknown)}, 2},
		"throttled and cut":            {[]error{throttled, cut, throttled}, 1},
		"a request that took too long": {[]error{context.DeadlineExceeded}, 1},
	} {
		if got := repliesLost(repeated(t, tt.before)); got != tt.want {
			t.Errorf("%s: %d replies were lost, want %d", name, got, tt.want)
		}
	}
}

// repeated returns the metadata of a reply to a request that the SDK has made again after each of the errors.
func repeated(t *testing.T, before []error) middleware.Metadata {
	t.Helper()
	always := awsretry.NewStandard(func(o *awsretry.StandardOptions) {
		o.MaxAttempts, o.RateLimiter = len(before)+1, ratelimit.None
		o.Backoff = awsretry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		o.Retryables = []awsretry.IsErrorRetryable{awsretry.IsErrorRetryableFunc(func(error) aws.Ternary { return aws.TrueTernary })}
	})
	answer := middleware.FinalizeHandlerFunc(func(context.Context, middleware.FinalizeInput) (out middleware.FinalizeOutput, m middleware.Metadata, err error) {
		if len(before) > 0 {
			err, before = before[0], before[1:]
		}
		return out, m, err
	})
	_, reply, err := awsretry.NewAttemptMiddleware(always, func(r any) any { return r }).HandleFinalize(t.Context(), middleware.FinalizeInput{}, answer)
	if err != nil || len(before) > 0 {
		t.Fatalf("after %v: %d requests were not repeated", err, len(before))
	}
	return reply
}
