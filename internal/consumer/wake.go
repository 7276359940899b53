package consumer

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/internal/shortkey"
	"github.com/reprise-sqs/reprise/retry"
)

// waker makes messages visible before the end of their backoff.
type waker struct {
	ids    []string // still to be woken
	active bool     // a request is under way, or the next is planned
}

const (
	// wakeMargin: a wait that ends within this time is not cut short. A standard queue
	// accepts old receipt handles: a request that arrives after the message has become
	// visible by itself could give it to two consumers.
	wakeMargin = 15 * time.Second
	wakeAgain  = time.Second // after a throttled request

	wakeRate    = 10  // messages a second, if it is not known how long handlers take
	maxWakeRate = 100 // messages a second, at most
)

// Wake wakes the hidden messages of these keys, or of all keys if none is given, and makes their
// breakers probe. It returns how many messages will be woken.
func (c *Machine) Wake(keys ...string) int {
	keys = shortened(keys)
	c.Probe(keys...)
	return c.wake(func(r *memory.Note) bool {
		return isNamed(keys, r.Key) && c.isOpenFor(r)
	}, c.now)
}

// WakeMessage wakes the hidden message with that id before all others that wait to be woken, and
// reports whether it will be woken.
func (c *Machine) WakeMessage(id string) bool {
	r := c.memory.Recall(id, c.now)
	if c.draining || c.closed || !wakeable(r, c.now) || !c.isOpenFor(r) {
		return false
	}
	if i := slices.Index(c.waker.ids, id); i >= 0 {
		c.waker.ids = slices.Delete(c.waker.ids, i, i+1)
	} else if r.Waking {
		return true // the request is under way
	}
	r.Wake()
	c.waker.ids = slices.Insert(c.waker.ids, 0, id)
	if !c.waker.active {
		c.wakeNext(c.now)
	}
	return true
}

// isOpenFor reports whether r's message would go to a handler, as far as its breaker decides.
func (c *Machine) isOpenFor(r *memory.Note) bool {
	g := c.gates.byKey[r.Key]
	return g == nil || g.State() == breaker.Closed || g.State() == breaker.Ramping
}

// Probe makes the next probe of the open breakers of these keys, or of all if none is given, due
// at once. It returns how many breakers will probe.
func (c *Machine) Probe(keys ...string) (probing int) {
	keys = shortened(keys)
	for _, g := range c.gates.byKey {
		if g.State() == breaker.Open && isNamed(keys, g.key) {
			g.Breaker.ProbeNow(c.now)
			c.alarms.Set(&g.look, c.now)
			probing++
		}
	}
	return probing
}

// shortened returns keys as those of messages are kept.
func shortened(keys []string) []string {
	short := make([]string, len(keys))
	for i, key := range keys {
		short[i] = shortkey.Of(key)
	}
	return short
}

// isNamed reports whether key is one of keys; if there are none, all keys are meant.
func isNamed(keys []string, key string) bool { return len(keys) == 0 || slices.Contains(keys, key) }

// wake wakes the hidden messages that match.
func (c *Machine) wake(match func(*memory.Note) bool, now time.Time) int {
	if c.draining || c.closed {
		return 0
	}
	before := len(c.waker.ids)
	for r := range c.memory.All() {
		if match(r) {
			c.wakeLast(r, now)
		}
	}
	n := len(c.waker.ids) - before
	if n > 0 && !c.waker.active {
		c.wakeNext(now)
	}
	return n
}

// wakeLast has r's message woken after all others, if it can be.
func (c *Machine) wakeLast(r *memory.Note, now time.Time) {
	if wakeable(r, now) && !r.Waking {
		r.Wake()
		c.waker.ids = append(c.waker.ids, r.ID)
	}
}

// stopWaking lets the messages of a key become visible by themselves: its outage is not over
// after all.
func (c *Machine) stopWaking(key string) {
	c.waker.ids = slices.DeleteFunc(c.waker.ids, func(id string) bool {
		r := c.memory.Recall(id, c.now)
		if r.Handle == nil || r.Key != key || r.LookAgain {
			return false
		}
		if r.Waking { // otherwise it has come, and is hidden again
			r.Unwake()
		}
		return true
	})
}

