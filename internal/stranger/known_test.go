package stranger_test

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestKnown runs small scenarios again that have broken a promise, or taught what the documents had to say.
func TestKnown(t *testing.T) {
	for name, s := range map[string]scenario{
		"receives end before the attempts": {
			Queue:     queueSettings{MaxReceives: 1},
			Versions:  []settings{{Retry: "constant(10s) attempts=5", Via: reprise.ViaVisibility}},
			Processes: []process{{}},
			Messages:  []message{{Steps: []step{{Result: fail}}}},
		},
		"a dead letter whose original cannot be deleted": {
			Queue:     queueSettings{MaxReceives: 10},
			Versions:  []settings{{Retry: "constant(1s) attempts=1", AfterDelete: true}},
			Processes: []process{{}},
			Messages:  []message{{Steps: []step{{Result: fail}}}},
			Faults:    []spell{{When: span{Until: 139 * time.Second}, Kind: sqsserver.FaultStaleHandle}},
		},
		"a group behind a message that is kept": {
			Queue:     queueSettings{FIFO: true, Retention: time.Hour},
			Processes: []process{{}},
			Messages:  []message{{Steps: []step{{Result: permanent}}}, {Steps: []step{{Result: fail}}}},
		},
		"a message that a stop has given back twice": {
			Versions:  []settings{{Retry: "constant(1s) attempts=1", Batch: true}},
			Processes: []process{{Until: 28 * time.Millisecond}, {From: 40 * time.Second}},
			Messages:  []message{{}},
		},
		"a handler that outlasts its message": {
			Queue:     queueSettings{Retention: 166 * time.Second},
			Processes: []process{{}},
			Messages:  []message{{Steps: []step{{Takes: 1625 * time.Second, Ignores: true}}}},
		},
		"work that is done, behind another message of its group": {
			Queue:     queueSettings{FIFO: true, MaxReceives: 25},
			Processes: []process{{}},
			Messages: []message{
				{At: 6062655023, Group: 2, Steps: []step{{Result: unavailable}, {Result: release}, {}}},
				{At: 7517923054, Group: 2},
			},
			Faults: []spell{{When: span{Until: 20 * time.Second}, Kind: sqsserver.FaultLoseLease}},
		},
		"an age that is used up before a receive": {
			Queue:     queueSettings{MaxReceives: 3},
			Versions:  []settings{{Retry: "linear(base=119.856681ms,step=1.23s,max=3.1s) jitter=equal age=11.23s since=sent"}},
			Processes: []process{{}},
			Messages:  []message{{Steps: []step{{Result: fail}, {Result: release}}}},
		},
	} {
		t.Run(name, func(t *testing.T) { replay(t, s) })
	}
}
