package sqsserver

// Limits of a message and of a batch.
const (
	maxMessageAttributes = 10
	maxBatchEntries      = 10
	maxBatchSize         = 1 << 20 // of a SendMessageBatch, whatever the queue's MaximumMessageSize
)