// rememberHandle notes what it takes to make d visible, which SQS has just hidden.
func (c *Machine) rememberHandle(d *Delivery, now time.Time) {
	if c.draining || d.verdict.requeue != carry.Hidden || d.hiddenUntil.Sub(now) < wakeMargin {
		return
	}
	r := c.memory.Note(d.ID, now)
	r.Handle, r.HiddenUntil, r.Waking, r.LookAgain = d.Handle, d.hiddenUntil, false, false
	r.Unwakeable = c.Queue.FIFO || d.verdict.Outcome == OutcomeKeep
	r.Sent = c.local(d.enqueued())
	r.Key, r.Unavailable = d.Key, d.verdict.unavailable
	r.Asked = d.verdict.Reason == retry.ReasonRetryAfter
	if d.outageOver {
		c.wakeLast(r, now)
	}
	if d.factsNew {
		c.lookAgainAt(r, c.facts.DeadLetter.URL != "")
	}
	if len(c.waker.ids) > 0 && !c.waker.active {
		c.wakeNext(now)
	}
}

// wakeable reports whether r's message is hidden and may be made visible.
func wakeable(r *memory.Note, now time.Time) bool {
	return r.Handle != nil && (!r.Unwakeable || r.LookAgain) && !clocks.Passed(r.HiddenUntil.Add(-wakeMargin), now)
}

// wakeNext makes the next ten messages visible, and is called again after a pause, until
// none is left or the consumer stops. A dependency that was unavailable for hours is hardly
// ready for all of its messages at once.
func (c *Machine) wakeNext(now time.Time) {
	w := c.nextToWake(now)
	if c.waker.active = w != nil; w != nil {
		w.pause = time.Duration(len(w.ids)) * time.Second / maxWakeRate
		if w.run {
			w.pause = c.wakePause(len(w.ids))
		}
		c.want(Effect{Kind: Wake, Waking: w})
	}
}

// Waking is a request that makes hidden messages visible, by their receipt handles.
type Waking struct {
	Handles []*string

	ids   []string
	run   bool          // at least one of them is to be run
	pause time.Duration // until the next
}

// nextToWake takes up to ten of the messages to wake; nil if there is none.
func (c *Machine) nextToWake(now time.Time) *Waking {
	if c.draining || c.closed {
		c.waker.ids = nil
	}
	w := new(Waking)
	for len(c.waker.ids) > 0 && len(w.ids) < MaxBatch {
		id := c.waker.ids[0]
		c.waker.ids = c.waker.ids[1:]
		r := c.memory.Recall(id, now)
		if !wakeable(r, now) || !r.Waking || slices.Contains(w.ids, id) {
			continue // it has come by itself, or is about to; or has failed again since, and waits for its new time
		}
		w.run = w.run || !r.LookAgain
		w.Handles = append(w.Handles, r.Handle)
		w.ids = append(w.ids, id)
	}
	if len(w.ids) == 0 {
		return nil
	}
	return w
}

// Woken takes in the results of w. Entries that SQS throttled are tried again. No others
// are: a request whose reply was lost may have been carried out, so that another consumer
// may have the message.
func (c *Machine) Woken(w *Waking, results *[MaxBatch]Failure) {
	pause := w.pause
	for i := range w.ids {
		f := &results[i]
		if f.Err == nil {
			c.counts.Woken++
		}
		r := c.memory.Recall(w.ids[i], c.now)
		if r.Handle != w.Handles[i] {
			continue // it has come, whatever became of the request; if it is hidden again, it waits for its new time
		}
		if f.is(Rejected) && !f.is(Lasting) {
			pause = max(pause, wakeAgain)
			c.waker.ids = append(c.waker.ids, w.ids[i])
			continue
		}
		c.memory.ForgetHandle(w.ids[i])
		if f.is(Rejected) && !r.LookAgain {
			r.Unwake() // it stays hidden for certain
		}
	}
	c.alarms.After(c.now.Add(pause), c.wakeNext)
}

// wakePause returns about how long the consumer takes to run n messages.
func (c *Machine) wakePause(n int) time.Duration {
	rate := float64(wakeRate)
	if c.taskTime.mean > 0 {
		concurrency := c.capacity()
		if g := c.gates.byKey[""]; g != nil && g.State() == breaker.Ramping {
			concurrency = min(concurrency, g.Breaker.Level())
		}
		rate = float64(concurrency) / c.taskTime.mean.Seconds()
	}
	if c.Rate > 0 {
		rate = min(rate, c.Rate)
	}
	seconds := float64(n) / min(rate, maxWakeRate)
	return time.Duration(seconds * (0.5 + c.chance.Float64()) * float64(time.Second))
}
