package reprise

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/reprise-sqs/reprise/internal/consumer"
)

// Client is the part of *sqs.Client that a [Consumer] calls.
//
// One that wraps another should return the ResultMetadata of the SDK's replies: its times show how far SQS's clock
// is ahead of this computer's, and how long a reply waited to be read. Without them both clocks are taken for equal;
// if they are more than two minutes apart, the histories of copies are not believed.
type Client interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// meteredClient counts and times every call of a Client, and turns its panics
// into errors: a Client may be the user's own code.
type meteredClient struct {
	Client
	observe func(context.Context, Call)
	made    [operations]atomic.Int64
}

// call runs f as one request of kind op about n messages. f returns how many
// entries were refused.
func (m *meteredClient) call(ctx context.Context, op Operation, n int, f func() (failed int, err error)) error {
	m.made[op].Add(1)
	if m.observe == nil {
		_, err := guard(f)
		return err
	}
	started := time.Now()
	failed, err := guard(f)
	if op == OpReceive {
		n, failed = failed, 0
	}
	m.observe(ctx, Call{Operation: op, Entries: n, Failed: failed, Duration: time.Since(started), Err: err})
	return err
}

// guard runs f and returns a panic of it as an error.
func guard(f func() (int, error)) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the SQS client panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return f()
}

// counts returns how many calls of each kind were made.
func (m *meteredClient) counts() Calls {
	return Calls{
		Receives:     m.made[OpReceive].Load(),
		Deletes:      m.made[OpDelete].Load(),
		Visibilities: m.made[OpVisibility].Load(),
		Heartbeats:   m.made[OpHeartbeat].Load(),
		Sends:        m.made[OpSend].Load(),
		Attributes:   m.made[OpAttributes].Load(),
	}
}

// failureOf returns what the machine needs to know about a request that failed with err.
func failureOf(err error) consumer.Failure {
	f := consumer.Failure{Err: err}
	note := func(is bool, k consumer.FailureKind) {
		if is {
			f.Kinds |= k
		}
	}
	note(!ambiguous(err), consumer.Rejected)
	note(unacceptable(err), consumer.Unacceptable)
	note(lasting(err), consumer.Lasting)
	note(denied(err), consumer.Denied)
	note(deniedByKey(err), consumer.DeniedByKey)
	note(overLimit(err), consumer.OverLimit)
	return f
}

// unacceptable reports whether SQS refused a request because of its content, so that it would
// refuse the same request again.
func unacceptable(err error) bool {
	if reply, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && reply.HTTPStatusCode() == http.StatusRequestEntityTooLarge {
		return true // most likely by a proxy
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	switch api.ErrorCode() {
	case "BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong",
		"RequestEntityTooLarge", "SerializationException", "InvalidMessageContents", "InvalidParameterValue", "MissingParameter", "UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation":
		return true
	}
	return false
}

// throttled reports whether code means that an entry of a batch was throttled: SQS may call
// that the sender's fault, but it passes.
func throttled(code string) bool {
	_, ok := awsretry.DefaultThrottleErrorCodes[code]
	return ok || code == "KmsThrottled" || code == "KMS.ThrottlingException"
}

// ambiguous reports whether SQS may have carried out a request that failed with err.
func ambiguous(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return !ok || api.ErrorFault() != smithy.FaultClient
}

// lasting reports whether err will not pass by itself: an operator has to grant a
// permission, fix credentials or create a queue. The codes are SQS's, as the API model and
// as the Query protocol spell them.
func lasting(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	switch api.ErrorCode() {
	case "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue",
		"AccessDenied", "AccessDeniedException", "InvalidAddress", "InvalidSecurity",
		"UnrecognizedClientException", "InvalidClientTokenId", "SignatureDoesNotMatch", "InvalidSignatureException",
		"IncompleteSignature", "ExpiredToken", "ExpiredTokenException",
		"KmsAccessDenied", "KMS.AccessDeniedException", "KmsDisabled", "KMS.DisabledException",
		"KmsNotFound", "KMS.NotFoundException", "KmsInvalidKeyUsage", "KMS.InvalidKeyUsageException",
		"KmsInvalidState", "KMS.InvalidStateException", "KmsOptInRequired", "KMS.OptInRequired":
		return true
	}
	return false
}

// attributes reads the named attributes of a queue.
func (c *Consumer) attributes(ctx context.Context, url string, names ...types.QueueAttributeName) (attributes map[string]string, err error) {
	err = c.client.call(ctx, OpAttributes, 0, func() (int, error) {
		out, err := c.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl:       &url,
			AttributeNames: names,
		})
		if err != nil {
			return 0, err
		}
		attributes = out.Attributes
		c.observeEndpoint(out.ResultMetadata)
		return 0, nil
	})
	return attributes, err
}

// overLimit reports whether a receive was refused because the queue's quota of messages in
// flight is used up.
func overLimit(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && strings.HasSuffix(api.ErrorCode(), "OverLimit")
}
