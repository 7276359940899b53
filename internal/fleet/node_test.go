package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/chance"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// node is one consumer, from its start to its stop or crash. Its fields below cfg
// are guarded by fleet.mu.
type node struct {
	*reprisetest.Consumer
	number  int
	cfg     reprise.Config
	started time.Time
	most    time.Duration // that a request or a reply travels

	crashed   bool
	handlers  int       // running
	limit     int       // of them
	wanted    int       // the limit when as many have ended
	widest    int       // the largest limit so far
	paused    time.Time // since when; zero: it is not
	resumed   time.Time // when it was paused last no more
	begun     time.Time // the latest handler
	asked     time.Time // the latest receive
	succeeded time.Time // the first handler that began when the dependency was back
	informed  time.Time // when it has read the queue's attributes
	stopping  bool
	told      int64          // messages of which it has said what became of them
	running   map[string]int // by message id and by FIFO group
	ran       map[string]int // runs begun, by token
	done      map[string]bool
	copied    map[string]bool      // tokens of which SQS has confirmed a copy
	counted   map[string]*failures // by message id
	setTimes  map[string]time.Time // by message id: what its handlers have asked for
	givenUp   map[string]time.Time // by message id: when its handlers have last said so
	worked    map[string]time.Time // by message id: when its handlers have succeeded
	hooked    map[string]bool      // by message id: AfterDelete was called
	newest    map[string]*hold     // by message id: the latest receipt
	failing   []time.Time          // when the receives since the last good one have failed
	ended     map[string]time.Time // when the latest run ended, by message id
	kept      map[string]time.Time // by message id: since when it could have been started
}

// failures are the failed attempts at one message that a node has counted.
type failures struct {
	number int
	last   time.Time
}

// start starts a consumer on a network of its own.
func (f *fleet) start() *node {
	f.starts++
	n := &node{
		number:   f.starts,
		cfg:      f.cfg,
		started:  time.Now(),
		limit:    f.cfg.Concurrency,
		wanted:   f.cfg.Concurrency,
		widest:   f.cfg.Concurrency,
		running:  make(map[string]int),
		ran:      make(map[string]int),
		done:     make(map[string]bool),
		copied:   make(map[string]bool),
		counted:  make(map[string]*failures),
		setTimes: make(map[string]time.Time),
		givenUp:  make(map[string]time.Time),
		worked:   make(map[string]time.Time),
		hooked:   make(map[string]bool),
		newest:   make(map[string]*hold),
		ended:    make(map[string]time.Time),
		kept:     make(map[string]time.Time),
	}
	cfg := chance.Seeded(f.cfg, f.seed<<16+uint64(n.number)).(reprise.Config)
	cfg.Name = fmt.Sprint("node-", n.number)
	f.named[cfg.Name] = n
	if f.signed {
		keys, first := signingKeys(), f.draw("signs", n.number)%2
		cfg.SigningKeys = []reprise.SigningKey{keys[first], keys[1-first]}
	}
	cfg.Logger = slog.New(storyLog{slog.NewTextHandler(io.Discard, nil), f, n})
	cfg.AfterDelete = func(_ context.Context, m *reprise.Message) { f.deleted(n, m) }
	cfg.Observer = reprise.Observer{
		Received: func(_ context.Context, e reprise.Received) { f.received(n, e) },
		Attempt:  func(_ context.Context, e reprise.Attempt) { f.attempted(n, e) },
		Settled:  func(_ context.Context, e reprise.Settled) { f.settled(n, e) },
	}
	// Nobody can know how long a reply has travelled: a consumer allows a tenth of
	// the lease for it and for its next request.
	n.most = min(time.Duration(1+f.random.IntN(300))*time.Millisecond, f.cfg.Lease/30)
	network := &wire{f: f, n: n, client: f.client()}
	n.Consumer = f.queue.ConsumeWith(network, reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		return f.handle(ctx, n, m)
	}), cfg)
	f.note("", n, "starts: via %v, FIFO %v, concurrency %d, prefetch %d, lease %v, attempts %d, backoff %v, handler timeout %v, stop budget %v",
		cfg.Via, cfg.FIFO, cfg.Concurrency, cfg.Prefetch, cfg.Lease, cfg.Retry.MaxAttempts, cfg.Retry.Backoff, cfg.HandlerTimeout, cfg.StopBudget)
	return n
}

// storyLog is the log of n. It takes in the stories of dead letters that go without.
type storyLog struct {
	slog.Handler
	f *fleet
	n *node
}

// Handle implements slog.Handler.
func (l storyLog) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		var told reprise.Story
		if a.Key != "story" || json.Unmarshal([]byte(a.Value.String()), &told) != nil {
			return true
		}
		l.f.mu.Lock()
		defer l.f.mu.Unlock()
		l.n.newest[told.Message].p.storyless = true
		return false
	})
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l storyLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return storyLog{l.Handler.WithAttrs(attrs), l.f, l.n}
}

// setConcurrency changes how many handlers n may run. Those that run may end.
func (f *fleet) setConcurrency(n *node, limit int) {
	f.mu.Lock()
	n.wanted, n.widest = limit, max(n.widest, limit)
	n.limit = max(limit, min(n.limit, n.handlers))
	f.mu.Unlock()
	if err := n.SetConcurrency(limit); err != nil {
		f.t.Fatal(err)
	}
	f.note("", n, "may run %d handlers", limit)
}

// crash ends a consumer as a killed process ends.
func (f *fleet) crash(n *node) {
	f.note("", n, "crashes")
	f.mu.Lock()
	n.crashed = true
	f.crashes++
	f.twins = true
	f.mu.Unlock()
	n.Crash()
	_ = n.Err() // of no interest, but it waits for the end of Run
}

