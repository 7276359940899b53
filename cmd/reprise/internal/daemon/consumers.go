package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reprise-sqs/reprise"
)

// consumers are those of a [Daemon] or of a [Worker].
type consumers struct {
	measured    bool
	watching    Watching
	answerPolls func() // see consumer.drain

	mu       sync.Mutex
	current  []*consumer
	retiring []*consumer // replaced by others, which begin when these have drained
	running  *running    // nil before start
	stopping bool
}

// running has the arguments of start for consumers that start later.
type running struct {
	ctx  context.Context
	fail context.CancelCauseFunc
}

// start starts those that have been added, and from then on each that is added.
func (cs *consumers) start(ctx context.Context, fail context.CancelCauseFunc) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.running = &running{ctx, fail}
	for _, c := range cs.current {
		c.start(ctx, fail)
	}
}

// stop drains all, side by side.
func (cs *consumers) stop(ctx context.Context) error {
	cs.mu.Lock()
	cs.stopping = true
	all := slices.Concat(cs.current, cs.retiring)
	cs.mu.Unlock()
	return cs.drain(ctx, all)
}

func (cs *consumers) drain(ctx context.Context, all []*consumer) error {
	errs := make([]error, len(all))
	var draining sync.WaitGroup
	for i, c := range all {
		draining.Go(func() { errs[i] = c.drain(ctx, cs.answerPolls) })
	}
	draining.Wait()
	return errors.Join(errs...)
}

// replace makes wanted the queues that are consumed. A consumer whose queue and Settings
// are among them keeps running. The others drain, and only then those that are new begin,
// so that no two consumers of this process have a queue. If some cannot be made, the
// others run, and the error says why; if all run, the error is that of the drain. Calls must
// follow each other. After a stop nothing is started.
func (cs *consumers) replace(wanted []Consume) error {
	ctx, kept, added := cs.retire(wanted)
	drained := cs.drain(ctx, cs.retirees())
	var made []*consumer
	var problems []error
	for _, w := range added {
		c, err := newConsumer(w, cs.measured, cs.watching)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		c.keepPaused(cs.retirees())
		made = append(made, c)
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.retiring = nil
	if cs.stopping {
		return nil
	}
	cs.current = append(kept, made...)
	if r := cs.running; r != nil {
		for _, c := range made {
			c.start(r.ctx, r.fail)
		}
	}
	if len(problems) > 0 { // which is worse
		return errors.Join(problems...)
	}
	return drained
}

// retire takes those that wanted does not have out of cs, and returns those that stay,
// and those to add.
func (cs *consumers) retire(wanted []Consume) (ctx context.Context, kept []*consumer, added []Consume) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if ctx = context.Background(); cs.running != nil {
		ctx = cs.running.ctx
	}
	added = slices.Clone(wanted)
	for _, c := range cs.current {
		same := func(w Consume) bool { return w.QueueURL == c.of.QueueURL && w.Settings == c.of.Settings }
		if i := slices.IndexFunc(added, same); i >= 0 {
			added = slices.Delete(added, i, i+1)
			kept = append(kept, c)
			continue
		}
		cs.retiring = append(cs.retiring, c)
	}
	cs.current = slices.Clone(kept)
	return ctx, kept, added
}

func (cs *consumers) retirees() []*consumer {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Clone(cs.retiring)
}

// all returns those that consume.
func (cs *consumers) all() []*consumer {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Clone(cs.current)
}

// Consumers returns the consumers, in the order in which they were given.
func (cs *consumers) Consumers() []*reprise.Consumer {
	var found []*reprise.Consumer
	for _, c := range cs.all() {
		found = append(found, c.Consumer)
	}
	return found
}

// Consumed is a queue that is consumed.
type Consumed struct {
	QueueURL string
	Client   reprise.Client
	Config   reprise.Config // as it was given
	Target   string
	*reprise.Consumer
}

// Consumed returns the queues that are consumed, in the order in which they were given.
func (cs *consumers) Consumed() []Consumed {
	var found []Consumed
	for _, c := range cs.all() {
		found = append(found, Consumed{c.of.QueueURL, c.of.Client, c.of.Config, c.of.Target, c.Consumer})
	}
	return found
}

// gatherers returns the metrics of all.
func (cs *consumers) gatherers() (found []prometheus.Gatherer) {
	for _, c := range cs.all() {
		if c.metrics != nil {
			found = append(found, c.metrics.registry)
		}
	}
	return found
}
