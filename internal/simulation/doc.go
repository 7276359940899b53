// Package simulation runs consumers in a loop of virtual time: the state machine of internal/consumer
// beside queues of internal/engine, with a model in the place of the handler. It makes no goroutines
// and never waits, so that a day of a busy queue takes seconds, the same in every run.
//
// Read it in this order: a [Spec] says what a [Consumer] is made of, which carries out the machine's
// effects (consumer.go); it receives messages (receive.go), runs the model for them (work.go), makes
// the other requests (requests.go), and stops (stop.go).
//
// It does the work of the shell in the root package, without the parts that only
// users' code and the SDK need: contexts, panics, signatures, digests, logs, trails
// and trace headers. Batches, pools, retry lanes and AfterDelete are left out; the
// queue's attributes are known from the start.
package simulation
