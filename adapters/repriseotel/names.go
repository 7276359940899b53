package repriseotel

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/reprise-sqs/reprise"
)

// This file has all names of telemetry. Those of the semantic conventions are from the version
// imported above, in which messaging is still "in development": to use another version, change this
// file; users then see other names.
const schemaURL = semconv.SchemaURL

// scope is the name of the instrumentation.
const scope = "github.com/reprise-sqs/reprise/adapters/repriseotel"

// The names of operations are those of SQS's actions, except for a run of the handler.
const (
	operationProcess = "process"
	operationSend    = "SendMessage"
	operationReceive = "ReceiveMessage"
	operationDelete  = "DeleteMessage"
	operationHide    = "ChangeMessageVisibility"
	operationSettle  = "settle" // a settlement that failed
)

// spanName is "{operation} {destination}".
func spanName(operation string, q queue) string { return operation + " " + q.name }

// The conventions' attributes that are used here.
var (
	systemSQS       = semconv.MessagingSystemAWSSQS
	destinationName = semconv.MessagingDestinationName
	queueURL        = semconv.AWSSQSQueueURL
	cloudRegion     = semconv.CloudRegion
	serverAddress   = semconv.ServerAddress
	serverPort      = semconv.ServerPort
	operationName   = semconv.MessagingOperationName
	messageID       = semconv.MessagingMessageID
	bodySize        = semconv.MessagingMessageBodySize
	batchCount      = semconv.MessagingBatchMessageCount
	typeSend        = semconv.MessagingOperationTypeSend
	typeReceive     = semconv.MessagingOperationTypeReceive
	typeProcess     = semconv.MessagingOperationTypeProcess
	typeSettle      = semconv.MessagingOperationTypeSettle
	errorType       = semconv.ErrorTypeKey.String
)

// The values of error.type for runs of the handler: a closed set. Requests have
// the codes of SQS's errors.
const (
	errorOther       = "_OTHER" // the conventions' value for anything else
	errorPanic       = "panic"
	errorTimeout     = "timeout"
	errorUnavailable = "unavailable"
	errorPermanent   = "permanent"
	errorLeaseLost   = "lease_lost"
)

var errorTypes = []string{errorOther, errorPanic, errorTimeout, errorUnavailable, errorPermanent, errorLeaseLost}

// The project's own attributes. Those of metrics have closed sets of values.
const (
	keyAttempt  = attribute.Key("reprise.attempt")         // 1 for the first run of the handler
	keyReceives = attribute.Key("reprise.receives")        // SQS's ApproximateReceiveCount
	keyOrigin   = attribute.Key("reprise.origin.id")       // of the message that began the lineage, on copies
	keyOutcome  = attribute.Key("reprise.outcome")         // names of reprise.Outcome
	keyReason   = attribute.Key("reprise.reason")          // names of retry.Reason
	keyDelay    = attribute.Key("reprise.retry.delay")     // seconds, on events
	keyRequeued = attribute.Key("reprise.requeued")        // a copy took the message's place
	keyRequests = attribute.Key("reprise.settle.requests") // the number of requests
	keyLink     = attribute.Key("reprise.link")            // the target of a link
	keyState    = attribute.Key("reprise.state")           // of held messages, breakers, consumers
)

const (
	linkCreation = "creation"
	linkPrevious = "previous-attempt"
)

// eventWait is the name of the event on an attempt after which the message waits
// to come again.
func eventWait(o reprise.Outcome) string { return "reprise." + o.String() }

// The project's own metrics, in addition to those of the conventions. The unit of counters is the
// thing that they count.
const (
	metricAttempts   = "reprise.attempts"
	metricRetries    = "reprise.retries"
	metricDelay      = "reprise.retry.delay"
	metricExhausted  = "reprise.exhausted"
	metricSettled    = "reprise.settled"
	metricDeadLetter = "reprise.dlq.sent"
	metricExtensions = "reprise.visibility.extensions"
	metricExpiring   = "reprise.expiring"
	metricInFlight   = "reprise.inflight"
	metricBreakers   = "reprise.circuit.state"
	metricHealth     = "reprise.consumer.state"
	metricGivingUp   = "reprise.consumer.giving_up"
)

const (
	stateProcessing = "processing"
	stateBackoff    = "backoff"
)

var (
	// requestBounds are the conventions' buckets for durations, in seconds, and further ones for
	// long polls of up to 20 s.
	requestBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40}
	// processBounds reach up to the hours that a lease can be kept.
	processBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 43200}
	// delayBounds are for backoff: from 1 s to the 12 h of visibility, and days beyond.
	delayBounds = []float64{1, 2, 5, 10, 30, 60, 120, 300, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 259200}
)
