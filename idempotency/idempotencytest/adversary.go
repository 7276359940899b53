package idempotencytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
)

// adversary plays seeded games against the middleware on the store: processes that
// share it are killed between effect and record, stall, lose messages, requests and
// replies, and have clocks that run apart; messages come in several copies at once.
// In every game
//
//   - no two runs of a key are at work at the same time, unless the earlier was told
//     to stop;
//   - nothing runs after a recorded completion;
//   - every later duplicate gets the result that was recorded;
//   - an effect that checks tokens refuses what a stale owner does;
//   - work is done twice only if a process was killed, or its claim or the record
//     of its work was lost;
//   - and in the end everything is done.
//
// The same seed plays nearly the same game: only what happens at the same instant is
// left to the scheduler.
func (cfg Config) adversary(t *testing.T) {
	var total tally
	var mu sync.Mutex
	t.Run("games", func(t *testing.T) {
		for seed := range uint64(cfg.Games) {
			t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				cfg.in(t, func(t *testing.T, s *subject) {
					played := play(t, s, seed, cfg.Virtual)
					mu.Lock()
					defer mu.Unlock()
					total.add(played)
				})
			})
		}
	})
	t.Logf("%d games: %+v", cfg.Games, total)
	if cfg.Virtual && cfg.Games >= 20 && (total.Kills == 0 || total.Lost == 0 || total.Refused == 0 || total.Duplicates == 0 || total.InProgress == 0 || total.Unrecorded == 0 || total.Failures == 0) {
		t.Errorf("the games were too tame to show anything: %+v", total)
	}
}

// tally counts the events of games.
type tally struct {
	Runs, Effects, Kills, Lost, Refused, Duplicates, InProgress, Unrecorded, Failures int
}

func (t *tally) add(o tally) {
	t.Runs += o.Runs
	t.Effects += o.Effects
	t.Kills += o.Kills
	t.Lost += o.Lost
	t.Refused += o.Refused
	t.Duplicates += o.Duplicates
	t.InProgress += o.InProgress
	t.Unrecorded += o.Unrecorded
	t.Failures += o.Failures
}

const (
	gameKeys   = 5
	gameCopies = 3
	// gameLease is the claims' lease. Its tenth is more than clocks differ by.
	gameLease = time.Second
	// gameTrouble is for how long things go wrong.
	gameTrouble = 12 * gameLease
)

// game is one game.
type game struct {
	t       *testing.T
	oracle  *oracle
	seed    uint64
	virtual bool
	calm    time.Time      // nothing goes wrong any more
	runs    sync.WaitGroup // of the middleware

	mu        sync.Mutex
	chances   map[string]*rand.Rand // by owner, so that a seed plays the same game again
	processes [2]*process
	active    map[string]map[*attempt]bool
	newest    map[string]idempotency.Token // the largest that each key's effects came with
	effects   map[string]int
	excuses   map[string]int // reasons why more than one effect may be right
	tally     tally
}

// attempt is a run of the handler.
type attempt struct {
	process *process
	ctx     context.Context
	token   idempotency.Token
	done    bool // its effect has happened
}

// play plays one game.
func play(t *testing.T, s *subject, seed uint64, virtual bool) tally {
	g := &game{
		t:       t,
		oracle:  newOracle(t, s.Store),
		virtual: virtual,
		calm:    time.Now().Add(gameTrouble),
		seed:    seed,
		chances: make(map[string]*rand.Rand),
		active:  make(map[string]map[*attempt]bool),
		newest:  make(map[string]idempotency.Token),
		effects: make(map[string]int),
		excuses: make(map[string]int),
	}
	for i := range g.processes {
		g.processes[i] = g.boot(i)
	}
	var messages sync.WaitGroup
	for key := range gameKeys {
		for n := range gameCopies {
			name := fmt.Sprint("key-", key)
			m := reprise.Message{ID: fmt.Sprintf("%s-copy-%d", name, n), OriginID: name}
			messages.Go(func() { g.deliver(m) })
		}
	}
	messages.Wait()
	for _, p := range g.processes {
		p.kill()
	}
	g.runs.Wait() // of killed processes, too
	for key := range g.newest {
		if !g.oracle.completedKey(key) {
			t.Errorf("all messages of key %q are settled, and it is not completed", key)
		}
		if n := g.effects[key]; n > 1+g.excuses[key] {
			t.Errorf("key %q had %d effects, and %d reasons for more than one", key, n, g.excuses[key])
		}
	}
	if len(g.newest) != gameKeys {
		t.Errorf("%d of %d keys had an effect", len(g.newest), gameKeys)
	}
	return g.tally
}

