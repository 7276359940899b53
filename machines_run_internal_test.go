package reprise

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/world"
)

var (
	machinesSeeds = flag.Uint64("machines.seeds", 100, "how many fleets TestMachines runs")
	machinesFrom  = flag.Uint64("machines.from", 1, "the seed of the first")
)

// machinesReached are the paths that some fleet must take.
var machinesReached = []string{
	"starts", "crashes", "sleeps for", "is cut off for", "sets its clock by", "loses a request", "loses a reply", "is throttled",
	"gets an error of the service", "is denied access", "has an entry refused", "is paused", "redrives", "runs a message for long",
	"attempt: delete", "attempt: retry", "attempt: release", "attempt: dead-letter", "attempt: hold", "attempt: lost",
	"settled: delete", "settled: retry", "settled: release", "settled: park", "settled: dead-letter", "settled: lost",
	"renews", "sends a copy", "sends a dead letter", "breaker: open", "breaker: half-open", "breaker: ramping", "breaker: closed", "leaves work behind",
}

// TestMachines runs fleets of consumers through everything that a seed has in store for
// them, all of them as state machines in one loop of virtual time.
func TestMachines(t *testing.T) {
	if testing.Short() {
		*machinesSeeds = min(*machinesSeeds, 50)
	}
	began := time.Now()
	noted := make(map[string]int)
	var mu sync.Mutex
	var taken atomic.Uint64
	t.Run("seeds", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i := taken.Add(1); i <= *machinesSeeds; i = taken.Add(1) {
					seed := *machinesFrom + i - 1
					f := newMachines(seed)
					if err := f.live(drawMachineActs(seed, f.calm)); err != nil {
						t.Errorf("seed %d, again with -machines.from=%d -machines.seeds=1:\n%v\n%s", seed, seed, err, machinesStory(seed))
						return
					}
					mu.Lock()
					for what, n := range f.loop.Noted() {
						noted[what] += n
					}
					mu.Unlock()
				}
			})
		}
	})
	took := time.Since(began).Seconds()
	fmt.Printf("TestMachines: %d seeds from %d in %.1f s, %.0f a second; %d runs of handlers\n", *machinesSeeds, *machinesFrom, took, float64(*machinesSeeds)/took, noted["runs message"])
	for _, what := range machinesReached {
		if noted[what] == 0 && *machinesSeeds >= 500 {
			t.Errorf("no fleet has noted %q", what)
		}
	}
}

// machinesStory is the shortest list of acts with which the fleet of the seed fails, and
// what happens in it.
func machinesStory(seed uint64) string {
	calm := newMachines(seed).calm
	acts := world.Shrink(drawMachineActs(seed, calm), func(some []machineAct) bool { return newMachines(seed).live(some) != nil })
	var text strings.Builder
	for _, a := range acts {
		fmt.Fprintln(&text, a)
	}
	f := newMachines(seed)
	var lines []string
	f.loop.Listen(func(at time.Duration, what string) {
		lines = append(lines, fmt.Sprintf("%14v %s", at.Round(time.Millisecond), what))
	})
	err := f.live(acts)
	if most := 100; len(lines) > most {
		lines = append([]string{fmt.Sprintf("(%d lines before)", len(lines)-most)}, lines[len(lines)-most:]...)
	}
	fmt.Fprintf(&text, "%s\n%v\n", strings.Join(lines, "\n"), err)
	return text.String()
}

// TestMachinesRepeat: the same seed gives the same run, to the nanosecond.
func TestMachinesRepeat(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		once, again := newMachines(seed), newMachines(seed)
		acts := drawMachineActs(seed, once.calm)
		if err := errors.Join(once.live(acts), again.live(acts)); err != nil {
			t.Error(err)
		}
		if once.loop.Trace() != again.loop.Trace() {
			t.Errorf("seed %d does not repeat", seed)
		}
	}
}
