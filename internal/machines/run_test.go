package machines_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/world"
)

var (
	seeds = flag.Uint64("machines.seeds", uint64(race.Fewer(100, 10)), "how many fleets TestMachines runs")
	from  = flag.Uint64("machines.from", 1, "the seed of the first")
)

// reached are the paths that some fleet must take.
var reached = []string{
	"starts", "crashes", "sleeps for", "is cut off for", "sets its clock by", "loses a request", "loses a reply", "is throttled",
	"gets an error of the service", "is denied access", "has an entry refused", "is paused", "redrives", "runs for long",
	"attempt: delete", "attempt: retry", "attempt: release", "attempt: dead-letter", "attempt: hold", "attempt: lost",
	"settled: delete", "settled: retry", "settled: release", "settled: park", "settled: dead-letter", "settled: lost",
	"renews", "sends a copy", "sends a dead letter", "breaker: open", "breaker: half-open", "breaker: ramping", "breaker: closed", "leaves work behind",
	"runs a batch", "probes", "pauses a key", "is denied the queue's key", "has a request refused for what is in it",
	"suspects a message", "is killed by a message", "believes a forged history", "wakes a message", "announces that a message expires",
	"gives back a message held for 11 hours", "sends copies at a small quota", "has put a copy in the place of a message",
	"finds the service down", "has sent message", "is told after the delete", "settled: keep", "drops message",
	"gives up: permanent", "gives up: attempts", "gives up: age", "gives up: retention", "gives up: skip", "gives up: crash", "gives up: receives",
}

// fleets are the fleets of all seeds.
var fleets = world.Seeds[act]{
	Make: func(seed uint64) world.Simulation[act] { return newFleet(seed) },
	Acts: func(seed uint64) []act { return drawActs(seed, newFleet(seed).nature) },
}

// TestMachines runs fleets of consumers through the acts of each seed, as state machines in one loop of
// virtual time.
func TestMachines(t *testing.T) {
	if testing.Short() {
		*seeds = min(*seeds, 50)
	}
	found := fleets.Run(*from, *seeds)
	fmt.Printf("TestMachines: %v, from %d; %d runs of handlers\n", found, *from, found.Noted["runs message"])
	for _, seed := range found.Failed {
		t.Errorf("seed %d, again with go test ./internal/machines -machines.from=%d -machines.seeds=1:\n%v", seed, seed, fleets.Story(seed))
	}
	if missing := found.Missing(reached); *seeds >= 500 && len(missing) > 0 {
		t.Errorf("no fleet has noted %q", missing)
	}
}

// onceBroken are seeds of fleets that broke an invariant, with what was wrong.
var onceBroken = map[uint64]string{
	502906798: "a mark that was set after an hour without the service let its message kill 19 processes",
	502876290: "the time that SQS hides a message for was counted from when a process that slept heard of it",
}

// TestOnceBroken: what was mended stays so.
func TestOnceBroken(t *testing.T) {
	for seed, wrong := range onceBroken {
		if found := fleets.Run(seed, 1); len(found.Failed) > 0 {
			t.Errorf("seed %d breaks again (it was: %s):\n%v", seed, wrong, fleets.Story(seed))
		}
	}
}

// longFleet is the seed of a fleet whose consumers give back messages that they have held for
// twelve hours.
const longFleet = 59

// TestMachinesRepeat checks that the same seed gives the same run, to the nanosecond.
func TestMachinesRepeat(t *testing.T) {
	seeds := []uint64{1, 2, longFleet}
	for seed := range uint64(27) {
		seeds = append(seeds, seed+3)
	}
	for _, seed := range seeds[:race.Fewer(len(seeds), 2)] {
		once, err := fleets.Trace(seed)
		again, wrong := fleets.Trace(seed)
		if err := errors.Join(err, wrong); err != nil {
			t.Error(err)
		}
		if once != again {
			t.Errorf("seed %d does not repeat", seed)
		}
	}
}