// boot starts a process with middleware of its own.
func (g *game) boot(i int) *process {
	name := fmt.Sprint("process ", i)
	p := &process{game: g, index: i, name: name, rate: 0.96 + 0.08*g.float(name)}
	p.alive, p.kill = context.WithCancel(context.Background())
	cfg := idempotency.Config{
		Key:      func(m *reprise.Message) (string, error) { return m.OriginID, nil }, // the game tests stores
		Lease:    gameLease,
		Timeout:  gameLease / 3,
		Patience: gameLease / 2,
		Duplicate: func(_ context.Context, m *reprise.Message, result []byte) error {
			g.duplicate(p, m, string(result))
			return nil
		},
		Observe: func(_ context.Context, e idempotency.Event) { g.observe(e) },
		Logger:  slog.New(slog.DiscardHandler),
	}
	handler := func(ctx context.Context, m *reprise.Message) error { return g.handle(ctx, p, m) }
	var err error
	if g.seed%2 == 0 {
		p.handler, err = alone(p, cfg, handler)
	} else {
		p.handler, err = inBatches(p, cfg, handler)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

// alone is handler under the middleware for single messages.
func alone(store idempotency.Store, cfg idempotency.Config, handler reprise.HandlerFunc) (reprise.Handler, error) {
	once, err := idempotency.New(store, cfg)
	if err != nil {
		return nil, err
	}
	return once(handler), nil
}

// inBatches is handler under the middleware for batches, each of one message.
func inBatches(store idempotency.Store, cfg idempotency.Config, handler reprise.HandlerFunc) (reprise.Handler, error) {
	once, err := idempotency.NewBatch(store, cfg)
	if err != nil {
		return nil, err
	}
	batched := once(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
		return []error{handler(idempotency.MessageContext(ctx, ms[0]), ms[0])}
	}))
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		return batched.HandleBatch(ctx, []*reprise.Message{m})[0]
	}), nil
}

// deliver delivers m until it is settled, as SQS would.
func (g *game) deliver(m reprise.Message) {
	const most = 500
	for range most {
		time.Sleep(g.between(m.ID, 0, gameLease/2))
		i := int(g.float(m.ID) * float64(len(g.processes)))
		g.mu.Lock()
		p := g.processes[i]
		g.mu.Unlock()
		shown := m
		if err := p.run(&shown); err == nil && p.alive.Err() == nil {
			return
		}
	}
	g.t.Errorf("message %s was delivered %d times and is not settled", m.ID, most)
}

var errHandler = errors.New("the handler fails")

// handle is the handler: work, an effect, and many possible failures in between.
func (g *game) handle(ctx context.Context, p *process, m *reprise.Message) error {
	claim, _, ok := idempotency.ClaimFrom(ctx)
	if !ok || claim.Key != m.OriginID {
		g.t.Errorf("the context of message %s has the claim %v, %v", m.ID, claim, ok)
	}
	a := &attempt{process: p, ctx: ctx, token: claim.Token}
	g.begin(claim.Key, a)
	defer g.end(claim.Key, a)

	switch trouble := g.trouble(m.ID); {
	case trouble < 0.1:
		return errHandler
	case trouble < 0.15:
		g.panics()
	case trouble < 0.35: // the process stalls: its connections do, and this handler looks at nothing
		stall := g.between(m.ID, gameLease, 4*gameLease)
		p.stall(stall)
		time.Sleep(stall)
	default:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(g.between(m.ID, 0, 2*gameLease)):
		}
	}
	if p.alive.Err() != nil {
		return p.alive.Err()
	}
	if !g.effect(claim, a) {
		return errors.New("the effect was refused: it came from a claim that was overtaken")
	}
	if g.trouble(m.ID) < 0.15 {
		g.crash(p)
		return p.alive.Err()
	}
	return idempotency.SetResult(ctx, []byte(fmt.Sprintf("%s by %d", claim.Key, claim.Token)))
}

