package sqsserver

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The codes and texts are those recorded from AWS, word by word.
func TestErrorTexts(t *testing.T) {
	const invalid, missing = "InvalidParameterValue", "MissingParameter"
	tests := []struct {
		err        *Error
		code, text string
	}{
		{errQueueDoesNotExist(), "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist."},
		{errQueueNameExists("DelaySeconds"), "QueueAlreadyExists", "A queue already exists with the same name and a different value for attribute DelaySeconds"},
		{errQueueDeletedRecently(), "AWS.SimpleQueueService.QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name."},
		{errPurgeQueueInProgress("q"), "AWS.SimpleQueueService.PurgeQueueInProgress", "Only one PurgeQueue operation on q is allowed every 60 seconds."},
		{errQueueName(), invalid, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"},
		{errFIFOQueueName(), invalid, "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length"},
		{errMissingParameter("MessageBody"), missing, "The request must contain the parameter MessageBody."},
		{errMessageTooLong(1024, false), invalid, "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."},
		{errMessageTooLong(1024, true), invalid, "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."},
		{errBatchTooLong(1048577), "AWS.SimpleQueueService.BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."},
		{errEmptyBatch("SendMessageBatchRequestEntry"), "AWS.SimpleQueueService.EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry in the request."},
		{errTooManyEntries(11), "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 11."},
		{errBatchEntryID(), "AWS.SimpleQueueService.InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."},
		{errBatchEntryIDRepeated("a"), "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "Id a repeated."},
		{errMaxNumberOfMessages(11), invalid, "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."},
		{errWaitTimeSeconds(21), invalid, "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."},
		{errDelaySeconds(901), invalid, "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."},
		{errDelayOnFIFO(1), invalid, "Value 1 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type."},
		{errNeedsFIFO("MessageDeduplicationId", "d"), invalid, "Value d for parameter MessageDeduplicationId is invalid. Reason: The request includes a parameter that is not valid for this queue type."},
		{errIdentifier("MessageGroupId", "a b"), invalid, "Value a b for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length."},
		{errNoGroup(false), missing, "The request must contain the parameter MessageGroupId."},
		{errNoGroup(true), invalid, "The request must contain the parameter MessageGroupId."},
		{errNoDeduplication(), invalid, "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"},
		{errBodyCharacters(), "InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"},
		{errAttributeCharacters(), invalid, "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"},
		{errAttributeEmpty("a", "String"), invalid, "Message (user) attribute 'a' must contain a non-empty value of type 'String'."},
		{errAttributeType("a"), invalid, "The type of message (user) attribute 'a' is invalid. You must use only the following supported type prefixes: Binary, Number, String."},
		{errAttributeNumber("a"), invalid, "Can't cast the value of message (user) attribute 'a' to a number."},
		{errAttributeName(""), invalid, "The request must contain non-empty message attribute name."},
		{errTooManyAttributes(11), invalid, "Number of message attributes [11] exceeds the allowed maximum [10]."},
		{errAttributeLists(), "AWS.SimpleQueueService.UnsupportedOperation", "Message attribute list values in SendMessage operation are not supported."},
		{errReceiptHandle("h"), "ReceiptHandleIsInvalid", `The input receipt handle "h" is not a valid receipt handle.`},
		{errReceiptHandleQueue("h"), "ReceiptHandleIsInvalid", `The receipt handle "h" is not valid for this queue.`},
		{errReceiptHandleExpired("h"), invalid, "Value h for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."},
		{errMessageGone("h"), invalid, "Value h for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."},
		{errBeyond12Hours(43200), invalid, "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"},
		{errUnknownAttribute("X"), "InvalidAttributeName", "Unknown Attribute X."},
		{errAttributeValue("X"), "InvalidAttributeValue", "Invalid value for the parameter X."},
		{errAttributeNeedsFIFO("DeduplicationScope"), "InvalidAttributeName", "You can specify the DeduplicationScope only when FifoQueue is set to true."},
		{errTwoEncryptions(), "InvalidAttributeName", "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."},
		{errQueueTypeFixed(), "InvalidAttributeValue", "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."},
		{errOverLimit(), "OverLimit", "Too many messages have been received without being deleted. Please delete your received messages or let them timeout before receiving more."},
		{errTooManyTags("q"), invalid, "Too many tags added for queue q."},
		{errLabelExists("l"), invalid, "Value l for parameter Label is invalid. Reason: Already exists."},
		{errLabelMissing("l"), invalid, "Value l for parameter Label is invalid. Reason: can't find label."},
		{errPolicyLimit(8, "Actions", 7), "OverLimit", "8 Actions were found, maximum allowed is 7."},
		{errNoResource("SourceArn"), "ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist."},
		{errNoDeadLetterQueue(), invalid, "Source queue must be configured as a Dead Letter Queue."},
		{errMoveRunning(), invalid, "There is already a task running. Only one active task is allowed for a source queue arn at a given time."},
		{errTaskHandle(), invalid, "Value for parameter TaskHandle is invalid."},
		{errNoTask(), "ResourceNotFoundException", "Task does not exist."},
		{errUnknownAction("X"), "InvalidAction", "The action X is not valid for this endpoint."},
	}
	for _, test := range tests {
		if diff := cmp.Diff(&Error{test.code, test.text}, test.err); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	tests := []struct {
		code   string
		typ    string
		status int
		sender bool
	}{
		{"AWS.SimpleQueueService.NonExistentQueue", "com.amazonaws.sqs#QueueDoesNotExist", 400, true},
		{"QueueAlreadyExists", "com.amazonaws.sqs#QueueNameExists", 400, true},
		{"AWS.SimpleQueueService.QueueDeletedRecently", "com.amazonaws.sqs#QueueDeletedRecently", 400, true},
		{"AWS.SimpleQueueService.PurgeQueueInProgress", "com.amazonaws.sqs#PurgeQueueInProgress", 403, true},
		{"ReceiptHandleIsInvalid", "com.amazonaws.sqs#ReceiptHandleIsInvalid", 404, true},
		{"AWS.SimpleQueueService.MessageNotInflight", "com.amazonaws.sqs#MessageNotInflight", 400, true},
		{"OverLimit", "com.amazonaws.sqs#OverLimit", 403, true},
		{"RequestThrottled", "com.amazonaws.sqs#RequestThrottled", 403, true},
		{"AWS.SimpleQueueService.UnsupportedOperation", "com.amazonaws.sqs#UnsupportedOperation", 400, true},
		{"ResourceNotFoundException", "com.amazonaws.sqs#ResourceNotFoundException", 404, true},
		{"InvalidAttributeName", "com.amazonaws.sqs#InvalidAttributeName", 400, true},
		{"InvalidAttributeValue", "com.amazonaws.sqs#InvalidAttributeValue", 400, true},
		{"InvalidMessageContents", "com.amazonaws.sqs#InvalidMessageContents", 400, true},
		{"AWS.SimpleQueueService.EmptyBatchRequest", "com.amazonaws.sqs#EmptyBatchRequest", 400, true},
		{"AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "com.amazonaws.sqs#TooManyEntriesInBatchRequest", 400, true},
		{"AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "com.amazonaws.sqs#BatchEntryIdsNotDistinct", 400, true},
		{"AWS.SimpleQueueService.InvalidBatchEntryId", "com.amazonaws.sqs#InvalidBatchEntryId", 400, true},
		{"AWS.SimpleQueueService.BatchRequestTooLong", "com.amazonaws.sqs#BatchRequestTooLong", 400, true},
		{"InvalidParameterValue", "com.amazon.coral.service#InvalidParameterValueException", 400, true},
		{"MissingParameter", "com.amazon.coral.service#MissingRequiredParameterException", 400, true},
		{"InvalidAction", "com.amazon.coral.service#UnknownOperationException", 400, true},
		{"UnknownOperationException", "com.amazon.coral.service#UnknownOperationException", 404, true},
		{"MalformedInput", "com.amazon.coral.service#SerializationException", 400, true},
		{"InternalFailure", "com.amazon.coral.service#InternalFailure", 500, false},
		{"InternalError", "com.amazon.coral.service#InternalFailure", 500, false},
		{"ServiceUnavailable", "com.amazon.coral.service#ServiceUnavailableException", 503, false},
		{"AccessDenied", "com.amazon.coral.service#AccessDeniedException", 403, true},
		{"InvalidClientTokenId", "com.amazon.coral.service#UnrecognizedClientException", 403, true},
		{"SignatureDoesNotMatch", "com.amazon.coral.service#InvalidSignatureException", 403, true},
		{"IncompleteSignature", "com.amazon.coral.service#IncompleteSignatureException", 400, true},
	}
	if len(tests) != len(errorKinds) {
		t.Errorf("%d codes are known, %d tested", len(errorKinds), len(tests))
	}
	for _, test := range tests {
		e := &Error{Code: test.code}
		if e.Type() != test.typ || e.HTTPStatus() != test.status || e.SenderFault() != test.sender {
			t.Errorf("%s: %s %d %t, want %s %d %t", test.code, e.Type(), e.HTTPStatus(), e.SenderFault(), test.typ, test.status, test.sender)
		}
	}
}

func TestAsError(t *testing.T) {
	overLimit := errOverLimit()
	if got := asError(fmt.Errorf("receiving: %w", overLimit)); got != overLimit {
		t.Errorf("a wrapped error became %v", got)
	}
	if got := asError(errors.New("disk full")); got.Code != codeInternalFailure || got.Message != "disk full" {
		t.Errorf("another error became %v", got)
	}
	want := "OverLimit: " + overLimit.Message
	if got := overLimit.Error(); got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}
