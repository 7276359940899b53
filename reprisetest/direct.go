package reprisetest

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Direct has the methods of *sqs.Client that a consumer calls, directly on the server: the same
// inputs, outputs and error types, without encoding, signing, checksums, options and the SDK's
// retries.
type Direct struct {
	server *sqsserver.Server
}

// Direct returns a client that reaches every queue of the server without the SDK.
func (q *Queue) Direct() *Direct { return &Direct{q.server} }

// ReceiveMessage implements reprise.Client.
func (d *Direct) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	request := &sqsserver.ReceiveMessageInput{
		QueueUrl:                    aws.ToString(in.QueueUrl),
		MaxNumberOfMessages:         unlessZero(in.MaxNumberOfMessages),
		VisibilityTimeout:           unlessZero(in.VisibilityTimeout),
		WaitTimeSeconds:             unlessZero(in.WaitTimeSeconds),
		MessageAttributeNames:       in.MessageAttributeNames,
		MessageSystemAttributeNames: attributeNames(in.MessageSystemAttributeNames),
		AttributeNames:              attributeNames(in.AttributeNames), //nolint:staticcheck // deprecated, but clients still send it
		ReceiveRequestAttemptId:     aws.ToString(in.ReceiveRequestAttemptId),
	}
	reply, err := d.server.ReceiveMessage(ctx, request)
	if err != nil {
		return nil, sdkError("ReceiveMessage", err)
	}
	out := &sqs.ReceiveMessageOutput{}
	for i := range reply.Messages {
		out.Messages = append(out.Messages, sdkMessage(&reply.Messages[i]))
	}
	return out, nil
}

// unlessZero omits zero values, as the SDK does for these parameters.
func unlessZero(n int32) sqsserver.OptionalInt {
	return sqsserver.OptionalInt{Value: n, Set: n != 0}
}

func attributeNames[N ~string](in []N) []string {
	var names []string
	for _, name := range in {
		names = append(names, string(name))
	}
	return names
}

func sdkMessage(m *sqsserver.Message) types.Message {
	out := types.Message{
		MessageId:     aws.String(m.MessageId.String()),
		ReceiptHandle: &m.ReceiptHandle,
		MD5OfBody:     aws.String(m.MD5OfBody.String()),
		Body:          &m.Body,
	}
	if attributes := maps.Collect(m.Attributes.All()); len(attributes) > 0 {
		out.Attributes = attributes
	}
	if len(m.MessageAttributes) > 0 {
		out.MD5OfMessageAttributes = aws.String(m.MD5OfMessageAttributes.String())
		out.MessageAttributes = make(map[string]types.MessageAttributeValue, len(m.MessageAttributes))
	}
	for _, a := range m.MessageAttributes {
		value := types.MessageAttributeValue{DataType: aws.String(a.DataType)}
		if a.BinaryValue != nil {
			value.BinaryValue = append([]byte{}, a.BinaryValue...)
		} else {
			value.StringValue = aws.String(a.StringValue)
		}
		out.MessageAttributes[a.Name] = value
	}
	return out
}

// DeleteMessageBatch implements reprise.Client.
func (d *Direct) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	request := &sqsserver.DeleteMessageBatchInput{QueueUrl: aws.ToString(in.QueueUrl)}
	for _, e := range in.Entries {
		request.Entries = append(request.Entries, sqsserver.DeleteMessageBatchRequestEntry{
			Id:            aws.ToString(e.Id),
			ReceiptHandle: aws.ToString(e.ReceiptHandle),
		})
	}
	reply, err := d.server.DeleteMessageBatch(ctx, request)
	if err != nil {
		return nil, sdkError("DeleteMessageBatch", err)
	}
	out := &sqs.DeleteMessageBatchOutput{Failed: sdkFailed(reply.Failed)}
	for _, e := range reply.Successful {
		out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: aws.String(e.Id)})
	}
	return out, nil
}

