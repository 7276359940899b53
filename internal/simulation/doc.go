// Package simulation runs consumers in a loop of virtual time: the state machine of internal/consumer
// with queues of internal/engine, and a model instead of the handler. It starts no goroutines and
// never waits, so a day of a busy queue takes seconds, and every run has the same result.
//
// Read it in this order: a [Spec] configures a [Consumer] (consumer.go), whose machine gets its
// inputs in sections and returns effects (section.go); the consumer receives messages (receive.go), runs the
// model for them, one by one (work.go) or in batches (batch.go), makes the other requests
// (requests.go), and stops (stop.go). Consumers can share a [Pool] (pool.go), and messages can come
// from a [Sender] (sender.go).
//
// It does the work of the shell in the root package, without the parts that only users' code and the
// SDK need: contexts, panics, keys of signatures, digests, logs, trails and trace headers. The queue's
// attributes are known from the start.
package simulation
