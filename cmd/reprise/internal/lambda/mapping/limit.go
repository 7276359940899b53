package mapping

import (
	"context"
	"sync"
)

// limit is how many batches run at once. A function that fails gets fewer, down to one,
// and one more with each batch that succeeds: Lambda allots concurrency so too, without
// telling by which numbers.
type limit struct {
	mu      sync.Mutex
	most    int
	allowed int
	running int

	freed chan struct{} // holds one signal: there is one who acquires
}

func newLimit(most int) *limit {
	return &limit{most: most, allowed: most, freed: make(chan struct{}, 1)}
}

// acquire waits until a batch more may run; it reports false when ctx has ended.
func (l *limit) acquire(ctx context.Context) bool {
	for {
		if ctx.Err() != nil {
			return false
		}
		if l.take() {
			return true
		}
		select {
		case <-l.freed:
		case <-ctx.Done():
		}
	}
}

func (l *limit) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running >= l.allowed {
		return false
	}
	l.running++
	return true
}

// release ends a batch. Unless it went well, fewer may run from now on.
func (l *limit) release(well bool) {
	l.mu.Lock()
	l.running--
	if well {
		l.allowed = min(l.most, l.allowed+1)
	} else {
		l.allowed = max(1, l.allowed/2)
	}
	l.mu.Unlock()
	select {
	case l.freed <- struct{}{}:
	default:
	}
}
