package repriselambda

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ErrUnknownOutcome is the error of an attempt with an unknown outcome: the connection broke, or
// the reply did not come in time. The function may have run, and may still be running.
var ErrUnknownOutcome = errors.New("repriselambda: the outcome of the invocation is unknown")

// replyMargin is how much longer than the function's own time a reply may take.
const replyMargin = 5 * time.Second

// call invokes f's function in the configured mode. Its errors are *[FunctionError] and
// [ErrUnknownOutcome], which are attempts, poison, and errors of invocations that have not
// happened.
func (r *retrier) call(ctx context.Context, f *failure) error {
	if r.cfg.Mode == ModeDirect {
		return r.callDirectly(ctx, f)
	}
	payload, err := f.enclose()
	if err != nil {
		return err
	}
	out, err := r.cfg.Lambda.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &f.function, InvocationType: types.InvocationTypeEvent, Payload: payload,
	}, once)
	switch {
	case err != nil:
		return diagnose(err)
	case out.StatusCode != http.StatusAccepted:
		return fmt.Errorf("Lambda answered %d, and not %d, to an asynchronous invocation", out.StatusCode, http.StatusAccepted)
	}
	return nil
}

// callDirectly invokes f's function and waits for it.
func (r *retrier) callDirectly(ctx context.Context, f *failure) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout+replyMargin)
	defer cancel()
	out, err := r.cfg.Lambda.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &f.function, InvocationType: types.InvocationTypeRequestResponse, Payload: f.payload,
	}, once)
	switch {
	case err != nil:
		return diagnose(err)
	case aws.ToString(out.FunctionError) != "":
		return readFunctionError(f.function, out.Payload)
	case out.StatusCode != http.StatusOK:
		return fmt.Errorf("Lambda answered %d, and not %d, to a synchronous invocation", out.StatusCode, http.StatusOK)
	}
	return nil
}

// once makes the SDK try a call only once: a repetition could run a function twice.
func once(o *lambda.Options) { o.Retryer = aws.NopRetryer{} }

// diagnose classifies an error of Invoke. See
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors.
func diagnose(err error) error {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && response.HTTPStatusCode() >= 300 {
		return diagnoseReply(err, response.HTTPStatusCode())
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return err // nothing was sent
	}
	_, sent := errors.AsType[*smithyhttp.RequestSendError](err)
	_, cut := errors.AsType[*smithy.DeserializationError](err)
	_, left := errors.AsType[*smithy.CanceledError](err) // our time was over: the SDK returns it in place of the first
	if sent || cut || left {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return err // before anything was sent
}

// diagnoseReply distinguishes Lambda's refusals: those of the request itself, which no repetition
// can fix, from temporary ones and from missing permissions, which an operator may fix.
func diagnoseReply(err error, status int) error {
	switch errorCode(err) {
	case "ResourceNotFoundException":
		return &poison{reasonNoFunction, err}
	case "RequestTooLargeException":
		return &poison{reasonTooLarge, err}
	case "InvalidRequestContentException", "InvalidParameterValueException", "UnsupportedMediaTypeException", "ValidationException":
		return &poison{reasonRefused, err}
	}
	if status == http.StatusRequestEntityTooLarge {
		return &poison{reasonTooLarge, err}
	}
	return err
}

// errorCode is the name of the error in Lambda's answer; empty if there is none.
func errorCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// remedy is what an operator can do about an invocation that did not happen.
func remedy(err error) string {
	switch errorCode(err) {
	case "AccessDeniedException":
		return "permit lambda:InvokeFunction on the function"
	case "RecursiveInvocationException":
		return "set RecursiveLoop to Allow for the function and the retry handler: Lambda takes their retries for an endless loop"
	case "TooManyRequestsException":
		return "none, if it passes; otherwise raise the function's concurrency, or lower the retry handler's MaximumConcurrency"
	}
	return "none, if it passes"
}

// longestRetryAfter limits the wait that Lambda may ask for.
const longestRetryAfter = 5 * time.Minute

// retryAfter is how long Lambda asks to wait before the next call.
func retryAfter(err error) time.Duration {
	throttled, ok := errors.AsType[*types.TooManyRequestsException](err)
	if !ok {
		return 0
	}
	seconds, err := strconv.ParseUint(aws.ToString(throttled.RetryAfterSeconds), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // which comes with the largest number
		return 0
	}
	return time.Duration(min(seconds, uint64(longestRetryAfter/time.Second))) * time.Second
}
