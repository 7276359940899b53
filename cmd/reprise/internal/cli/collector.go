package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// garbageRoom is by how many bytes the heap may grow beyond its live objects before it is
// collected. By Go's rule it may double: a server whose messages are deleted as fast as
// they come has few live objects, and would be collected a hundred times a second. This
// value saves a fourteenth of its processor time. A larger one saves no more, because
// less of the heap stays in the processor's caches.
const garbageRoom = 64 << 20

var watchingGarbage sync.Once

// roomForGarbage lets the heap grow by garbageRoom, unless the environment sets GOGC or
// GOMEMLIMIT.
func roomForGarbage() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		watchingGarbage.Do(func() { watchGarbage(100) }) // Go's own percentage
	}
}

// watchGarbage sets the collector's percentage from what the last collection has left
// alive, and does so again after each collection; percent is the current one. It needs no
// ticker, so an idle server does nothing: each collection frees an object whose cleanup
// calls this function.
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
	watched := &struct{ itself *int }{new(int)} // with a pointer: Go allocates tiny objects without one together, and frees them together
	runtime.AddCleanup(watched, watchGarbage, percent)
}

// collectAt returns the growth of the heap at which to collect, in percent of what is
// alive, which includes stacks and globals, as in Go's own rule. Go does not collect a heap
// below 4 MiB times the percentage, so live below 4 MiB counts as 4 MiB.
func collectAt(live uint64) int {
	const step = 10 // small differences are not worth a change
	percent := garbageRoom * 100 / max(live, 4<<20)
	return int(max(100, percent/step*step)) //nolint:gosec // G115: at most 1600
}
