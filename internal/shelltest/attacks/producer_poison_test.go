package attacks

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// The attacker of these tests is a producer that may send to the queue and has no other permission.
// Once a minute it sends a message that does as much harm as possible. The other messages of the
// queue must lose only the time of its handlers.

var poisonTime = flag.Duration("poison.time", 30*time.Minute, "for how long TestAttackPoisonCostsItsShare has the queue poisoned; docs/tuning.md has the table of 6h")

const (
	poisonPlaces = 10              // handlers at once
	othersTake   = 5 * time.Second // each
	poisonEvery  = time.Minute
	restartTakes = 2 * time.Second // of a process that was killed
)

// poison is one kind of message that does harm.
type poison struct {
	kind string
	// handle is the handler's work on the message. send sends it; nil: as a message whose body begins
	// with poison.
	handle func(ctx context.Context, p *poisoned) error
	send   func(t *testing.T, p *poisoned, i int)
	// client is put between the consumer and the queue; nil: none.
	client func(p *poisoned) reprise.Client
	cfg    reprise.Config
	fifo   bool
	// costs is the permitted additional cost for the others, as a share: besides the time of its
	// handlers and of restarts.
	costs float64
	// health is the worst health; "" if it is always ok.
	health string
	// probed reports that the process is killed and restarted while its health is failing.
	probed bool
}

// poisoned is a consumer that gets such messages, and the results of the others.
type poisoned struct {
	q        *reprisetest.Queue
	c        *reprisetest.Consumer
	deadly   chan struct{} // a handler kills the process
	over     chan struct{} // closed at the end
	mu       sync.Mutex
	others   map[string]bool // worked off, by their bodies
	held     time.Duration   // places by the poison, in all
	running  map[int]time.Time
	runs     int
	restarts int
	givenUp  int // dead letters
	opened   int // breakers
	handles  map[string]bool
	worst    reprise.Status // by its health, of all seen
}

// run is one run of the poison's handler. The time that it takes is counted also if it
// does not end.
func (p *poisoned) run(f func() error) error {
	p.mu.Lock()
	p.runs++
	n := p.runs
	p.running[n] = time.Now()
	p.mu.Unlock()
	defer p.ends(n)
	return f()
}

func (p *poisoned) ends(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if began, ok := p.running[n]; ok {
		p.held += time.Since(began)
		delete(p.running, n)
	}
}

// allEnd ends the runs of a process that is gone, or of the test.
func (p *poisoned) allEnd() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, began := range p.running {
		p.held += time.Since(began)
		delete(p.running, n)
	}
}

var poisons = []poison{
	{kind: "fails at every attempt", handle: func(context.Context, *poisoned) error { return kit.ErrUnavailable }},
	{kind: "is a permanent failure", handle: func(context.Context, *poisoned) error { return reprise.Permanent(kit.ErrUnavailable) }},
	{kind: "panics", handle: func(context.Context, *poisoned) error { panic("poison") }},
	{kind: "is unavailable at every attempt", handle: func(context.Context, *poisoned) error { return reprise.Unavailable(kit.ErrUnavailable) }},
	{kind: "asks to be retried at once", handle: func(context.Context, *poisoned) error { return reprise.RetryAfter(0, kit.ErrUnavailable) }},
	{kind: "asks to be released at once", handle: func(context.Context, *poisoned) error { return reprise.Release(0, kit.ErrUnavailable) }},
	{kind: "hangs until its timeout of 30 s", cfg: reprise.Config{HandlerTimeout: 30 * time.Second}, handle: func(ctx context.Context, _ *poisoned) error {
		<-ctx.Done()
		return ctx.Err()
	}},
	{kind: "hangs for two minutes beyond its timeout", cfg: reprise.Config{HandlerTimeout: 30 * time.Second}, handle: func(ctx context.Context, _ *poisoned) error {
		<-ctx.Done()
		time.Sleep(2 * time.Minute)
		return ctx.Err()
	}, health: "ignored the end of the context"},
	{kind: "hangs for ever, and the process is restarted while its health is failing", cfg: reprise.Config{HandlerTimeout: 30 * time.Second}, handle: func(_ context.Context, p *poisoned) error {
		<-p.over
		return nil
	}, health: "all places are taken", probed: true},
	{kind: "kills the process", costs: 0.15, handle: kill},
	{kind: "kills the process, at most 5 attempts", costs: 0.15, cfg: reprise.Config{Retry: retry.Policy{MaxAttempts: 5}}, handle: kill},
	{kind: "has a forged mark, and takes 28 s", costs: 0.1, send: func(t *testing.T, p *poisoned, _ int) { sendAlone(t, p.q, "poison") }, handle: func(context.Context, *poisoned) error {
		time.Sleep(28 * time.Second)
		return nil
	}},
	{kind: "has a forged history", send: forgeSomething, handle: func(context.Context, *poisoned) error { return kit.ErrUnavailable }},
	{kind: "has a body of 1 MiB less a little", send: func(_ *testing.T, p *poisoned, _ int) { p.q.Send("poison" + strings.Repeat("x", 1<<20-6)) }, handle: func(context.Context, *poisoned) error { return kit.ErrUnavailable }},
	{kind: "cannot be deleted", client: refusing("delete"), handle: func(context.Context, *poisoned) error { return nil }},
	{kind: "cannot be hidden", client: refusing("hide"), handle: func(context.Context, *poisoned) error { return kit.ErrUnavailable }},
	{kind: "cannot be dead-lettered", client: refusing("send"), handle: func(context.Context, *poisoned) error { return reprise.Permanent(kit.ErrUnavailable) }, health: "the dead-letter queue does not accept"},
	{kind: "blocks its FIFO group", fifo: true, handle: func(context.Context, *poisoned) error { return kit.ErrUnavailable }},
}

