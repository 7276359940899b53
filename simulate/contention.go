package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/retry"
)

// Contention is the experiment of "Exponential Backoff And Jitter", AWS Architecture Blog: clients
// that begin together change one value with optimistic concurrency control. Each reads its version,
// then writes if that is still the version; if it is not, the client waits as the policy says, and
// reads again, until it has written once. Each message between client and value takes a normally
// distributed time of 10 ms with a deviation of 2 ms.
type Contention struct {
	// Clients is how many there are, up to 10,000. Trials is how often the experiment is repeated:
	// the results are means. Default: 100.
	Clients, Trials int
	// Policy has the Backoff and the Jitter; limits do not count.
	Policy retry.Policy
	Seed   uint64
	// Progress is called before each trial, with how many were made. Default: nothing is called.
	Progress func(trials int)
}

// Contended is the result of a [Contention].
type Contended struct {
	Calls float64       // writes, the failed ones included
	Took  time.Duration // until the last client has written
}

const (
	hopMean      = 10 * time.Millisecond
	hopDeviation = 2 * time.Millisecond
)

// Contend runs the experiment. If ctx ends it returns the means of the trials made so far, with the
// context's cause.
func Contend(ctx context.Context, c Contention) (Contended, error) {
	fill(&c.Trials, 100)
	var problems checks
	problems.count("the number of clients", c.Clients, 1, 10_000)
	problems.count("the number of trials", c.Trials, 1, 1_000_000)
	if err := errors.Join(append(problems, c.Policy.Validate())...); err != nil {
		return Contended{}, fmt.Errorf("the experiment is invalid:\n%w", err)
	}
	calls, took := 0, time.Duration(0)
	for trial := range c.Trials {
		if c.Progress != nil {
			c.Progress(trial)
		}
		if ctx.Err() != nil {
			return mean(calls, took, trial), context.Cause(ctx)
		}
		n, end, err := c.trial(uint64(trial))
		if err != nil {
			return Contended{}, err
		}
		calls += n
		took += end
	}
	return mean(calls, took, c.Trials), nil
}

func mean(calls int, took time.Duration, trials int) Contended {
	n := max(trials, 1)
	return Contended{float64(calls) / float64(n), took / time.Duration(n)}
}

func (c *Contention) trial(number uint64) (calls int, took time.Duration, err error) {
	l := world.NewLoop(epoch, mix(mix(c.Seed)^number))
	hop := func() time.Duration {
		return time.Duration(math.Abs(float64(hopMean) + l.Random.NormFloat64()*float64(hopDeviation)))
	}
	version, left := 0, c.Clients
	for client := range c.Clients {
		seed := strconv.FormatUint(mix(mix(c.Seed)^number), 36) + " " + strconv.Itoa(client)
		failures := 0
		var read func()
		read = func() { // the request arrives after one hop, its reply after another
			l.After(hop(), "a read", func() {
				seen := version
				l.After(hop()+hop(), "a write", func() {
					calls++
					if seen == version {
						version++
						l.After(hop(), "a reply", func() { left, took = left-1, l.Since() })
						return
					}
					failures++
					l.After(hop()+c.Policy.Wait(seed, failures), "a wait", read)
				})
			})
		}
		read()
	}
	for end := time.Minute; left > 0; end += time.Minute {
		if end > MaxHorizon {
			return calls, l.Since(), fmt.Errorf("after %v %d of %d clients have not written: shorten the policy's waits", MaxHorizon, left, c.Clients)
		}
		if err := l.Run(end); err != nil {
			return calls, l.Since(), err
		}
	}
	return calls, took, nil
}
