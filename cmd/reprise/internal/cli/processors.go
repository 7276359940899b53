package cli

import (
	"os"
	"runtime"
	"strconv"
)

// processorForSyncs makes Go use one processor more than by default, unless the
// environment sets GOMAXPROCS. A goroutine that syncs a file occupies its processor until
// the runtime's monitor takes it away, which can be as late as the end of the sync. On two
// processors, half of a server stood still while the disk was busy: with 16 sending
// clients its throughput was lower by an eighth, with 128 by a quarter.
//
// After this, Go no longer follows changes of a container's CPU limit.
func processorForSyncs() {
	if n, err := strconv.Atoi(os.Getenv("GOMAXPROCS")); err == nil && n > 0 { // Go ignores other values
		return
	}
	runtime.SetDefaultGOMAXPROCS() // however often this is called
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
}