// knows reports whether n knew the queue's retention when it decided what has just been settled. Until
// then it hides messages for five minutes at most, or sends copies. It asks before it receives:
// only if the first answer is lost can messages be settled without.
func (n *node) knows() bool {
	return !n.informed.IsZero() && (n.informed.Sub(n.started) < time.Second || time.Since(n.informed) > 10*time.Second)
}

// stop stops a consumer and checks its report.
func (f *fleet) stop(n *node) {
	f.note("", n, "is told to stop")
	f.mu.Lock()
	n.stopping = true
	f.mu.Unlock()
	report := n.Stop()
	f.note("", n, "has stopped: %v", report)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stranded = f.stranded || report.Stranded || !report.Drained()
	f.twins = f.twins || !report.Drained()
	if report.Took > n.cfg.StopBudget+time.Second {
		f.broken(world.WithinBudget, nil, "node %d took %v of %v", n.number, report.Took, n.cfg.StopBudget)
	}
	if err := n.Err(); report.Drained() != (err == nil) || err != nil && !errors.Is(err, reprise.ErrDrainTimeout) {
		f.broken(world.SaysHowItEnded, nil, "node %d returned %v; report %v", n.number, err, report)
	}
	for _, id := range slices.Concat(report.Abandoned, report.Unsettled) {
		if h := n.newest[id]; h != nil && h.nth >= f.receives {
			h.p.storyless = true // its last permitted receive ends with the process: SQS moves it
		}
	}
	f.checkUnsettled(n, report)
	f.checkCalls(n, report)
	if !report.Drained() {
		return
	}
	if c := report.Counts; c.Received != accountedFor(c) || n.told != accountedFor(c)-c.Duplicates {
		f.broken(world.EveryOneCounted, nil, "node %d has told of %d: %+v", n.number, n.told, c)
	}
	if s := n.Status(); s.Running+s.Waiting+s.Settling+s.Pollers != 0 {
		f.broken(world.NothingHeld, nil, "node %d: %+v", n.number, s)
	}
}

// received takes in that n has a message.
func (f *fleet) received(n *node, e reprise.Received) {
	p := f.note(tokenOf(e.Message.Body), n, "receives %s, the %d. time; duplicate: %v", e.Message.ID[:8], e.Message.Receives, e.Duplicate)
	f.checkRoom(n, p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !e.Duplicate {
		n.kept[e.Message.ID] = time.Now()
	}
}

// attempted takes in what n makes of the end of a run.
func (f *fleet) attempted(n *node, e reprise.Attempt) {
	p := f.note(tokenOf(e.Message.Body), n, "attempt %d ends with %v: %v, due %s", e.Message.Attempt, e.Err, e.Outcome, clock(e.Due))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checkVerdict(n, p, e)
	id := e.Message.ID
	if e.Outcome == reprise.OutcomeDelete && e.Started.After(f.backSince) && n.succeeded.Before(f.backSince) {
		n.succeeded = time.Now()
	}
	if e.Outcome == reprise.OutcomeHold {
		n.kept[id] = latest(time.Now(), e.Due)
	}
	switch counts := e.Reason != retry.ReasonRelease && e.Reason != retry.ReasonUnavailable; {
	case !counts && (e.Outcome == reprise.OutcomeRelease || e.Outcome == reprise.OutcomeHold):
		p.spared++
		p.failed = max(p.failed, e.Message.Attempt-1)
	case e.Outcome == reprise.OutcomeRetry || e.Outcome == reprise.OutcomeHold || e.Outcome == reprise.OutcomeDeadLetter:
		p.failed = max(p.failed, e.Message.Attempt)
	}
	if e.Outcome != reprise.OutcomeRetry && e.Outcome != reprise.OutcomeHold {
		delete(n.setTimes, id) // it is not retried
	}
	if e.Outcome == reprise.OutcomeRetry {
		known := n.counted[id]
		if known == nil {
			known = &failures{}
			n.counted[id] = known
		}
		known.number++
		known.last = time.Now()
	}
}

// settled takes in what n says has become of a message, and looks whether it has.
func (f *fleet) settled(n *node, e reprise.Settled) {
	p := f.note(tokenOf(e.Message.Body), n, "settled after %d requests: %v, requeued %v, due %s, %v", e.Requests, e.Outcome, e.Requeued, clock(e.Due), e.Err)
	if p == nil || n.isCrashed(f) {
		return
	}
	messages := f.queue.Messages()
	f.mu.Lock()
	defer f.mu.Unlock()
	n.told++
	delete(n.kept, e.Message.ID)
	f.twins = f.twins || e.Outcome == reprise.OutcomeLost && n.copied[p.token]
	p.failed = max(p.failed, e.Message.Attempt-1) // for all that it tells the next
	p.deadly = p.deadly || e.Outcome == reprise.OutcomeKeep && e.Reason == retry.ReasonCrash && !f.calm
	p.settledAs(n, e)
	if e.Outcome == reprise.OutcomeDelete {
		delete(n.counted, e.Message.ID) // should SQS lose the delete, it begins anew
	}
	f.checkSettled(n, p, e, messages)
}

func (n *node) isCrashed(f *fleet) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return n.crashed
}

// draw is a number that is fixed by the fleet's seed and by what it is for.
func (f *fleet) draw(what ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, f.seed)
	for _, w := range what {
		fmt.Fprint(h, "|", w)
	}
	// FNV's low bits are weak; this is the end of MurmurHash3.
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// clock is a time for reading.
func clock(t time.Time) string {
	if t.IsZero() {
		return "at once"
	}
	return t.UTC().Format("02. 15:04:05.000")
}
