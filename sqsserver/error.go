package sqsserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/reprise-sqs/reprise/internal/sigv4"
)

// Error is an error as SQS reports it: every failure that a method of Server
// returns is one, unless the context ended first or a fault lost the reply. Only this file and, for
// messages, error_message.go contain the codes and texts of the wire.
type Error struct {
	// Code is the query code, the one that the AWS SDKs report, such as
	// "AWS.SimpleQueueService.NonExistentQueue". A code that SQS does not have
	// is reported as a failure of the server.
	Code    string
	Message string
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Type returns the type that JSON replies give, such as
// "com.amazonaws.sqs#QueueDoesNotExist".
func (e *Error) Type() string { return e.kind().typ }

// HTTPStatus returns the status of the reply.
func (e *Error) HTTPStatus() int { return e.kind().status }

// SenderFault reports whether the request, not the server, caused the error.
func (e *Error) SenderFault() bool { return e.kind().status < http.StatusInternalServerError }

func (e *Error) kind() errorKind {
	if kind, known := errorKinds[e.Code]; known {
		return kind
	}
	return errorKinds[codeInternalFailure]
}

// asError returns err as SQS reports it; any other error becomes InternalFailure.
func asError(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = errInternalFailure(err.Error())
	}
	if len(e.Message) > maxErrorMessage {
		e = &Error{e.Code, strings.ToValidUTF8(e.Message[:maxErrorMessage], "") + "..."}
	}
	return e
}

// maxErrorMessage limits the length of a message, which may quote up to 8 MiB of the
// request.
const maxErrorMessage = 4096

// failedEntry reports err as the result of the batch entry id.
func failedEntry(id string, err error) BatchResultErrorEntry {
	e := asError(err)
	return BatchResultErrorEntry{Id: id, Code: e.Code, Message: e.Message, SenderFault: e.SenderFault()}
}

// Query codes.
const (
	codeQueueDoesNotExist            = "AWS.SimpleQueueService.NonExistentQueue"
	codeQueueNameExists              = "QueueAlreadyExists"
	codeQueueDeletedRecently         = "AWS.SimpleQueueService.QueueDeletedRecently"
	codePurgeQueueInProgress         = "AWS.SimpleQueueService.PurgeQueueInProgress"
	codeReceiptHandleIsInvalid       = "ReceiptHandleIsInvalid"
	codeMessageNotInflight           = "AWS.SimpleQueueService.MessageNotInflight"
	codeOverLimit                    = "OverLimit"
	codeRequestThrottled             = "RequestThrottled"
	codeUnsupportedOperation         = "AWS.SimpleQueueService.UnsupportedOperation"
	codeResourceNotFound             = "ResourceNotFoundException"
	codeInvalidAttributeName         = "InvalidAttributeName"
	codeInvalidAttributeValue        = "InvalidAttributeValue"
	codeInvalidMessageContents       = "InvalidMessageContents"
	codeEmptyBatchRequest            = "AWS.SimpleQueueService.EmptyBatchRequest"
	codeTooManyEntriesInBatchRequest = "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"
	codeBatchEntryIdsNotDistinct     = "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"
	codeInvalidBatchEntryId          = "AWS.SimpleQueueService.InvalidBatchEntryId"
	codeBatchRequestTooLong          = "AWS.SimpleQueueService.BatchRequestTooLong"

	codeInvalidParameterValue = "InvalidParameterValue"
	codeMissingParameter      = "MissingParameter"
	codeInvalidAction         = "InvalidAction"
	codeNoAction              = "UnknownOperationException"
	codeMalformedInput        = "MalformedInput"
	codeInternalFailure       = "InternalFailure"
	codeInternalError         = "InternalError"
	codeServiceUnavailable    = "ServiceUnavailable"
	codeAccessDenied          = "AccessDenied"
	codeInvalidClientTokenId  = "InvalidClientTokenId"
	codeSignatureDoesNotMatch = "SignatureDoesNotMatch"
	codeIncompleteSignature   = "IncompleteSignature"
)

// errorKind has the type and the status that replies add to a query code.
type errorKind struct {
	typ    string
	status int
}

