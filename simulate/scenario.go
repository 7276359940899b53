package simulate

import (
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// Scenario is what is simulated. Every field has a default, so that Scenario{Traffic:
// Traffic{Backlog: 1000}} is one. The tags are the keys of a YAML file; times in it are such as 30s.
type Scenario struct {
	// Name is a title for people. Default: none.
	Name    string  `yaml:"name,omitempty"`
	Traffic Traffic `yaml:"traffic,omitempty"`
	// Policy decides when a failed message is tried again. Its MaxAttempts, if zero, is the queue's
	// MaxReceives, as in a consumer. Default: that of package retry.
	Policy     retry.Policy `yaml:"policy,omitempty"`
	Queue      Queue        `yaml:"queue,omitempty"`
	Handler    Handler      `yaml:"handler,omitempty"`
	Dependency Dependency   `yaml:"dependency,omitempty"`
	Fleet      Fleet        `yaml:"fleet,omitempty"`
	Network    Network      `yaml:"network,omitempty"`
	// Pool is further queues that share the handlers of each consumer. Default: none. The figures of a
	// result are of all queues together, and [Result.Queues] has those of each.
	Pool []Pooled `yaml:"pool,omitempty"`
	// Horizon ends the simulation. Default: it ends when every message is settled, at MaxHorizon at
	// the latest; this needs traffic that ends and a policy that gives up.
	Horizon time.Duration `yaml:"horizon,omitempty"`
	// Bucket is the length of the periods of [Result.Series]. Default: such that there are some
	// hundreds. Periods are joined where there would be more than MaxBuckets.
	Bucket time.Duration `yaml:"bucket,omitempty"`
	// Trace is of how many messages, the first ones, [Result.Trace] has every attempt. Default: none.
	Trace int `yaml:"trace,omitempty"`
	// Seed selects the draws. Default: 0, a seed like any other.
	Seed uint64 `yaml:"seed,omitempty"`
	// Fluid has expected numbers of messages simulated in the place of single messages: a day of a
	// billion takes about a second. Not for FIFO queues, network faults, rules of a policy, pools,
	// and traces. The age of a policy becomes a number of attempts, and killed runs end. Default: only
	// if more than MaxMessages are expected to arrive.
	Fluid bool `yaml:"fluid,omitempty"`
}

// Traffic is which messages arrive, and when. Its parts add up.
type Traffic struct {
	// Backlog is how many messages are in the queue at the start.
	Backlog int `yaml:"backlog,omitempty"`
	// Rate is how many messages arrive in a second, from the start until For has passed. Zero For:
	// until the horizon.
	Rate float64       `yaml:"rate,omitempty"`
	For  time.Duration `yaml:"for,omitempty"`
	// Even has the messages of Rate arrive at equal distances. Default: they arrive at random times,
	// as a Poisson process.
	Even bool `yaml:"even,omitempty"`
	// Bursts are messages that arrive together.
	Bursts []Burst `yaml:"bursts,omitempty"`
	// Series has how many messages arrive in each of consecutive periods of length Every, at random
	// times in it, such as a metric of a queue that exists.
	Series []int         `yaml:"series,omitempty"`
	Every  time.Duration `yaml:"every,omitempty"`
	// Bytes is the size of each message, for the cost of requests. Default: 1,024.
	Bytes int `yaml:"bytes,omitempty"`
}

// Burst is messages that arrive from At on, evenly over Over; zero Over: at once.
type Burst struct {
	At       time.Duration `yaml:"at"`
	Messages int           `yaml:"messages"`
	Over     time.Duration `yaml:"over,omitempty"`
}

// Queue has the attributes of the queue.
type Queue struct {
	FIFO bool `yaml:"fifo,omitempty"`
	// Groups is over how many message groups the messages of a FIFO queue are spread. Default: 100.
	Groups int `yaml:"groups,omitempty"`
	// Retention is how long the queue keeps a message, from one minute to 14 days. Default: 4 days,
	// as of SQS.
	Retention time.Duration `yaml:"retention,omitempty"`
	// Delay hides new messages, for up to 15 minutes. Default: none.
	Delay time.Duration `yaml:"delay,omitempty"`
	// MaxReceives is the maxReceiveCount of the redrive policy, up to 1,000. Default: there is none.
	MaxReceives int `yaml:"max-receives,omitempty"`
	// NoDeadLetters: there is no dead-letter queue; what is given up stays until it expires.
	NoDeadLetters bool `yaml:"no-dead-letters,omitempty"`
	// InFlightQuota is how many messages may be in flight. Default: 120,000, as of SQS.
	InFlightQuota int `yaml:"in-flight-quota,omitempty"`
}

// Handler is the model of the code that handles a message.
type Handler struct {
	// Takes is how long a run takes. Default: 100ms.
	Takes Times `yaml:"takes,omitempty"`
	// Fails is the chance that an attempt fails, from 0 to 1: of the first attempt, the second, and
	// so on; the last repeats. Default: none fails.
	Fails []float64 `yaml:"fails,omitempty"`
	// Changes are when Fails becomes other chances, in the order of their times. Default: it never
	// does.
	Changes []Change `yaml:"changes,omitempty"`
	// Permanent is the share of messages that fail with a permanent error, which is given up at once.
	Permanent float64 `yaml:"permanent,omitempty"`
	// Always is the share of messages of which every attempt fails.
	Always float64 `yaml:"always,omitempty"`
}

// Dependency is what handlers call, each run once, when it begins.
type Dependency struct {
	// Capacity is how many requests a second it takes. It rejects what comes beyond, and the run
	// fails. Default: it takes all.
	Capacity float64 `yaml:"capacity,omitempty"`
	// Burst is how many requests it takes at once after a pause. Default: those of a second.
	Burst float64 `yaml:"burst,omitempty"`
	// Rejects is how long a run takes that is rejected. Default: 10ms.
	Rejects time.Duration `yaml:"rejects,omitempty"`
	// Outages are when it is down. They must not overlap.
	Outages []Outage `yaml:"outages,omitempty"`
}

// Outage is a time in which requests to the dependency fail.
type Outage struct {
	At  time.Duration `yaml:"at"`
	For time.Duration `yaml:"for"`
	// Share is the share of requests that fail. Default: 1, all of them.
	Share float64 `yaml:"share,omitempty"`
	// Takes is how long a run takes that fails so. Default: as long as others.
	Takes time.Duration `yaml:"takes,omitempty"`
}

// Fleet is the consumers. Each field is that of the consumer's configuration.
type Fleet struct {
	// Consumers is how many processes there are, up to 1,000. Default: 1.
	Consumers int `yaml:"consumers,omitempty"`
	// Concurrency is how many handlers each runs at once. Default: 10.
	Concurrency int `yaml:"concurrency,omitempty"`
	// Prefetch is how many messages may wait in each for a handler. Negative: none. Default: 10.
	Prefetch int `yaml:"prefetch,omitempty"`
	// Lease is the visibility timeout of each receive, which heartbeats renew. Default: 1m.
	Lease time.Duration `yaml:"lease,omitempty"`
	// Timeout ends a run, which then fails as if the dependency were unavailable. Default: none.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// LongPoll is how long a receive waits for a message. Default: 20s.
	LongPoll time.Duration `yaml:"long-poll,omitempty"`
	// Rate is how many runs each may start in a second, for each queue of a pool. Default: no limit.
	Rate float64 `yaml:"rate,omitempty"`
	// Weight is how many handlers start for the scenario's own queue while one of weight 1 has one
	// start: see [Scenario.Pool], without which it must be 0. Default: 1.
	Weight int `yaml:"weight,omitempty"`
	// Via is how waits are carried out: auto, visibility or requeue. Default: auto.
	Via string `yaml:"via,omitempty"`
	// Waits is what happens to a FIFO group of which a message has failed: hold, block or skip.
	// Default: hold.
	Waits string `yaml:"waits,omitempty"`
	// NoBreaker: no circuit breaker opens when the dependency is unavailable.
	NoBreaker bool `yaml:"no-breaker,omitempty"`
	// Probe: the consumers have a probe, which finds out without a message whether the dependency is
	// back.
	Probe bool `yaml:"probe,omitempty"`
	// Threshold is after how many failed messages a breaker opens. Default: 20.
	Threshold int `yaml:"threshold,omitempty"`
	// Batch has each run of a handler work on several messages: Concurrency then counts runs, and
	// Handler.Takes and Timeout are those of a run. Default: on one message each.
	Batch Batch `yaml:"batch,omitempty"`
	// RetryLane has messages that failed wait in a queue of their own. Default: they wait in the
	// same queue.
	RetryLane RetryLane `yaml:"retry-lane,omitempty"`
	// Restarts are when consumers go, and others come.
	Restarts []Restart `yaml:"restarts,omitempty"`
}

// Batch is that of a consumer of batches. The run of a batch makes one request to the dependency, and
// fails as a whole if that does; otherwise each message fails by itself. Attempts count messages.
type Batch struct {
	// Size is how many messages a run has at most, up to 10,000. Default: 1, which is no batch.
	Size int `yaml:"size,omitempty"`
	// Linger is how long the first message waits for others, up to 1h. Negative: not at all.
	// Default: 1s.
	Linger time.Duration `yaml:"linger,omitempty"`
}

// RetryLane is a second queue, to which copies of messages that failed are sent. The consumers share
// their handlers between the two. FIFO queues have none.
type RetryLane struct {
	// Weight is how many handlers start for the lane for each one of the queue, or for as many as the
	// queue's weight is in a pool, while both have messages: 1 to 1,000. Default: 0, which is no lane.
	Weight int `yaml:"weight,omitempty"`
	// Priority is the lane's rank; that of the queue is 0. While a message of the higher one is
	// ready, no other handler starts. Default: 0; turns are taken by weight.
	Priority int `yaml:"priority,omitempty"`
}

// Restart is the end of consumers, and their return.
type Restart struct {
	At time.Duration `yaml:"at"`
	// Down is how long after At others come.
	Down time.Duration `yaml:"down,omitempty"`
	// Consumers is how many of them. Default: all.
	Consumers int `yaml:"consumers,omitempty"`
	// Kill: they crash. Default: they stop gracefully, as at a deploy.
	Kill bool `yaml:"kill,omitempty"`
}

// Network is between the consumers and SQS.
type Network struct {
	// Latency is how long a request takes to SQS at the least, and its reply back. Default: 2ms.
	Latency time.Duration `yaml:"latency,omitempty"`
	// Spread is how much longer half of them take; some take much longer. Default: 1ms. Negative:
	// none does.
	Spread time.Duration `yaml:"spread,omitempty"`
	// The chances that a request is lost, that its reply is lost, that it is throttled, and that
	// SQS answers with an error.
	LoseRequest float64 `yaml:"lose-request,omitempty"`
	LoseReply   float64 `yaml:"lose-reply,omitempty"`
	Throttle    float64 `yaml:"throttle,omitempty"`
	Fail        float64 `yaml:"fail,omitempty"`
}
