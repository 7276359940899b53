// Package world is one loop of virtual time in which queues, processes that work on them, the
// network between these, clocks, crashes and operators meet. Everything happens in one goroutine,
// in an order that depends on the seed alone.
//
// Read it in this order: [Loop] runs events by their time; a [Process] is a machine with a clock
// of its own that can crash, sleep and be cut off; a [Link] carries its requests and the replies,
// late or not at all; a [Service] is SQS over the queues of internal/engine, with [Faults];
// [Seeds] runs simulations, one for each seed, and tells the shortest story of one that fails,
// which [Shrink] finds.
//
// Only state machines run in the world: they get their time from [Process.Now], ask to be called
// with [Process.After] or a [Timer], and never wait.
package world
