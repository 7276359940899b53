package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/extremes"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// TestExtremesOfScenarios: each number of a scenario at its extremes is refused with the field's name, or
// the scenario runs, message by message and fluid, and accounts for each message.
func TestExtremesOfScenarios(t *testing.T) {
	base := func() simulate.Scenario {
		return simulate.Scenario{
			Traffic: simulate.Traffic{Backlog: 20, Rate: 0.05, For: time.Minute, Bursts: []simulate.Burst{{At: time.Second, Messages: 3, Over: time.Second}}, Series: []int{2, 3}, Every: time.Minute},
			Policy:  retry.Policy{MaxAttempts: 3, MaxAge: time.Hour},
			Handler: simulate.Handler{Fails: []float64{0.2, 0.1}, Changes: []simulate.Change{{At: time.Minute, Fails: []float64{0.3}}}, Permanent: 0.1},
			Dependency: simulate.Dependency{Capacity: 20, Burst: 5, Rejects: time.Second,
				Outages: []simulate.Outage{{At: 10 * time.Second, For: time.Minute, Share: 0.5, Takes: time.Second}, {At: 2 * time.Minute, For: time.Minute}}},
			Fleet:   simulate.Fleet{Consumers: 2, Restarts: []simulate.Restart{{At: time.Minute, Down: time.Second, Consumers: 1}}},
			Horizon: time.Hour,
		}
	}
	check := func(field string, value any, s simulate.Scenario) {
		t.Run(fmt.Sprintf("%s=%v, fluid %v, FIFO %v", field, value, s.Fluid, s.Queue.FIFO), func(t *testing.T) {
			err := s.Validate()
			if err == nil {
				run(t, s)
				return
			}
			parts := strings.Split(field, ".")
			if !named(err.Error(), parts[len(parts)-1]) {
				t.Errorf("the error does not name %s: %v", field, err)
			}
			if strings.Contains(err.Error(), "[-1]") {
				t.Errorf("the error names no element of a list: %v", err)
			}
		})
	}
	for _, kind := range []string{"single", "fluid", "fifo", "batch", "pool"} {
		s := base()
		switch kind {
		case "fluid":
			s.Fluid = true
		case "fifo":
			s.Queue = simulate.Queue{FIFO: true, Groups: 5}
		case "batch":
			s.Fleet.Batch = simulate.Batch{Size: 4, Linger: time.Second}
			s.Fleet.RetryLane = simulate.RetryLane{Weight: 2, Priority: 1}
		case "pool":
			s.Pool = []simulate.Pooled{{Name: "other", Traffic: simulate.Traffic{Backlog: 5, Rate: 0.01, For: time.Minute}, Weight: 2, Priority: 1}}
			s.Fleet.Weight = 3
		}
		if err := s.Validate(); err != nil {
			t.Fatal(kind, err)
		}
		extremes.Of(s, func(field string, value any, s simulate.Scenario) bool {
			if kind == "single" || kind == "fluid" || strings.HasPrefix(field, map[string]string{"fifo": "Queue", "batch": "Fleet", "pool": "Pool"}[kind]) {
				check(field, value, s)
			}
			return true
		})
	}
}

// named reports whether text has the name of a field, as files call it.
func named(text, field string) bool {
	return strings.Contains(strings.ReplaceAll(strings.ToLower(text), "-", ""), strings.ToLower(strings.TrimPrefix(field, "Max")))
}
