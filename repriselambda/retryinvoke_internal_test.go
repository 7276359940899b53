package repriselambda

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// TestRetryAfterOfLambda: what Lambda asks to wait is believed up to five minutes, whatever it writes.
func TestRetryAfterOfLambda(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "1.5": 0,
		"0": 0, "2": 2 * time.Second, "300": 5 * time.Minute, "301": 5 * time.Minute,
		"9223372037":           5 * time.Minute, // seconds are more nanoseconds than a duration has
		"18446744073":          5 * time.Minute, // as a duration, a third of a second
		"99999999999999999999": 5 * time.Minute,
	} {
		if got := retryAfter(&types.TooManyRequestsException{RetryAfterSeconds: aws.String(text)}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := retryAfter(errors.Join(&types.TooManyRequestsException{})); got != 0 {
		t.Errorf("without a number: %v, want 0", got)
	}
	if got := retryAfter(&types.ServiceException{}); got != 0 {
		t.Errorf("of another error: %v, want 0", got)
	}
}