// errorKinds: the errors of the SQS model come first; the rest are those of the
// framework that AWS's services are built on.
var errorKinds = map[string]errorKind{
	codeQueueDoesNotExist:            {modelled + "QueueDoesNotExist", http.StatusBadRequest},
	codeQueueNameExists:              {modelled + "QueueNameExists", http.StatusBadRequest},
	codeQueueDeletedRecently:         {modelled + "QueueDeletedRecently", http.StatusBadRequest},
	codePurgeQueueInProgress:         {modelled + "PurgeQueueInProgress", http.StatusForbidden},
	codeReceiptHandleIsInvalid:       {modelled + "ReceiptHandleIsInvalid", http.StatusNotFound},
	codeMessageNotInflight:           {modelled + "MessageNotInflight", http.StatusBadRequest},
	codeOverLimit:                    {modelled + "OverLimit", http.StatusForbidden},
	codeRequestThrottled:             {modelled + "RequestThrottled", http.StatusForbidden},
	codeUnsupportedOperation:         {modelled + "UnsupportedOperation", http.StatusBadRequest},
	codeResourceNotFound:             {modelled + "ResourceNotFoundException", http.StatusNotFound},
	codeInvalidAttributeName:         {modelled + "InvalidAttributeName", http.StatusBadRequest},
	codeInvalidAttributeValue:        {modelled + "InvalidAttributeValue", http.StatusBadRequest},
	codeInvalidMessageContents:       {modelled + "InvalidMessageContents", http.StatusBadRequest},
	codeEmptyBatchRequest:            {modelled + "EmptyBatchRequest", http.StatusBadRequest},
	codeTooManyEntriesInBatchRequest: {modelled + "TooManyEntriesInBatchRequest", http.StatusBadRequest},
	codeBatchEntryIdsNotDistinct:     {modelled + "BatchEntryIdsNotDistinct", http.StatusBadRequest},
	codeInvalidBatchEntryId:          {modelled + "InvalidBatchEntryId", http.StatusBadRequest},
	codeBatchRequestTooLong:          {modelled + "BatchRequestTooLong", http.StatusBadRequest},

	codeInvalidParameterValue: {framework + "InvalidParameterValueException", http.StatusBadRequest},
	codeMissingParameter:      {framework + "MissingRequiredParameterException", http.StatusBadRequest},
	codeInvalidAction:         {framework + "UnknownOperationException", http.StatusBadRequest},
	codeNoAction:              {framework + "UnknownOperationException", http.StatusNotFound},
	codeMalformedInput:        {framework + "SerializationException", http.StatusBadRequest},
	codeInternalFailure:       {framework + "InternalFailure", http.StatusInternalServerError},
	codeInternalError:         {framework + "InternalFailure", http.StatusInternalServerError},
	codeServiceUnavailable:    {framework + "ServiceUnavailableException", http.StatusServiceUnavailable},
	codeAccessDenied:          {framework + "AccessDeniedException", http.StatusForbidden},
	codeInvalidClientTokenId:  {framework + "UnrecognizedClientException", http.StatusForbidden},
	codeSignatureDoesNotMatch: {framework + "InvalidSignatureException", http.StatusForbidden},
	codeIncompleteSignature:   {framework + "IncompleteSignatureException", http.StatusBadRequest},
}

const (
	modelled  = "com.amazonaws.sqs#"
	framework = "com.amazon.coral.service#"
)

// Queues.

func errQueueDoesNotExist() *Error {
	return &Error{codeQueueDoesNotExist, "The specified queue does not exist."}
}

// errQueueNameExists: the queue exists, and attribute has another value.
func errQueueNameExists(attribute string) *Error {
	return &Error{codeQueueNameExists, "A queue already exists with the same name and a different value for attribute " + attribute}
}

func errQueueDeletedRecently() *Error {
	return &Error{codeQueueDeletedRecently, "You must wait 60 seconds after deleting a queue before you can create another with the same name."}
}

func errPurgeQueueInProgress(queue string) *Error {
	return &Error{codePurgeQueueInProgress, "Only one PurgeQueue operation on " + queue + " is allowed every 60 seconds."}
}

