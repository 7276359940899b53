package journal

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSpaceIsReclaimedAgain: for as long as the disk is low, space is reclaimed once every two seconds in which somebody
// asks; when it has room, or the journal is closed, no more.
func TestSpaceIsReclaimedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		disk := func(free uint64) { fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 40}) }
		disk(1)
		var reclaimed atomic.Int32
		var s space
		s.init(Options{FS: fs, Dir: "d", MinFree: 100, Logger: slog.New(slog.DiscardHandler)}, func(err error) { t.Error(err) }, func() { reclaimed.Add(1) })
		const step = 300 * time.Millisecond // never the instant of a reclaim
		pass := func(during time.Duration, want int32) {
			t.Helper()
			reclaimed.Store(0)
			for range during / step {
				time.Sleep(step)
				s.low()
			}
			synctest.Wait()
			if n := reclaimed.Load(); n != want {
				t.Errorf("in %v space was reclaimed %d times, want %d", during, n, want)
			}
		}
		pass(9*time.Second, 4)
		disk(100)
		pass(3*time.Second, 1) // which was due
		pass(18*time.Second, 0)
		disk(99)
		pass(3*time.Second, 1)
		s.stop()
		pass(18*time.Second, 0)
	})
}
