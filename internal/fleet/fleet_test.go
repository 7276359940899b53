package fleet_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/internal/race"
)

var (
	fleetSeeds = flag.Int("fleet.seeds", race.Fewer(300, 20), "how many fleets TestFleet runs, each from a seed of its own")
	fleetFrom  = flag.Uint64("fleet.from", 1, "the first seed of the fleets")
	fleetTwice = flag.Int("fleet.repeats", race.Fewer(6, 3), "how many fleets TestFleetRepeats runs three times")
	fleetUntil = flag.String("fleet.until", "", "an invariant, in its words: TestFleet ends at once when a fleet has broken it")
	fleetSDK   = flag.Int("fleet.sdk", race.Fewer(12, 4), "how many fleets TestFleetOfSDKs runs")
)

// TestFleet runs consumers of one queue through everything that its seed has in
// store for them (see [fleet]), and holds the invariants that are named in
// internal/world/invariants.go. The consumers call the server's methods.
func TestFleet(t *testing.T) { runFleets(t, directly, fleetSize(*fleetSeeds)) }

// TestFleetOfSDKs is TestFleet through the real client of the AWS SDK, over an
// in-process transport.
func TestFleetOfSDKs(t *testing.T) { runFleets(t, throughSDK, fleetSize(*fleetSDK)) }

func fleetSize(seeds int) int {
	if testing.Short() {
		return min(seeds, 10)
	}
	return seeds
}

// tier is how the consumers of a fleet reach the server.
type tier string

const (
	directly   tier = "TestFleet"
	throughSDK tier = "TestFleetOfSDKs"
)

// runFleets runs seeds fleets, as many at once as there are processors, and
// prints how much time they have lived through.
func runFleets(t *testing.T, through tier, seeds int) {
	began := time.Now()
	var taken, ran atomic.Int64
	var mu sync.Mutex
	var sum record
	t.Run("seeds", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i := taken.Add(1); i <= int64(seeds); i = taken.Add(1) {
					r := runFleet(t, through, *fleetFrom+uint64(i-1))
					ran.Add(1)
					mu.Lock()
					sum.lived += r.lived
					sum.messages += r.messages
					sum.runs += r.runs
					mu.Unlock()
				}
			})
		}
	})
	took := time.Since(began)
	fmt.Printf("%s: %d seeds from %d: %.1f days, %d messages, %d runs in %.1f s: %.1f days a second\n", through, ran.Load(), *fleetFrom,
		sum.lived.Hours()/24, sum.messages, sum.runs, took.Seconds(), sum.lived.Hours()/24/took.Seconds())
}

// record is what a fleet leaves behind.
type record struct {
	lived    time.Duration // in simulated time
	messages int
	runs     int
	trace    uint64 // a hash of everything that happened, in its order
	events   []string
}

// runFleet runs the fleet of one seed from its start to its end.
func runFleet(t *testing.T, through tier, seed uint64) (r record) {
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, through, seed)
			f.live()
			f.settleDown()
			f.checkEnd()
			r = f.record()
		})
		if t.Failed() {
			t.Logf("replay it: go test -run '^%s$' -fleet.seeds=1 -fleet.sdk=1 -fleet.from=%d ./internal/fleet", through, seed)
		}
	})
	return r
}

// TestFleetRepeats: a seed fixes what happens in a fleet and when, to the
// nanosecond, however many processors there are, so that a failure can be replayed.
// A few fleets in a hundred do not repeat, on a machine that is busy: where two
// goroutines of a consumer are due at one instant, their order is the scheduler's.
// So one of these may differ, and is printed. Nor does the SDK tier always repeat.
func TestFleetRepeats(t *testing.T) {
	var differ []string
	for i := range *fleetTwice {
		seed := *fleetFrom + uint64(i)
		once := runFleet(t, directly, seed)
		for _, processors := range []int{1, 2} {
			before := runtime.GOMAXPROCS(processors)
			again := runFleet(t, directly, seed)
			runtime.GOMAXPROCS(before)
			if again.trace != once.trace {
				differ = append(differ, fmt.Sprintf("seed %d does not repeat with %d processors: %s", seed, processors, firstDifference(once.events, again.events)))
				break
			}
		}
	}
	if len(differ) > 0 {
		t.Logf("%d of %d fleets did not repeat:\n%s", len(differ), *fleetTwice, strings.Join(differ, "\n"))
	}
	if len(differ) > 1 {
		t.Errorf("%d of %d fleets did not repeat, one is permitted", len(differ), *fleetTwice)
	}
}

// firstDifference says where two runs begin to differ.
func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			before := strings.Join(a[max(0, i-5):i], "\n\t")
			return fmt.Sprintf("after\n\t%s\nevent %d was\n\t%s\nand is\n\t%s", before, i, a[i], b[i])
		}
	}
	return fmt.Sprintf("there were %d events, and are %d", len(a), len(b))
}

// TestFleetsDiffer guards the seed: fleets that are all the same would prove
// little.
func TestFleetsDiffer(t *testing.T) {
	seen := make(map[uint64]uint64)
	from := 1 + rand.Uint64N(1000)
	for seed := from; seed < from+4; seed++ {
		r := runFleet(t, directly, seed)
		if other, ok := seen[r.trace]; ok {
			t.Errorf("seeds %d and %d have the same trace", seed, other)
		}
		seen[r.trace] = seed
	}
}
