package reprise

import (
	"errors"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/internal/world"
)

// TestSimulatedFailures checks that internal/simulation tells the machine the same of each failure of a
// request as this package tells it of SQS's error.
func TestSimulatedFailures(t *testing.T) {
	client := func(code string) error { return &smithy.GenericAPIError{Code: code, Fault: smithy.FaultClient} }
	for _, test := range []struct{ simulated, of error }{
		{world.ErrLost, errors.New("connection reset by peer")},
		{world.ErrThrottled, client("RequestThrottled")},
		{world.ErrServer, &smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer}},
		{world.ErrDenied, client("AccessDenied")},
		{world.ErrKey, client("KmsAccessDenied")},
		{world.ErrUnacceptable, client("InvalidMessageContents")},
		{engine.ErrOverLimit, client("OverLimit")},
	} {
		if shell, other := failureOf(test.of).Kinds, simulation.Failure(test.simulated).Kinds; shell != other {
			t.Errorf("%v: kinds %b in this package, %b in internal/simulation", test.simulated, shell, other)
		}
	}
}