func errQueueName() *Error {
	return &Error{codeInvalidParameterValue, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"}
}

func errFIFOQueueName() *Error {
	return &Error{codeInvalidParameterValue, "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length"}
}

func errTooManyTags(queue string) *Error {
	return &Error{codeInvalidParameterValue, "Too many tags added for queue " + queue + "."}
}

// errTagKey: the text of AWS is not known.
func errTagKey(key string) *Error {
	return errParameter("TagKey", key, "Must be letters, digits, spaces and characters of _.:/=+-@, and not begin with aws:.")
}

// errTagKeyLength: a key is empty or too long, or a required key is missing.
func errTagKeyLength() *Error {
	return &Error{codeInvalidParameterValue, "Tag keys must be between 1 and 128 characters in length."}
}

// errTagValue: the text of AWS is not known.
func errTagValue(value string) *Error {
	return errParameter("TagValue", value, "Must be at most 256 letters, digits, spaces and characters of _.:/=+-@.")
}

// errUnknownAttribute: name is not a queue attribute, or cannot be set.
func errUnknownAttribute(name string) *Error {
	return &Error{codeInvalidAttributeName, "Unknown Attribute " + name + "."}
}

// errAttributeNeedsFIFO: name cannot be set on a standard queue.
func errAttributeNeedsFIFO(name string) *Error {
	return &Error{codeInvalidAttributeName, "You can specify the " + name + " only when FifoQueue is set to true."}
}

func errTwoEncryptions() *Error {
	return &Error{codeInvalidAttributeName, "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."}
}

func errAttributeValue(name string) *Error {
	return &Error{codeInvalidAttributeValue, "Invalid value for the parameter " + name + "."}
}

func errQueueTypeFixed() *Error {
	return &Error{codeInvalidAttributeValue, "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."}
}

// Requests.

func errMissingParameter(name string) *Error {
	return &Error{codeMissingParameter, "The request must contain the parameter " + name + "."}
}

// errParameter is the general form of InvalidParameterValue. The reason has its
// own full stop where AWS writes one.
func errParameter(name string, value any, reason string) *Error {
	return &Error{codeInvalidParameterValue, fmt.Sprintf("Value %v for parameter %s is invalid. Reason: %s", value, name, reason)}
}

func errMaxNumberOfMessages(n int32) *Error {
	return errParameter("MaxNumberOfMessages", n, "Must be between 1 and 10, if provided.")
}

func errWaitTimeSeconds(n int32) *Error {
	return errParameter("WaitTimeSeconds", n, "Must be >= 0 and <= 20, if provided.")
}

// errVisibilityTimeout: the text of AWS is not known.
func errVisibilityTimeout(n int32) *Error {
	return errParameter("VisibilityTimeout", n, "Must be >= 0 and <= 43200, if provided.")
}

// errMaxResults: the text of AWS is not known.
func errMaxResults(n int32, limit int) *Error {
	return errParameter("MaxResults", n, fmt.Sprintf("Must be between 1 and %d, if provided.", limit))
}

// errNextToken: the text of AWS is not known.
func errNextToken() *Error {
	return &Error{codeInvalidParameterValue, "Invalid or expired next token."}
}

func errUnknownAction(action string) *Error {
	return &Error{codeInvalidAction, "The action " + action + " is not valid for this endpoint."}
}

// errSerialization: the body is not the JSON of the action's input. AWS sends no text; ours
// gives the position of the problem.
func errSerialization(offset int, problem string) *Error {
	return &Error{codeMalformedInput, fmt.Sprintf("The request body is not valid: at byte %d, %s.", offset, problem)}
}

// Permissions.

// errLabel: the text of AWS is not known.
func errLabel(label string) *Error {
	return errParameter("Label", label, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
}

func errLabelExists(label string) *Error { return errParameter("Label", label, "Already exists.") }

func errLabelMissing(label string) *Error { return errParameter("Label", label, "can't find label.") }

// errPrincipals: not all of the accounts that the request gives are account numbers.
func errPrincipals(accounts []string) *Error {
	return errParameter("PrincipalId", accounts, "Unable to verify.")
}

// errOwnersAction: no permission can grant the action.
func errOwnersAction(action string) *Error {
	return errParameter("ActionName", "SQS:"+action, "Only the queue owner is allowed to invoke this action.")
}

// errPolicyLimit: the request has n actions, principals or statements, as what says, and a policy
// may have limit of them.
func errPolicyLimit(n int, what string, limit int) *Error {
	return &Error{codeOverLimit, fmt.Sprintf("%d %s were found, maximum allowed is %d.", n, what, limit)}
}

// Message move tasks.

// errNoResource: parameter is SourceArn or DestinationArn.
func errNoResource(parameter string) *Error {
	return &Error{codeResourceNotFound, "The resource that you specified for the " + parameter + " parameter doesn't exist."}
}

func errNoDeadLetterQueue() *Error {
	return &Error{codeInvalidParameterValue, "Source queue must be configured as a Dead Letter Queue."}
}

// errDestination: the text of AWS is not known.
func errDestination(arn, reason string) *Error { return errParameter("DestinationArn", arn, reason) }

// errMoveRate: the text of AWS is not known.
func errMoveRate(n int32) *Error {
	return errParameter("MaxNumberOfMessagesPerSecond", n, "Must be between 1 and 500, if provided.")
}

func errMoveRunning() *Error {
	return &Error{codeInvalidParameterValue, "There is already a task running. Only one active task is allowed for a source queue arn at a given time."}
}

// errTooManyMoves: the text of AWS is not known.
func errTooManyMoves() *Error {
	return &Error{codeOverLimit, fmt.Sprintf("The account has %d active message move tasks, the maximum.", maxActiveMoves)}
}

func errTaskHandle() *Error {
	return &Error{codeInvalidParameterValue, "Value for parameter TaskHandle is invalid."}
}

func errNoTask() *Error { return &Error{codeResourceNotFound, "Task does not exist."} }

// Signatures.

// errTooManyBodies: clients retry it.
func errTooManyBodies() *Error {
	return &Error{codeServiceUnavailable, "The requests in progress take all the memory that the server permits for them: try again."}
}

// errPageRefused: the server's PageGuard refuses the request.
func errPageRefused(reason error) *Error { return &Error{codeAccessDenied, reason.Error()} }

// errRefused: the request's credential or signature is refused.
func errRefused(err error) *Error {
	var refused *sigv4.Error
	if !errors.As(err, &refused) {
		return errInternalFailure(err.Error())
	}
	return &Error{signatureCodes[refused.Reason], refused.Message}
}

var signatureCodes = map[sigv4.Reason]string{
	sigv4.Unsigned:   codeAccessDenied,
	sigv4.Incomplete: codeIncompleteSignature,
	sigv4.UnknownKey: codeInvalidClientTokenId,
	sigv4.Mismatch:   codeSignatureDoesNotMatch,
}

// The server.

func errRequestThrottled() *Error {
	return &Error{codeRequestThrottled, "The request was denied due to request throttling."}
}

func errInternalFailure(problem string) *Error {
	return &Error{codeInternalFailure, problem}
}

func errServiceUnavailable() *Error {
	return &Error{codeServiceUnavailable, "Service is unavailable."}
}

// errInternalError: an entry of a batch failed by the server's fault. AWS reports it with
// another code than a whole request.
func errInternalError(problem string) *Error {
	return &Error{codeInternalError, problem}
}

// errNoTarget: the request is in JSON and lacks the header that names its action.
func errNoTarget() *Error {
	return &Error{codeInvalidAction, "The request has no X-Amz-Target header. Name the action in it, as in AmazonSQS.SendMessage, " +
		"and send its input as a JSON object by POST. In the older Query protocol the body is a form with the parameter Action."}
}

// errNoAction: the request is not in JSON and has no parameter Action.
func errNoAction() *Error { return &Error{Code: codeNoAction} }

// errMalformedForm: a request of the Query protocol cannot be read. AWS sends no
// text.
func errMalformedForm(problem string) *Error {
	return &Error{codeMalformedInput, "The request is not valid: " + problem + "."}
}

// errStorage: the journal has failed.
func errStorage(err error) *Error {
	return errInternalFailure("The server has stopped because it cannot use its journal: " + err.Error() +
		". Everything acknowledged is on disk. Fix the cause and start the server again.")
}

func errLowOnSpace() *Error {
	return &Error{codeServiceUnavailable, "The disk of the server's journal is almost full, so it takes no more messages, queues, attributes and tags. " +
		"Free space on it, or receive and delete messages."}
}

// errBroken: a panic has interrupted an operation of the engine.
func errBroken(err error) *Error {
	return errInternalFailure("The server has stopped: " + err.Error() + ". Its log has the details. Start it again.")
}