// kill kills the process, unless another handler has done so.
func kill(ctx context.Context, p *poisoned) error {
	select {
	case p.deadly <- struct{}{}:
		<-ctx.Done()
	case <-ctx.Done():
	case <-p.over:
	}
	return ctx.Err()
}

// forgeSomething sends a message whose history is forged in one field or another.
func forgeSomething(t *testing.T, p *poisoned, i int) {
	h := kit.Plausible(p.q)
	h.Attempt = 0
	switch i % 8 {
	case 0:
		h.Attempt = 1_000_000
	case 1:
		h.Releases = 1_000_000
	case 2:
		h.NotBefore = time.Now().Add(360 * 24 * time.Hour).UnixMilli()
	case 3:
		h.Sent, h.First = h.SentAt-360*24*3600_000, h.SentAt-360*24*3600_000
	case 4:
		h.Generation = 1_000_000
	case 5:
		h.NotBefore = time.Now().Add(5 * time.Second).UnixMilli()
	case 6:
		h.Error = strings.Repeat("x", 1500)
	case 7:
		h.Alone = 1
	}
	kit.Forged(p.q, "poison", h.Text(t))
}

// refusing makes clients that SQS refuses all requests of one kind that are about
// poison.
func refusing(kind string) func(p *poisoned) reprise.Client {
	code, text := aws.String("InvalidParameterValue"), aws.String("poison")
	refusal := func(id *string) types.BatchResultErrorEntry {
		return types.BatchResultErrorEntry{Id: id, Code: code, Message: text, SenderFault: true}
	}
	return func(p *poisoned) reprise.Client {
		client := p.q.Direct()
		s := &kit.Spy{Client: client}
		s.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			out, err := client.ReceiveMessage(ctx, in)
			if err == nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				for _, m := range out.Messages {
					if strings.HasPrefix(*m.Body, "poison") {
						p.handles[*m.ReceiptHandle] = true
					}
				}
			}
			return out, err
		}
		bad := func(handle *string) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.handles[*handle]
		}
		switch kind {
		case "delete":
			s.Delete = func(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
				good := *in
				good.Entries = nil
				var failed []types.BatchResultErrorEntry
				for _, e := range in.Entries {
					if bad(e.ReceiptHandle) {
						failed = append(failed, refusal(e.Id))
					} else {
						good.Entries = append(good.Entries, e)
					}
				}
				if len(good.Entries) == 0 {
					return &sqs.DeleteMessageBatchOutput{Failed: failed}, nil
				}
				out, err := client.DeleteMessageBatch(ctx, &good)
				if err == nil {
					out.Failed = append(out.Failed, failed...)
				}
				return out, err
			}
		case "hide":
			s.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
				good := *in
				good.Entries = nil
				var failed []types.BatchResultErrorEntry
				for _, e := range in.Entries {
					if bad(e.ReceiptHandle) {
						failed = append(failed, refusal(e.Id))
					} else {
						good.Entries = append(good.Entries, e)
					}
				}
				if len(good.Entries) == 0 {
					return &sqs.ChangeMessageVisibilityBatchOutput{Failed: failed}, nil
				}
				out, err := client.ChangeMessageVisibilityBatch(ctx, &good)
				if err == nil {
					out.Failed = append(out.Failed, failed...)
				}
				return out, err
			}
		case "send":
			s.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
				out := &sqs.SendMessageBatchOutput{}
				for _, e := range in.Entries { // of others none are sent here
					out.Failed = append(out.Failed, refusal(e.Id))
				}
				return out, nil
			}
		}
		return s
	}
}

