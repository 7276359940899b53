package mapping

import (
	"context"
	"sync"
)

// limit bounds how many batches run at once. With each failed batch there are fewer, down to one,
// with each success one more: Lambda does the same, with numbers that are not documented.
type limit struct {
	mu      sync.Mutex
	most    int
	allowed int
	running int

	freed chan struct{} // holds one signal, for the only caller of acquire
}

func newLimit(most int) *limit {
	return &limit{most: most, allowed: most, freed: make(chan struct{}, 1)}
}

// acquire waits until another batch may run; it reports false when ctx has ended.
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

// release ends a batch. After a failure fewer may run.
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
