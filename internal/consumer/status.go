package consumer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/internal/plural"
)

// Health says how well a consumer works.
type Health uint8

// The states of health. Package reprise has the same, with what they mean to users.
const (
	HealthNew      Health = iota // it has not been started
	HealthOK                     // receiving and settling
	HealthDegraded               // working, but something needs an operator's attention
	HealthFailing                // receives fail, or all places are taken by handlers that hang
	HealthStopping               // draining
	HealthStopped                // it has ended
)

// Status is what a consumer is doing. Fields are those of reprise.Status.
type Status struct {
	Health                     Health
	Problem                    string
	Running, Waiting, Settling int
	Processing                 int
	InBackoff                  int
	BackoffProblem             string
	InFlight                   InFlight
	Pollers                    int
	Concurrency                int
	Rate                       float64
	Paused                     bool
	Breakers                   []Breaker
	GivingUp                   *GivingUp
	LastReceive, LastSettle    time.Time
	Counts                     Counts
}

// InFlight is how much of a queue is in flight. Fields are those of reprise.InFlight.
type InFlight struct {
	Queue, Visible int
	AsOf           time.Time
	Quota          int
	Full           bool
}

// Breaker is the state of a breaker, or of a key that is paused. Fields are those of
// reprise.BreakerStatus.
type Breaker struct {
	Key       string
	State     breaker.State
	Since     time.Time
	NextProbe time.Time
	Held      int
	Level     int
	Paused    bool
	Problem   string
}

// Counts are what has happened so far. Fields are those of reprise.Counts.
type Counts struct {
	Received                                               int64
	Duplicates                                             int64
	Attempts, Panics                                       int64
	Batches                                                int64
	Deleted, Retried, Released, Parked, DeadLettered, Kept int64
	Held                                                   int64
	Requeued                                               int64
	Woken                                                  int64
	Expiring                                               int64
	Untrusted                                              int64
	Lost                                                   int64
	LateHeartbeats, LeasesEnded                            int64
}

// String describes the machine's state, for debugging.
func (c *Machine) String() string {
	var pollers []string
	for _, p := range c.pollers {
		pollers = append(pollers, fmt.Sprintf("%d until %v", p.state, p.alarm.At()))
	}
	return fmt.Sprintf("at %v: %d waiting, %d running, %d settling, %d reserved, %d workers, workerStarting %v, pollers %q, breakers %+v, next alarm %v",
		c.now, c.waiting, c.running, c.settling, c.reserved, c.workers, c.workerStarting, pollers, c.Breakers(), c.alarms.Next())
}

// Status returns what the consumer is doing at now.
func (c *Machine) Status(now time.Time) Status {
	health, problem := c.healthNow(now)
	inBackoff, lastProblem := c.memory.InBackoff(now)
	return Status{
		Health:         health,
		Problem:        problem,
		Running:        c.running,
		Waiting:        c.waiting,
		Settling:       c.settling,
		Processing:     len(c.held),
		InBackoff:      inBackoff,
		BackoffProblem: lastProblem,
		InFlight:       c.inFlight(now),
		Pollers:        len(c.pollers),
		Concurrency:    c.concurrency,
		Rate:           c.Rate,
		Paused:         c.paused,
		Breakers:       c.Breakers(),
		GivingUp:       c.givingUp(now),
		LastReceive:    c.health.lastReceive,
		LastSettle:     c.health.lastSettle,
		Counts:         c.counts,
	}
}

// Remains returns what can still be said of a machine whose section was interrupted by a panic: what it
// has counted, and the ids of the messages that it held, sorted. Other methods must not be called then.
func (c *Machine) Remains() (counted Counts, held []string) {
	return c.counts, slices.Sorted(maps.Keys(c.held))
}

// Holds returns how many messages are held.
func (c *Machine) Holds() int { return len(c.held) }

// Breakers returns the breakers that are not closed, and the keys that are paused, in the order of the keys.
func (c *Machine) Breakers() (all []Breaker) {
	for _, g := range c.gates.byKey {
		if g.State() == breaker.Closed && !g.Paused {
			continue
		}
		s := Breaker{Key: g.key, State: g.State(), Since: g.Breaker.Since(), NextProbe: g.Breaker.NextProbe(), Held: g.Holding(), Paused: g.Paused}
		if g.State() == breaker.Ramping {
			s.Level = g.Breaker.Level()
		}
		if g.State() != breaker.Closed && g.cause != nil {
			s.Problem = g.cause.Error()
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Breaker) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// healthNow returns the consumer's health. It adds problems that successful receives and
// settlements do not end: open breakers, a used-up quota, messages that will expire, most
// messages given up.
func (c *Machine) healthNow(now time.Time) (Health, string) {
	if c.health.state != HealthOK && c.health.state != HealthDegraded {
		return c.health.state, c.health.problem
	}
	health, problem := c.health.state, c.health.problem
	add := func(more string) {
		if health = HealthDegraded; problem != "" {
			more = problem + "; " + more
		}
		problem = more
	}
	for _, lasting := range []string{c.inFlightProblem(now), c.expiring.problem(now), c.unsureProblem(now), c.stuckProblem(), c.unsendable.problem(now), c.untakenNow(now), c.unkept.problem(now)} {
		if lasting != "" {
			add(lasting)
		}
	}
	if said := c.givingUp(now); said != nil {
		add(said.String())
	}
	hung, all := c.hungProblem(now)
	if hung != "" {
		add(hung)
	}
	for _, b := range c.Breakers() {
		if b.State == breaker.Closed {
			continue
		}
		what := "dependency"
		if b.Key != "" {
			what = fmt.Sprintf("dependency of key %q", b.Key)
		}
		since, held := b.Since.UTC().Format(time.RFC3339), plural.Of(b.Held, "message")
		switch {
		case c.gates.byKey[b.Key].Breaker.Overloaded():
			add(fmt.Sprintf("%s overloaded since %s (circuit breaker ramping up, %s at once, %s held); last error: %s", what, since, plural.Of(b.Level, "message"), held, b.Problem))
		case b.State == breaker.Ramping:
			add(fmt.Sprintf("%s answers again, after an outage since %s (circuit breaker ramping up, %s at once, %s held); last error: %s", what, since, plural.Of(b.Level, "message"), held, b.Problem))
		default:
			add(fmt.Sprintf("%s unavailable since %s (circuit breaker %v, %s held): %s", what, since, b.State, held, b.Problem))
		}
		break // one breaker is enough
	}
	if all {
		health = HealthFailing
	}
	return health, problem
}

// Empty reports whether no message is held, no receive or worker is left, and no
// Config.AfterDelete runs or waits.
func (c *Machine) Empty() bool {
	return len(c.held) == 0 && len(c.pollers) == 0 && c.workers == 0 && c.after.left() == 0
}
