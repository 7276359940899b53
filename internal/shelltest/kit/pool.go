package kit

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
)

// PoolOf returns a pool of n places.
func PoolOf(t testing.TB, n int) *reprise.Pool {
	t.Helper()
	pool, err := reprise.NewPool(reprise.PoolConfig{Concurrency: n})
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// Starts records when the handlers of each queue were started, and how many run at once.
type Starts struct {
	Mu      sync.Mutex // of what follows
	queue   []string
	at      []time.Time
	Running map[string]int // handlers that run, by queue; of all under ""
	most    map[string]int // the same, at most
}

// NewStarts returns one without starts.
func NewStarts() *Starts {
	return &Starts{Running: make(map[string]int), most: make(map[string]int)}
}

// Handler returns a handler of queue that takes the given time.
func (s *Starts) Handler(queue string, took time.Duration) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
		s.Count(queue, 1)
		defer s.Count(queue, -1)
		select {
		case <-time.After(took):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// Count counts n more handlers of queue that run; a negative n ends them.
func (s *Starts) Count(queue string, n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if n > 0 {
		s.queue = append(s.queue, queue)
		s.at = append(s.at, time.Now())
	}
	for _, of := range []string{queue, ""} {
		s.Running[of] += n
		s.most[of] = max(s.most[of], s.Running[of])
	}
}

// Peak returns how many handlers of queue, or of all for "", have run at once.
func (s *Starts) Peak(queue string) int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.most[queue]
}

// Of returns how many handlers of queue have started since from and before to; for "", the handlers of all queues.
func (s *Starts) Of(queue string, from, to time.Time) (n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for i, at := range s.at {
		if (queue == "" || s.queue[i] == queue) && !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}
