package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// sampler asks for the statistics of the process again and again while somebody looks, once for all viewers:
// two of them give rates. When nobody looks it rests, since SQS charges for each question.
type sampler struct {
	api   *admin.Client
	every time.Duration
	// anew is how old the last sample has to be for another one to be taken for a queue that it lacks.
	anew time.Duration

	taking  sync.Mutex // held while a sample is taken
	mu      sync.Mutex
	taken   []*admin.Stats // the oldest first
	wanted  time.Time      // when somebody looked last
	history history
	// changes counts the actions so far, and sampled is what it was when the last sample was asked for. While they differ,
	// the sample may lack an action, and is not shown.
	changes, sampled uint64

	ended chan struct{} // of the goroutine; nil: it does not run
	quit  chan struct{}
	over  sync.Once // closes quit
}

const (
	// ownEvery and sqsEvery are the times between two samples.
	ownEvery = 2 * time.Second
	sqsEvery = 5 * time.Second
	// ownAnew is short, since a queue may just have been created, and bounds what requests for absent queues cost.
	ownAnew = 250 * time.Millisecond
	// restAfter is how long nobody has to look before the sampler rests.
	restAfter = time.Minute
	// maxGap is the longest time between two samples of which a chart shows the rates: it was not looked in between.
	maxGap = 30 * time.Second
	// rateOver is the time that rates are of.
	rateOver = 10 * time.Second
	// sampleTimeout is longer than the API waits for SQS.
	sampleTimeout = 10 * time.Second
)

func newSampler(api *admin.Client, own bool) *sampler {
	s := &sampler{api: api, every: sqsEvery, anew: sqsEvery, quit: make(chan struct{})}
	if own {
		s.every, s.anew = ownEvery, ownAnew
	}
	return s
}

// latest returns the last sample and one before it, nil if there is none; it takes one if the last is old.
func (s *sampler) latest(ctx context.Context) (now, before *admin.Stats, err error) {
	s.look()
	if now, before = s.last(); now != nil {
		return now, before, nil
	}
	if err := s.take(ctx, s.every); err != nil {
		return nil, nil, err
	}
	now, before = s.last()
	if now == nil { // it took long
		s.mu.Lock()
		now = s.taken[len(s.taken)-1]
		s.mu.Unlock()
	}
	return now, before, nil
}

// last returns nil if the last sample is too old to be shown.
func (s *sampler) last() (now, before *admin.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.taken)
	if n == 0 || s.sampled != s.changes || time.Since(s.taken[n-1].At) > 2*s.every {
		return nil, nil
	}
	now = s.taken[n-1]
	if n > 1 {
		before = s.taken[0]
	}
	return now, before
}

// take takes a sample, unless the last is younger than age.
func (s *sampler) take(ctx context.Context, age time.Duration) error {
	s.taking.Lock()
	defer s.taking.Unlock()
	s.mu.Lock()
	changes := s.changes // the sample may lack what is done while it is taken
	fresh := s.sampled == changes && len(s.taken) > 0 && time.Since(s.taken[len(s.taken)-1].At) < age
	s.mu.Unlock()
	if fresh {
		return nil
	}
	stats, err := s.api.Stats(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sampled = changes
	var before *admin.Stats
	if n := len(s.taken); n > 0 && stats.At.Sub(s.taken[n-1].At) < maxGap {
		before = s.taken[n-1]
	}
	s.history.add(&stats, before)
	s.taken = append(s.taken, &stats)
	for len(s.taken) > 2 && stats.At.Sub(s.taken[1].At) > rateOver { // the first is not needed any more
		s.taken = s.taken[1:]
	}
	return nil
}

// forget has the next look take a sample: something was changed.
func (s *sampler) forget() {
	s.mu.Lock()
	s.changes++
	s.mu.Unlock()
}

// look notes that somebody looks, and has samples be taken.
func (s *sampler) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = time.Now()
	select {
	case <-s.quit:
		return
	default:
	}
	if s.ended == nil {
		s.ended = make(chan struct{})
		go s.run(s.ended)
	}
}

func (s *sampler) run(ended chan struct{}) {
	defer close(ended)
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.quit:
			return
		}
		s.mu.Lock()
		if time.Since(s.wanted) > restAfter {
			s.ended = nil
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), sampleTimeout)
		_ = s.take(ctx, s.every/2) // who looks next gets the error
		cancel()
	}
}

// stop has no more samples be taken, and waits for the last.
func (s *sampler) stop() {
	s.over.Do(func() { close(s.quit) })
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if ended != nil {
		<-ended
	}
}
