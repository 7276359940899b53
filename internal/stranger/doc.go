// Package stranger has no code but tests: of programs that use the public API in ways that nobody chose
// for them, judged by what README.md, docs and the comments of the API promise, and by nothing else.
//
// internal/fleet and internal/machines look where their makers looked. Here a scenario is drawn from the
// whole range of the settings: queues and their attributes, versions of a configuration, processes that
// start, stop and crash, messages with what their handlers do, faults of SQS, outages, an operator. It
// runs in a bubble of testing/synctest, and leaves a record of what a user could see: runs of handlers,
// requests, events, states, and the queues at the end. Each check holds the record against one sentence
// of the documentation, which it prints when it fails.
//
// Read it in this order: the test and its flags (stranger_test.go), what a scenario is
// (scenario_test.go) and how it is drawn (draw_test.go), how it runs (world_test.go, process_test.go,
// wire_test.go, handler_test.go) and what it leaves (record_test.go), and the checks (checks_test.go lists them).
// A scenario that breaks a check is made smaller (shrink_test.go) and printed as a test (source_test.go).
package stranger
