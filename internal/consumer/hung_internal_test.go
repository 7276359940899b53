package consumer

import "testing"

// TestHungInAPool: a consumer of a pool is failing, so that a platform restarts its process, only
// if all places of the pool are taken by handlers that ignore the end of their contexts.
func TestHungInAPool(t *testing.T) {
	for name, tt := range map[string]struct {
		hung, runs  int // of its own handlers
		theirs, run int // of another consumer's
		problem     bool
		all         bool
	}{
		"all run":                          {0, 2, 0, 2, false, false},
		"some hang":                        {1, 2, 0, 2, true, false},
		"all of its own, others work":      {2, 2, 0, 2, true, false},
		"all of its own, and one of those": {2, 2, 1, 2, true, false},
		"all":                              {2, 2, 2, 2, true, true},
		"all of the others":                {0, 2, 2, 2, false, false},
	} {
		p := NewPool(4)
		c, other := New(Settings{Settings: leased}), New(Settings{Settings: leased})
		p.Join(at(c, 0), Share{Weight: 1}, true)
		p.Join(at(other, 0), Share{Weight: 1}, true)
		c.hung, c.running, c.workers = tt.hung, tt.runs, tt.runs
		other.hung, other.running, other.workers = tt.theirs, tt.run, tt.run
		c.lastMove, other.lastMove = c.now, c.now
		if problem, all := c.hungProblem(c.now); (problem != "") != tt.problem || all != tt.all {
			t.Errorf("%s: the problem is %q, and that of all: %v", name, problem, all)
		}
	}
}
