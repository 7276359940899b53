// Package simulation runs consumers in a loop of virtual time: the state machine of internal/consumer
// beside queues of internal/engine, with a model in the place of the handler. It makes no goroutines
// and never waits, so that a day of a busy queue takes seconds, the same in every run.
//
// Read it in this order: a [Spec] says what a [Consumer] is made of (consumer.go), whose machine gets
// its inputs in sections and leaves effects (section.go); it receives messages (receive.go), runs the
// model for them, one by one (work.go) or in batches (batch.go), makes the other requests
// (requests.go), and stops (stop.go). Consumers can share a [Pool] (pool.go), and messages can come
// from a [Sender] (sender.go).
//
// It does the work of the shell in the root package, without the parts that only users' code and the
// SDK need: contexts, panics, keys of signatures, digests, logs, trails and trace headers. The queue's
// attributes are known from the start.
package simulation