// panics is a failure of the handler that p.run recovers from, as a consumer does.
func (g *game) panics() { panic(errHandler) }

// begin notes that a run has begun its work.
func (g *game) begin(key string, a *attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tally.Runs++
	for other := range g.active[key] {
		// In real time a busy machine may tell it late.
		if g.virtual && other.process.alive.Err() == nil && other.ctx.Err() == nil {
			g.t.Errorf("key %q runs under claim %d, while it runs under claim %d, whose handler has not been told", key, a.token, other.token)
		}
	}
	if g.active[key] == nil {
		g.active[key] = make(map[*attempt]bool)
	}
	g.active[key][a] = true
}

func (g *game) end(key string, a *attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.active[key], a)
}

// effect is the effect that must happen once. Its receiver checks tokens, and refuses those that
// are smaller than the largest it has seen.
func (g *game) effect(c idempotency.Claim, a *attempt) bool {
	completed := g.oracle.completedKey(c.Key)
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.Token < g.newest[c.Key] {
		g.tally.Refused++
		return false
	}
	if completed {
		g.t.Errorf("key %q had an effect under claim %d after it had been completed", c.Key, c.Token)
	}
	a.done = true
	g.newest[c.Key] = c.Token
	g.effects[c.Key]++
	g.tally.Effects++
	return true
}

// crash kills p after an effect and before its record, and starts another in its
// place.
func (g *game) crash(p *process) {
	next := g.boot(p.index)
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.alive.Err() != nil {
		return
	}
	g.tally.Kills++
	p.kill()
	g.processes[p.index] = next
	for key, runs := range g.active {
		for a := range runs {
			if a.process == p && a.done {
				g.excuses[key]++
			}
		}
	}
}

// observe processes the events of the middleware, also of killed processes.
func (g *game) observe(e idempotency.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch e.Kind {
	case idempotency.KindLost:
		g.tally.Lost++
		if !errors.Is(e.Err, context.Canceled) { // the handler had not stopped before its effect
			g.excuses[e.Key]++
		}
	case idempotency.KindUnrecorded:
		g.tally.Unrecorded++
		g.excuses[e.Key]++
	case idempotency.KindInProgress:
		g.tally.InProgress++
		if e.Wait < time.Second || e.Wait > time.Hour {
			g.t.Errorf("a message is given back for %v", e.Wait)
		}
	case idempotency.KindFailed:
		g.tally.Failures++
	}
}

// duplicate checks the result that a duplicate got.
func (g *game) duplicate(p *process, m *reprise.Message, result string) {
	g.oracle.mu.Lock()
	k := g.oracle.truth(m.OriginID)
	recorded := cmp.Or(k.results[k.completed], result) // the answer to the completion may be under way
	g.oracle.mu.Unlock()
	if p.alive.Err() == nil && result != recorded {
		g.t.Errorf("a duplicate of key %q got the result %q, and %q was recorded", m.OriginID, result, recorded)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tally.Duplicates++
}

// float is the next random number below 1 for who.
func (g *game) float(who string) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.chances[who] == nil {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(who)) // it cannot fail
		g.chances[who] = rand.New(rand.NewPCG(g.seed, hash.Sum64()))
	}
	return g.chances[who].Float64()
}

// trouble is a random number below 1, and 1 once nothing goes wrong any more.
func (g *game) trouble(who string) float64 {
	if time.Now().After(g.calm) {
		return 1
	}
	return g.float(who)
}

func (g *game) between(who string, least, most time.Duration) time.Duration {
	return least + time.Duration(g.float(who)*float64(most-least))
}
