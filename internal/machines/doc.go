// Package machines has no code but tests: of fleets of simulated consumers and the queues that they
// share, as state machines in one loop of virtual time (internal/world, internal/simulation). It makes
// some dozens of fleets a second where internal/fleet makes one, each with more queues, messages and
// faults, and the same byte for byte in every run.
//
// Read it in this order: the tests and their flags (run_test.go), what a fleet is made of (fleet_test.go),
// what it can be (nature_test.go), what happens to it (acts_test.go) and what its handlers do
// (handlers_test.go), and what must be true (invariants_test.go, progress_test.go, rate_test.go,
// end_test.go).
package machines
