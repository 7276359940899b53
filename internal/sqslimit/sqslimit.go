// Package sqslimit has the limits of SQS that several packages keep to. See
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html.
package sqslimit

const (
	// Bytes is how large a message may be, with the names, types and values of its attributes, and how large the
	// messages of one request may be together. A queue's MaximumMessageSize may permit less for a message.
	Bytes = 1 << 20
	// Attributes is how many attributes a message may have.
	Attributes = 10
	// Entries is how many entries a batch request may have, and how many messages a receive may bring.
	Entries = 10
)
