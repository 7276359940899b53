package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// garbageRoom is how far the heap may grow, in bytes, beyond what lives before it is
// collected. By Go's rule it doubles: a server whose messages are worked off as they
// come has little that lives, and would be collected a hundred times a second. This
// much saves a fourteenth of its processor time; more saves no more, for the caches
// of the processor have less of it.
const garbageRoom = 64 << 20

var watchingGarbage sync.Once

// roomForGarbage gives the collector room, unless the environment says when to
// collect, or how much memory there is.
func roomForGarbage() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		watchingGarbage.Do(func() { watchGarbage(100) }) // Go's own percentage
	}
}

// watchGarbage sets the collector's percentage, which was so much, by what the last
// collection has left alive, and again after each. The server needs no ticker for it,
// and an idle one does nothing: the collector itself lets go of what is watched.
func watchGarbage(percent int) {
	scanned := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(scanned)
	var live uint64
	for i := range scanned {
		live += scanned[i].Value.Uint64()
	}
	if next := collectAt(live); next != percent {
		percent = next
		debug.SetGCPercent(percent) // stops the world for some microseconds
	}
	watched := &struct{ itself *int }{new(int)} // with a pointer: else many such share a place, and a life
	runtime.AddCleanup(watched, watchGarbage, percent)
}

// collectAt is the growth of the heap at which to collect, in percent of what lives:
// stacks and globals too, as Go reckons. Go collects no heap below 4 MiB times the
// percentage, so that less alive than that must not raise it.
func collectAt(live uint64) int {
	const step = 10 // small differences are not worth a change
	percent := garbageRoom * 100 / max(live, 4<<20)
	return int(max(100, percent/step*step)) //nolint:gosec // G115: at most 1600
}
