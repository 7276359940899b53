package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/reprise-sqs/reprise"
)

// statusError is an HTTP client's error that tells the status of the reply.
type statusError int

func (e statusError) Error() string   { return http.StatusText(int(e)) }
func (e statusError) StatusCode() int { return int(e) }

func TestIsUnavailable(t *testing.T) {
	reply := func(status int) error {
		return fmt.Errorf("operation error: %w", &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: errors.New("api error"),
		})
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"an ordinary error":        {errUnavailable, false},
		"marked":                   {fmt.Errorf("shipping: %w", reprise.Unavailable(errUnavailable)), true},
		"marked nil":               {reprise.Unavailable(nil), true},
		"marked, with a time":      {reprise.RetryAfter(time.Minute, reprise.Unavailable(errUnavailable)), true},
		"timeout of a context":     {fmt.Errorf("shipping: %w", context.DeadlineExceeded), true},
		"cancelled":                {context.Canceled, false},
		"refused connection":       {fmt.Errorf("Get: %w", refused), true},
		"bare refusal":             {syscall.ECONNREFUSED, true},
		"reset":                    {syscall.ECONNRESET, true},
		"no such host":             {&net.DNSError{Err: "no such host", IsNotFound: true}, true},
		"end of file":              {io.ErrUnexpectedEOF, false},
		"429":                      {statusError(429), true},
		"503":                      {fmt.Errorf("shipping: %w", statusError(503)), true},
		"404":                      {statusError(404), false},
		"the SDK's 500":            {reply(500), true},
		"the SDK's 400":            {reply(400), false},
		"the SDK's throttle":       {&throttled{}, true},
		"a panic with one of them": {&reprise.PanicError{Value: refused}, false},
	} {
		if got := reprise.IsUnavailable(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// throttled is what the SDK returns when DynamoDB has had enough.
type throttled struct{}

func (*throttled) Error() string     { return "too much" }
func (*throttled) ErrorCode() string { return "ProvisionedThroughputExceededException" }
