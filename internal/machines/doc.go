// Package machines has only tests, of fleets of simulated consumers and the queues that they share, as
// state machines in one loop of virtual time (internal/world, internal/simulation). It runs dozens of
// fleets in the time that internal/fleet takes for one, each with more queues, messages and faults.
// Every run of a seed is the same, byte for byte.
//
// Read it in this order: the tests and their flags (run_test.go), the parts of a fleet (fleet_test.go),
// its properties (nature_test.go), the acts (acts_test.go), the handlers (handlers_test.go), and the
// checks (invariants_test.go, progress_test.go, rate_test.go, end_test.go).
package machines
