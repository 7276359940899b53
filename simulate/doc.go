// Package simulate says what a retry policy does before production does: a [Scenario] describes
// traffic, a policy, a queue, handlers and what they depend on, and [Run] lets the machines of the
// real consumer and of the real queue work it off in virtual time. A day takes seconds, and a seed
// gives the same [Result] each time, byte for byte.
//
// A [Scenario] that is Fluid has expected numbers of messages simulated in the place of single ones, so
// that a billion messages a day take about a second. [NewSchedule] needs no queue: it draws the
// attempts of many messages from a policy alone.
// [Contend] repeats the published experiment that compares the jitters. [RunAsyncLambda] simulates an
// asynchronous Lambda function whose failures are retried from a queue.
//
// The model: messages arrive as [Traffic] says; consumers receive them over a network with latency
// and faults; each run of a handler makes one request to a dependency that may have a capacity and
// outages, takes a drawn time and fails with a drawn chance. All draws belong to the message and
// its attempt, so that two policies are compared on the same traffic and the same luck. The consumers
// of several queues may share handlers: see [Pooled]. Not modelled are what handlers themselves leave
// behind, and a dependency that becomes slower under load.
package simulate
