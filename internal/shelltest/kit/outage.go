package kit

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// Dependency is the service that the handlers of a test call. It is unavailable at times, for all
// keys or for some, and records its calls.
type Dependency struct {
	Journal
	Takes time.Duration // for each call, whether it answers or not

	Mu      sync.Mutex      // of what follows
	down    map[string]bool // by tenant; the empty one is everybody
	Running int             // calls under way
	Starts  []time.Time
	Peaks   []int // calls under way at each start
	failed  int
}

// Set makes the dependency unavailable to a tenant, or available; to all for "".
func (p *Dependency) Set(tenant string, down bool) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.down == nil {
		p.down = make(map[string]bool)
	}
	p.down[tenant] = down
}

// Failures returns how many calls have failed.
func (p *Dependency) Failures() int {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return p.failed
}

// Handle is a handler that calls the dependency.
func (p *Dependency) Handle(ctx context.Context, m *reprise.Message) error {
	p.Add(m)
	p.Mu.Lock()
	p.Running++
	p.Starts = append(p.Starts, time.Now())
	p.Peaks = append(p.Peaks, p.Running)
	p.Mu.Unlock()
	time.Sleep(p.Takes)
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Running--
	if p.down[""] || p.down[Tenant(m)] {
		p.failed++
		return reprise.Unavailable(ErrUnavailable)
	}
	return nil
}

// WaitFor waits, in virtual time, until the condition holds, for at most limit.
func WaitFor(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// StateOf returns the state of the breaker of key.
func StateOf(c *reprisetest.Consumer, key string) reprise.BreakerState {
	for _, b := range c.Status().Breakers {
		if b.Key == key {
			return b.State
		}
	}
	return reprise.BreakerClosed
}

// StateIs returns a condition for WaitFor: that the breaker of key is in state s.
func StateIs(c *reprisetest.Consumer, key string, s reprise.BreakerState) func() bool {
	return func() bool { return StateOf(c, key) == s }
}

// FailBut returns err unless ok.
func FailBut(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}
