package sqsserver

import "fmt"

// The errors of messages: of those that are sent, of batches of them, and of those
// that are received.

// errMessageTooLong: the text of AWS differs for an entry of a batch.
func errMessageTooLong(limit int, inBatch bool) *Error {
	what := "are invalid"
	if inBatch {
		what = "cannot be validated"
	}
	return &Error{codeInvalidParameterValue, fmt.Sprintf("One or more parameters %s. Reason: Message must be shorter than %d bytes.", what, limit)}
}

func errBodyCharacters() *Error { return &Error{codeInvalidMessageContents, textCharacters} }

// errAttributeCharacters: unlike for a body, AWS has no code of its own for it.
func errAttributeCharacters() *Error { return &Error{codeInvalidParameterValue, textCharacters} }

const textCharacters = "Invalid characters found. Valid unicode characters are " +
	"#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"

func errTooManyAttributes(n int) *Error {
	return &Error{codeInvalidParameterValue, fmt.Sprintf("Number of message attributes [%d] exceeds the allowed maximum [%d].", n, maxMessageAttributes)}
}

func errAttributeName(name string) *Error {
	if name == "" {
		return &Error{codeInvalidParameterValue, "The request must contain non-empty message attribute name."}
	}
	return &Error{codeInvalidParameterValue, "The message attribute name '" + name + "' is invalid. " +
		"Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters."}
}

func errAttributeType(name string) *Error {
	return &Error{codeInvalidParameterValue, "The type of message (user) attribute '" + name + "' is invalid. " +
		"You must use only the following supported type prefixes: Binary, Number, String."}
}

func errAttributeEmpty(name, dataType string) *Error {
	return &Error{codeInvalidParameterValue, "Message (user) attribute '" + name + "' must contain a non-empty value of type '" + dataType + "'."}
}

func errAttributeNumber(name string) *Error {
	return &Error{codeInvalidParameterValue, "Can't cast the value of message (user) attribute '" + name + "' to a number."}
}

func errAttributeLists() *Error {
	return &Error{codeUnsupportedOperation, "Message attribute list values in SendMessage operation are not supported."}
}

// errSystemAttribute: the text of AWS is not known.
func errSystemAttribute(name string) *Error {
	return &Error{codeInvalidParameterValue, "Message system attribute name '" + name + "' is invalid. The only one that can be sent is AWSTraceHeader, of type String."}
}

// errTraceHeader: the text of AWS is not known, nor its limit.
func errTraceHeader() *Error {
	return &Error{codeInvalidParameterValue, fmt.Sprintf("The value of message system attribute 'AWSTraceHeader' is not a valid AWS X-Ray trace header of at most %d printable ASCII characters.", maxTraceHeader)}
}

func errDelaySeconds(n int32) *Error {
	return errParameter("DelaySeconds", n, "DelaySeconds must be >= 0 and <= 900.")
}

func errDelayOnFIFO(n int32) *Error {
	return errParameter("DelaySeconds", n, "The request include parameter that is not valid for this queue type.") // sic
}

// errNeedsFIFO: the parameter name was given for a standard queue.
func errNeedsFIFO(name, value string) *Error {
	return errParameter(name, value, "The request includes a parameter that is not valid for this queue type.")
}

// errIdentifier: name is MessageGroupId, MessageDeduplicationId or
// ReceiveRequestAttemptId.
func errIdentifier(name, value string) *Error {
	return errParameter(name, value, name+" can only include alphanumeric and punctuation characters. 1 to 128 in length.")
}

// errNoGroup: a message for a FIFO queue has no group. In a batch, where the
// whole request fails for it, AWS has another code.
func errNoGroup(inBatch bool) *Error {
	e := errMissingParameter("MessageGroupId")
	if inBatch {
		e.Code = codeInvalidParameterValue
	}
	return e
}

func errNoDeduplication() *Error {
	return &Error{codeInvalidParameterValue, "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"}
}

// Batches.

// errEmptyBatch: entry is the name of the request's entry type.
func errEmptyBatch(entry string) *Error {
	return &Error{codeEmptyBatchRequest, "There should be at least one " + entry + " in the request."}
}

func errTooManyEntries(n int) *Error {
	return &Error{codeTooManyEntriesInBatchRequest, fmt.Sprintf("Maximum number of entries per request are %d. You have sent %d.", maxBatchEntries, n)}
}

func errBatchEntryID() *Error {
	return &Error{codeInvalidBatchEntryId, "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."}
}

func errBatchEntryIDRepeated(id string) *Error {
	return &Error{codeBatchEntryIdsNotDistinct, "Id " + id + " repeated."}
}

func errBatchTooLong(size int) *Error {
	return &Error{codeBatchRequestTooLong, fmt.Sprintf("Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxBatchSize, size)}
}

// Messages received.

// errOverLimit: too many messages of a standard queue are in flight.
func errOverLimit() *Error {
	return &Error{codeOverLimit, "Too many messages have been received without being deleted. Please delete your received messages or let them timeout before receiving more."}
}

// errReceiptHandle: handle was never issued.
func errReceiptHandle(handle string) *Error {
	return &Error{codeReceiptHandleIsInvalid, `The input receipt handle "` + handle + `" is not a valid receipt handle.`}
}

// errReceiptHandleQueue: handle was issued for another queue.
func errReceiptHandleQueue(handle string) *Error {
	return &Error{codeReceiptHandleIsInvalid, `The receipt handle "` + handle + `" is not valid for this queue.`}
}

// errReceiptHandleExpired: the lease on a message of a FIFO queue has ended.
func errReceiptHandleExpired(handle string) *Error {
	return errParameter("ReceiptHandle", handle, "The receipt handle has expired.")
}

// errMessageGone: the visibility of a deleted message was to be changed.
func errMessageGone(handle string) *Error {
	return errParameter("ReceiptHandle", handle, "Message does not exist or is not available for visibility timeout change.")
}

// errBeyond12Hours: n seconds from now end more than 12 hours after the receive.
func errBeyond12Hours(n int32) *Error {
	return errParameter("VisibilityTimeout", n, "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")
}
