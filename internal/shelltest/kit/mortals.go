package kit

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// Together handles the messages of a batch at the same time.
func Together(h reprise.Handler) reprise.BatchHandler {
	return reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
		errs := make([]error, len(ms))
		var all sync.WaitGroup
		for i, m := range ms {
			all.Go(func() { errs[i] = h.Handle(reprise.MessageContext(ctx, m), m) })
		}
		all.Wait()
		return errs
	})
}

// Mortals are consumers that poisonous messages kill, and that are restarted. A message is poisonous if its body begins
// with "poison". What is counted may be read once Live has ended.
type Mortals struct {
	Queue  *reprisetest.Queue
	Config reprise.BatchConfig // Size zero: one message at a time
	Fuse   time.Duration       // how long a poisonous message runs before it kills its process
	Takes  time.Duration       // how long another message runs; zero: half a second

	mu      sync.Mutex
	Deaths  int            // of processes
	Alone   int            // deaths with no other handler beside
	Handled map[string]int // ends without an error, by body
	running map[int]int    // handlers that run, by consumer
	dead    chan int       // which consumer has died
}

// start starts the nth consumer.
func (f *Mortals) start(n int) *reprisetest.Consumer {
	var c *reprisetest.Consumer
	started := make(chan struct{})
	h := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		<-started
		f.mu.Lock()
		f.running[n]++
		beside := f.running[n] - 1
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			f.running[n]--
			f.mu.Unlock()
		}()
		if strings.HasPrefix(m.Body, "poison") {
			select {
			case <-time.After(f.Fuse):
			case <-ctx.Done():
				return ctx.Err()
			}
			f.mu.Lock()
			f.Deaths++
			if f.Fuse > 0 {
				beside = f.running[n] - 1
			}
			if beside == 0 {
				f.Alone++
			}
			f.mu.Unlock()
			c.Crash()
			f.dead <- n
			<-ctx.Done()
			return ctx.Err()
		}
		select {
		case <-time.After(cmp.Or(f.Takes, 500*time.Millisecond)):
		case <-ctx.Done():
			return ctx.Err()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.Handled[m.Body]++
		return nil
	})
	if f.Config.Size > 0 {
		c = f.Queue.ConsumeBatch(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			f.count(n, len(ms)-1)
			defer f.count(n, 1-len(ms))
			return Together(h).HandleBatch(ctx, ms)
		}), f.Config)
	} else {
		c = f.Queue.Consume(h, f.Config.Config)
	}
	close(started)
	return c
}

// count counts the handlers of a consumer that run, or those of messages that kill.
func (f *Mortals) count(n, more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[n] += more
}

// Live keeps n consumers alive for a while.
func (f *Mortals) Live(n int, for_ time.Duration) {
	f.running, f.Handled, f.dead = make(map[int]int), make(map[string]int), make(chan int, n)
	fleet := make([]*reprisetest.Consumer, n)
	for i := range fleet {
		fleet[i] = f.start(i)
	}
	end := time.After(for_)
	for {
		select {
		case i := <-f.dead:
			_ = fleet[i].Err() // waits for its end, which is of no interest
			time.Sleep(2 * time.Second)
			fleet[i] = f.start(i)
		case <-end:
			for _, c := range fleet {
				c.Stop()
			}
			return
		}
	}
}
