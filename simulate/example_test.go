package simulate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// Ten minutes of traffic, of which a fifth fails, meet an outage of two minutes.
func ExampleRun() {
	result, err := simulate.Run(context.Background(), simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 20, For: 10 * time.Minute},
		Policy:  retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: time.Minute}, MaxAttempts: 8},
		Handler: simulate.Handler{Fails: []float64{0.2}},
		Dependency: simulate.Dependency{
			Outages: []simulate.Outage{{At: 2 * time.Minute, For: 2 * time.Minute}},
		},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	outage := result.Outages[0]
	fmt.Println(result.Stop, result.Messages.Dead, "dead")
	fmt.Println(outage.Backlog > 2000, outage.Cleared < 5*time.Minute, result.Attempts.Unavailable < 500)
	// Output:
	// settled 0 dead
	// true true true
}

// When the attempts of a thousand messages come, from the policy alone.
func ExampleNewSchedule() {
	schedule, err := simulate.NewSchedule(context.Background(), simulate.Alone{
		Policy:   retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 3},
		Messages: 1000,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range schedule.Attempts {
		fmt.Println(a.N, a.Reached, a.Median)
	}
	// Output:
	// 1 1000 0s
	// 2 1000 1m0s
	// 3 1000 2m0s
}