// measure poisons a queue for a while. It returns the share of the places' time that the poison's
// handlers took, how many others were handled, and what was seen.
func (kind *poison) measure(t *testing.T, period time.Duration) (share float64, p *poisoned) {
	synctest.Test(t, func(t *testing.T) {
		var attributes map[string]string
		if kind.fifo {
			attributes = kit.FIFOQueue
		}
		p = &poisoned{q: reprisetest.NewQueue(t, attributes), deadly: make(chan struct{}), over: make(chan struct{}), others: make(map[string]bool), running: make(map[int]time.Time), handles: make(map[string]bool)}
		dead := p.q.NewDeadLetterQueue(20)
		h := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if strings.HasPrefix(m.Body, "poison") {
				return p.run(func() error { return kind.handle(ctx, p) })
			}
			select {
			case <-time.After(othersTake):
			case <-ctx.Done():
				return ctx.Err()
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.others[m.Body] = true
			return nil
		})
		cfg := kind.cfg
		cfg.Concurrency = poisonPlaces
		cfg.Logger = slog.New(slog.DiscardHandler) // stacks of panics, by the hundred
		cfg.Observer.Outage = func(_ context.Context, e reprise.OutageEvent) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.State == reprise.BreakerOpen {
				p.opened++
			}
		}
		start := func() {
			if kind.client != nil {
				p.c = p.q.ConsumeWith(kind.client(p), h, cfg)
			} else {
				p.c = p.q.Consume(h, cfg)
			}
		}
		start()
		began := time.Now()
		go func() { // the others keep four places of five busy
			for i := 0; ; i++ {
				select {
				case <-p.over:
					return
				case <-time.After(othersTake / (poisonPlaces - 2)):
				}
				m := sqsserver.SendMessageEntry{MessageBody: fmt.Sprint("other-", i)}
				if kind.fifo {
					m.MessageGroupId, m.MessageDeduplicationId = fmt.Sprint("g", i%100), fmt.Sprint(i)
				}
				p.q.SendMessage(m)
			}
		}()
		go func() {
			for i := 0; ; i++ {
				select {
				case <-p.over:
					return
				case <-time.After(poisonEvery):
				}
				switch {
				case kind.send != nil:
					kind.send(t, p, i)
				case kind.fifo:
					p.q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "poison", MessageGroupId: "bad", MessageDeduplicationId: fmt.Sprint("poison-", i)})
				default:
					p.q.Send("poison")
				}
			}
		}()
		over := time.After(period)
		for running := true; running; {
			restart := false
			select {
			case <-over:
				running = false
			case <-p.deadly:
				restart = true
			case <-time.After(30 * time.Second):
				s := p.c.Status()
				if s.Health > p.worst.Health {
					p.worst = s
				}
				restart = kind.probed && s.Health == reprise.HealthFailing
			}
			if restart {
				p.c.Crash()
				p.restarts++
				p.allEnd()
				time.Sleep(restartTakes)
				start()
			}
		}
		p.givenUp = len(dead.Messages())
		p.allEnd()
		share = float64(p.held) / float64(poisonPlaces*time.Since(began))
		close(p.over)
		p.c.Crash()
		time.Sleep(time.Hour) // let abandoned handlers end
	})
	return share, p
}

// TestAttackPoisonCostsItsShare: a queue whose consumer is busy gets a harmful message each minute.
// The others get all the time that its handlers and the restarts leave, less two hundredths.
func TestAttackPoisonCostsItsShare(t *testing.T) {
	healthy := poison{kind: "none", send: func(*testing.T, *poisoned, int) {}}
	_, without := healthy.measure(t, *poisonTime)
	var table strings.Builder
	fmt.Fprint(&table, "| one message a minute | its runs | given up | its share, % | rest, % | restarts | health at worst |\n|---|---|---|---|---|---|---|\n")
	for i, kind := range poisons {
		if i%race.Fewer(1, 6) != 0 {
			continue
		}
		t.Run(kind.kind, func(t *testing.T) {
			share, p := kind.measure(t, *poisonTime)
			rest := float64(len(p.others)) / float64(len(without.others))
			fmt.Fprintf(&table, "| %s | %d | %d | %.1f | %.1f | %d | %v |\n", kind.kind, p.runs, p.givenUp, 100*share, 100*rest, p.restarts, p.worst.Health)
			down := float64(p.restarts) * restartTakes.Seconds() / poisonTime.Seconds()
			if least := 1 - share - down - kind.costs - 0.02; rest < least {
				t.Errorf("the others have %.1f %% of their throughput, want %.1f %%: the poison takes %.1f %% of the places, restarts %.1f %% of the time\n%+v", 100*rest, 100*least, 100*share, 100*down, p.worst)
			}
			if kind.health == "" && p.worst.Health != reprise.HealthOK || !strings.Contains(p.worst.Problem, kind.health) {
				t.Errorf("health %v: %s; want %q", p.worst.Health, p.worst.Problem, kind.health)
			}
			if p.opened > 0 {
				t.Errorf("the circuit breaker opened %d times, for everybody", p.opened)
			}
		})
	}
	t.Logf("%d others in %v without poison:\n\n%s", len(without.others), *poisonTime, table.String())
}