// ChangeMessageVisibilityBatch implements reprise.Client.
func (d *Direct) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	request := &sqsserver.ChangeMessageVisibilityBatchInput{QueueUrl: aws.ToString(in.QueueUrl)}
	for _, e := range in.Entries {
		request.Entries = append(request.Entries, sqsserver.ChangeMessageVisibilityBatchRequestEntry{
			Id:                aws.ToString(e.Id),
			ReceiptHandle:     aws.ToString(e.ReceiptHandle),
			VisibilityTimeout: sqsserver.Int(e.VisibilityTimeout),
		})
	}
	reply, err := d.server.ChangeMessageVisibilityBatch(ctx, request)
	if err != nil {
		return nil, sdkError("ChangeMessageVisibilityBatch", err)
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{Failed: sdkFailed(reply.Failed)}
	for _, e := range reply.Successful {
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: aws.String(e.Id)})
	}
	return out, nil
}

// SendMessageBatch implements reprise.Client.
func (d *Direct) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	request := &sqsserver.SendMessageBatchInput{QueueUrl: aws.ToString(in.QueueUrl)}
	for i := range in.Entries {
		e := &in.Entries[i]
		request.Entries = append(request.Entries, sqsserver.SendMessageBatchRequestEntry{
			Id: aws.ToString(e.Id),
			SendMessageEntry: sqsserver.SendMessageEntry{
				MessageBody:             aws.ToString(e.MessageBody),
				DelaySeconds:            unlessZero(e.DelaySeconds),
				MessageAttributes:       serverAttributes(e.MessageAttributes),
				MessageSystemAttributes: serverSystemAttributes(e.MessageSystemAttributes),
				MessageDeduplicationId:  aws.ToString(e.MessageDeduplicationId),
				MessageGroupId:          aws.ToString(e.MessageGroupId),
			},
		})
	}
	reply, err := d.server.SendMessageBatch(ctx, request)
	if err != nil {
		return nil, sdkError("SendMessageBatch", err)
	}
	out := &sqs.SendMessageBatchOutput{Failed: sdkFailed(reply.Failed)}
	for _, e := range reply.Successful {
		out.Successful = append(out.Successful, sdkSent(e))
	}
	return out, nil
}

func sdkSent(e sqsserver.SendMessageBatchResultEntry) types.SendMessageBatchResultEntry {
	out := types.SendMessageBatchResultEntry{
		Id:                           aws.String(e.Id),
		MessageId:                    aws.String(e.MessageId.String()),
		MD5OfMessageBody:             aws.String(e.MD5OfMessageBody.String()),
		MD5OfMessageAttributes:       unlessEmpty(e.MD5OfMessageAttributes.String()),
		MD5OfMessageSystemAttributes: unlessEmpty(e.MD5OfMessageSystemAttributes.String()),
	}
	if e.SequenceNumber != 0 {
		out.SequenceNumber = aws.String(strconv.FormatUint(e.SequenceNumber, 10))
	}
	return out
}

func unlessEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// serverAttributes: the server puts them in order.
func serverAttributes(attributes map[string]types.MessageAttributeValue) []sqsserver.MessageAttribute {
	var out []sqsserver.MessageAttribute
	for name, value := range attributes {
		out = append(out, sqsserver.MessageAttribute{
			Name:        name,
			DataType:    aws.ToString(value.DataType),
			StringValue: aws.ToString(value.StringValue),
			BinaryValue: append([]byte(nil), value.BinaryValue...), // the server keeps it
		})
	}
	return out
}

func serverSystemAttributes(attributes map[string]types.MessageSystemAttributeValue) []sqsserver.MessageAttribute {
	var out []sqsserver.MessageAttribute
	for name, value := range attributes {
		out = append(out, sqsserver.MessageAttribute{
			Name:        name,
			DataType:    aws.ToString(value.DataType),
			StringValue: aws.ToString(value.StringValue),
		})
	}
	return out
}

