// Package simulation runs consumers in a loop of virtual time: the state machine of internal/consumer
// beside queues of internal/engine, with a model in the place of the handler. It makes no goroutines
// and never waits, so that a day of a busy queue takes seconds, the same in every run.
//
// Read it in this order: a [Spec] says what a [Consumer] is made of, which carries out the machine's
// effects (consumer.go); it receives messages (receive.go), runs the model for them (work.go), makes
// the other requests (requests.go), and stops (stop.go).
//
// It does what the shell in the root package does, but for what only users' code and the SDK need:
// there are no contexts, panics, signatures, digests, logs, trails and trace headers. Left out are
// batches, pools, retry lanes and what follows a delete; the queue's attributes are known from the start.
package simulation
