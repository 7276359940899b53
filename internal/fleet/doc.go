// Package fleet has no code but tests: of fleets of consumers of one queue, each from a seed, in
// bubbles of testing/synctest. The consumers are those of users: they know the public API alone and
// reach a queue of package reprisetest through the client of the SDK, or directly. An operator, an
// autoscaler and fate do to them what a seed has in store, while the invariants of
// internal/world/invariants.go are checked.
//
// Read it in this order: the tests and their flags (fleet_test.go), what a fleet is (world_test.go),
// what happens to it (acts_test.go), its consumers (node_test.go), their network (wire_test.go) and
// handlers (handler_test.go), and what must be true (invariants_test.go, settle_test.go,
// progress_test.go, end_test.go). A failure prints what happened (history_test.go).
package fleet