// GetQueueAttributes implements reprise.Client.
func (d *Direct) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	request := &sqsserver.GetQueueAttributesInput{QueueUrl: aws.ToString(in.QueueUrl)}
	for _, name := range in.AttributeNames {
		request.AttributeNames = append(request.AttributeNames, string(name))
	}
	reply, err := d.server.GetQueueAttributes(ctx, request)
	if err != nil {
		return nil, sdkError("GetQueueAttributes", err)
	}
	return &sqs.GetQueueAttributesOutput{Attributes: reply.Attributes}, nil
}

// GetQueueUrl implements reprise.Client.
func (d *Direct) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	reply, err := d.server.GetQueueUrl(ctx, &sqsserver.GetQueueUrlInput{
		QueueName:              aws.ToString(in.QueueName),
		QueueOwnerAWSAccountId: aws.ToString(in.QueueOwnerAWSAccountId),
	})
	if err != nil {
		return nil, sdkError("GetQueueUrl", err)
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: &reply.QueueUrl}, nil
}

func sdkFailed(entries []sqsserver.BatchResultErrorEntry) []types.BatchResultErrorEntry {
	var out []types.BatchResultErrorEntry
	for _, e := range entries {
		out = append(out, types.BatchResultErrorEntry{
			Id: aws.String(e.Id), Code: aws.String(e.Code), Message: aws.String(e.Message), SenderFault: e.SenderFault,
		})
	}
	return out
}

// sdkError converts a server's error to the one that the SDK would return for it.
func sdkError(operation string, err error) error {
	var e *sqsserver.Error
	switch {
	case errors.As(err, &e):
		reply := &smithyhttp.Response{Response: &http.Response{StatusCode: e.HTTPStatus(), Header: http.Header{}}}
		err = &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: reply, Err: apiError(e)}}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = &aws.RequestCanceledError{Err: err}
	default:
		err = &smithyhttp.RequestSendError{Err: err}
	}
	return &smithy.OperationError{ServiceID: sqs.ServiceID, OperationName: operation, Err: err}
}

// apiError returns the SDK's own type for an error, if it has one.
func apiError(e *sqsserver.Error) error {
	_, shape, _ := strings.Cut(e.Type(), "#")
	message, code := &e.Message, &e.Code
	switch shape {
	case "BatchEntryIdsNotDistinct":
		return &types.BatchEntryIdsNotDistinct{Message: message, ErrorCodeOverride: code}
	case "BatchRequestTooLong":
		return &types.BatchRequestTooLong{Message: message, ErrorCodeOverride: code}
	case "EmptyBatchRequest":
		return &types.EmptyBatchRequest{Message: message, ErrorCodeOverride: code}
	case "InvalidAttributeName":
		return &types.InvalidAttributeName{Message: message, ErrorCodeOverride: code}
	case "InvalidBatchEntryId":
		return &types.InvalidBatchEntryId{Message: message, ErrorCodeOverride: code}
	case "InvalidMessageContents":
		return &types.InvalidMessageContents{Message: message, ErrorCodeOverride: code}
	case "OverLimit":
		return &types.OverLimit{Message: message, ErrorCodeOverride: code}
	case "QueueDoesNotExist":
		return &types.QueueDoesNotExist{Message: message, ErrorCodeOverride: code}
	case "ReceiptHandleIsInvalid":
		return &types.ReceiptHandleIsInvalid{Message: message, ErrorCodeOverride: code}
	case "RequestThrottled":
		return &types.RequestThrottled{Message: message, ErrorCodeOverride: code}
	case "TooManyEntriesInBatchRequest":
		return &types.TooManyEntriesInBatchRequest{Message: message, ErrorCodeOverride: code}
	case "UnsupportedOperation":
		return &types.UnsupportedOperation{Message: message, ErrorCodeOverride: code}
	}
	fault := smithy.FaultServer
	if e.SenderFault() {
		fault = smithy.FaultClient
	}
	return &smithy.GenericAPIError{Code: e.Code, Message: e.Message, Fault: fault}
}
