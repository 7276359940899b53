package journal

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// space knows whether the disk has room. It looks when it is called, at most once every
// spaceEvery: an idle server needs no ticker.
type space struct {
	options Options
	begin   time.Time
	asked   atomic.Int64 // when it last looked, since begin
	isLow   atomic.Bool

	gone       func(error) // the directory was deleted
	reclaim    func()      // frees disk space
	reclaiming atomic.Bool
	mu         sync.Mutex // held while reclaiming
	ended      bool
}

// spaceEvery is short enough that at 500 MB/s at most 125 MB below the watermark are written
// before the server notices.
const spaceEvery = 250 * time.Millisecond

// reclaimEvery is how often space is reclaimed while the disk is low.
const reclaimEvery = 2 * time.Second

func (s *space) init(o Options, gone func(error), reclaim func()) {
	s.options, s.gone, s.reclaim = o, gone, reclaim
	s.begin = time.Now()
	s.ask()
}

func (s *space) low() bool {
	now, asked := int64(time.Since(s.begin)), s.asked.Load()
	if now-asked >= int64(spaceEvery) && s.asked.CompareAndSwap(asked, now) {
		s.ask()
	}
	return s.isLow.Load()
}

func (s *space) ask() {
	if s.options.MinFree < 0 {
		return
	}
	usage, err := s.options.FS.GetDiskUsage(s.options.Dir)
	if err != nil {
		switch {
		case errors.Is(err, os.ErrNotExist):
			// Open files can still be written and synced, but are lost when they are closed.
			s.gone(fmt.Errorf("the directory is gone: %w", err))
		case !errors.Is(err, vfs.ErrUnsupported):
			s.options.Logger.Warn("cannot tell how full the disk is", "dir", s.options.Dir, "error", err)
		}
		return
	}
	low := usage.AvailBytes < uint64(s.options.MinFree)
	if low && !s.options.ReadOnly && s.reclaiming.CompareAndSwap(false, true) {
		time.AfterFunc(reclaimEvery, s.reclaimNow)
	}
	if s.isLow.Swap(low) == low {
		return
	}
	if low {
		s.options.Logger.Warn("the disk is nearly full: sends are refused until messages are deleted or space is freed",
			"dir", s.options.Dir, "free", usage.AvailBytes, "min_free", s.options.MinFree)
	} else {
		s.options.Logger.Info("the disk has room again", "dir", s.options.Dir, "free", usage.AvailBytes)
	}
}

func (s *space) reclaimNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.reclaim()
	}
	s.reclaiming.Store(false)
}

// stop waits for a running reclaim and prevents new ones.
func (s *space) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// CheckRoom returns an error unless the disk has room for so many bytes of keys and values, and
// Options.MinFree besides. The files in which they are now go only once the others are on disk.
func (j *Journal) CheckRoom(bytes int64) error {
	usage, err := j.options.FS.GetDiskUsage(j.options.Dir)
	switch {
	case errors.Is(err, vfs.ErrUnsupported):
		j.options.Logger.Warn("cannot tell how full the disk is", "dir", j.options.Dir, "error", err)
		return nil
	case err != nil:
		return describe(j.options.Dir, err)
	}
	if need := uint64(bytes + max(j.options.MinFree, 0)); usage.AvailBytes < need { //nolint:gosec // G115: neither is negative
		const mib = 1 << 20
		return fmt.Errorf("the records of an older version are converted, for which %d MiB have to be free, with the %d MiB that stay so, and %d MiB are: "+
			"free space, or use the version that wrote them; nothing has been changed",
			(need+mib-1)/mib, max(j.options.MinFree, 0)/mib, usage.AvailBytes/mib)
	}
	return nil
}
