package cli

import (
	"os"
	"runtime"
	"strconv"
)

// processorForSyncs has Go use one processor more than it would, unless the
// environment's GOMAXPROCS says how many. A goroutine that syncs a file occupies one
// until the runtime's monitor takes it away, which can be as late as the sync's end:
// on two processors half of a server stood still while the disk was busy, and took an
// eighth less of 16 clients that send, and a quarter less of 128.
//
// Go no longer follows changes of a container's limit then.
func processorForSyncs() {
	if n, err := strconv.Atoi(os.Getenv("GOMAXPROCS")); err == nil && n > 0 { // what Go heeds
		return
	}
	runtime.SetDefaultGOMAXPROCS() // however often this is called
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
}
