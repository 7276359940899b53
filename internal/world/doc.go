// Package world is one loop of virtual time in which queues, processes that work on
// them, the network between these, clocks, crashes and operators meet: everything that
// a seed draws happens in one goroutine, in an order that is the same in every run.
//
// Read it in this order: [Loop] runs events by their time; a [Process] is a machine
// with a clock of its own that can crash, sleep and be cut off; a [Link] carries its
// requests and the replies, late or not at all; a [Service] is SQS over the queues of
// internal/engine, with [Faults]; [Shrink] makes a failing run short.
//
// What runs in the world is a state machine: it gets its time from [Process.Now] and asks
// to be called with [Process.After] or a [Timer]. It never waits.
package world
