package playground

import (
	"reflect"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// TestScenarioOfAForm: what is simulated has each figure of the form, and each setting of its queue, in its own place.
func TestScenarioOfAForm(t *testing.T) {
	f := Form{
		Policy: retry.Policy{Backoff: retry.Constant(time.Second)}, Messages: 11, Rate: 2.5, For: 21 * time.Minute, Fails: 0.04, Takes: 300 * time.Millisecond,
		Outage: 5 * time.Minute, OutageAt: 13 * time.Minute, Capacity: 40, Consumers: 3, Concurrency: 6, Seed: 9,
	}
	want := simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: 11, Rate: 2.5, For: 21 * time.Minute}, Policy: f.Policy,
		Handler:    simulate.Handler{Takes: simulate.Constant(300 * time.Millisecond), Fails: []float64{0.04}},
		Dependency: simulate.Dependency{Capacity: 40, Outages: []simulate.Outage{{At: 13 * time.Minute, For: 5 * time.Minute}}},
		Fleet:      simulate.Fleet{Consumers: 3, Concurrency: 6}, Seed: 9,
	}
	queue := plan.Queue{FIFO: true, Visibility: 30 * time.Second, Retention: time.Hour, Delay: 7 * time.Second, MaxReceives: 4, DeadLetterARN: "arn:aws:sqs:eu-west-1:1:dead", DeadLetterRetention: 2 * time.Hour}
	if got := f.scenario(Settings{Queue: queue}); !reflect.DeepEqual(got, want) {
		t.Errorf("of no queue: %+v, want %+v", got, want)
	}
	want.Queue = simulate.Queue{FIFO: true, Retention: time.Hour, Delay: 7 * time.Second, MaxReceives: 4}
	if got := f.scenario(Settings{Queue: queue, Known: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("of a queue: %+v, want %+v", got, want)
	}
	queue.MaxReceives, queue.DeadLetterARN = 0, ""
	want.Queue.MaxReceives, want.Queue.NoDeadLetters = 0, true
	if got := f.scenario(Settings{Queue: queue, Known: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("of a queue without a dead-letter queue: %+v, want %+v", got, want)
	}
}
