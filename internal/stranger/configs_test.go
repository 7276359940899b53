package stranger_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// places are the URLs that settings need.
type places struct{ lane, dead string }

// config makes the Config of a version.
func (p *program) config(v settings, at places) (cfg reprise.Config, err error) {
	w := p.w
	cfg = reprise.Config{
		Concurrency: v.Concurrency, Prefetch: v.Prefetch, LongPoll: v.LongPoll, Rate: v.Rate, Via: v.Via, FIFO: v.FIFO,
		InFlightQuota: v.InFlightQuota, HandlerTimeout: v.HandlerTimeout, Lease: v.Lease, StopBudget: v.StopBudget,
		Name: fmt.Sprint("process", p.number), Outage: reprise.Outage{Off: v.OutageOff, Threshold: v.Threshold},
		Logger: slog.New(slog.DiscardHandler), Observer: p.observer(),
	}
	if err := cfg.Retry.UnmarshalText([]byte(v.Retry)); err != nil {
		return cfg, err
	}
	if v.Rule {
		cfg.Retry.Rules = []retry.Rule{retry.On(errFailRule, retry.Constant(time.Second), retry.None)}
	}
	if v.Lane && at.lane != "" {
		cfg.RetryLane = reprise.RetryLane{URL: at.lane, Share: v.LaneShare}
	}
	if w.s.Queue.SeparateDeadLetters {
		cfg.DeadLetterURL = at.dead
	}
	if v.Signed {
		cfg.SigningKeys = signingKeys()
		if v.Rotated {
			slices.Reverse(cfg.SigningKeys)
		}
	}
	if v.Keys > 0 {
		cfg.Outage.Key = func(m *reprise.Message) string { return v.key(number(m.Body)) }
	}
	if v.OwnUnavailable {
		cfg.Outage.Unavailable = func(err error) bool { return errors.Is(err, errDown) }
	}
	if v.Probe {
		cfg.Outage.Probe = func(_ context.Context, key string) error {
			if w.s.keyDown(v, key, w.now()) {
				return errDown
			}
			return nil
		}
	}
	if v.AfterDelete {
		cfg.AfterDelete = func(_ context.Context, m *reprise.Message) {
			w.mu.Lock()
			defer w.mu.Unlock()
			p.life.afterDeletes = append(p.life.afterDeletes, number(m.Body))
		}
	}
	return cfg, nil
}

// batchConfig is config for a handler of batches.
func (v settings) batchConfig(cfg reprise.Config) reprise.BatchConfig {
	return reprise.BatchConfig{Config: cfg, Size: v.BatchSize, Linger: v.BatchLinger, Bytes: v.BatchBytes}
}

// key is that of message n.
func (v settings) key(n int) string { return fmt.Sprint("key", max(n, 0)%max(v.Keys, 1)) }

// down reports whether what message n depends on is unavailable.
func (s *scenario) down(v settings, n int, at time.Duration) bool {
	if v.Keys > 0 {
		return s.keyDown(v, v.key(n), at)
	}
	return s.allDown(at) || slices.ContainsFunc(s.KeyDown, func(o keyOutage) bool { return o.When.has(at) && max(n, 0)%4 == o.Key%4 })
}

// keyDown is down by the key; the empty key is that of a consumer without keys.
func (s *scenario) keyDown(v settings, key string, at time.Duration) bool {
	return s.allDown(at) || slices.ContainsFunc(s.KeyDown, func(o keyOutage) bool { return o.When.has(at) && (key == "" || v.key(o.Key) == key) })
}

func (s *scenario) allDown(at time.Duration) bool {
	return slices.ContainsFunc(s.Outages, func(o span) bool { return o.has(at) })
}

// signingKeys are those of all versions that sign.
func signingKeys() []reprise.SigningKey {
	keys := make([]reprise.SigningKey, 2)
	for i := range keys {
		secret := make([]byte, 32)
		secret[0] = byte(i)
		key, err := reprise.NewSigningKey(fmt.Sprint("k", i+1), secret)
		if err != nil {
			panic(err)
		}
		keys[i] = key
	}
	return keys
}

// senderConfig makes the SenderConfig.
func (s *scenario) senderConfig() reprise.SenderConfig {
	c := s.Sender
	return reprise.SenderConfig{
		Linger: c.Linger, Requests: c.Requests, MaxWaiting: c.MaxWaiting, MaxBytes: c.MaxBytes, Tries: c.Tries,
		ContentDeduplication: s.contentDeduplication(), Logger: slog.New(slog.DiscardHandler),
	}
}

// contentDeduplication reports whether the queue recognises duplicates by their bodies.
func (s *scenario) contentDeduplication() bool { return s.Queue.FIFO && s.Sender.NoIDs }

// outgoing makes message n.
func (s *scenario) outgoing(n int) reprise.Outgoing {
	m := s.Messages[n]
	out := reprise.Outgoing{Body: s.body(n), Attributes: s.attributes(n), TraceHeader: s.traceHeader(n), GroupID: s.group(n)}
	switch {
	case !s.Queue.FIFO:
		out.Delay = m.Delay
	case !s.contentDeduplication():
		out.DeduplicationID = fmt.Sprint("message", n)
	}
	return out
}

func (s *scenario) traceHeader(n int) string {
	if !s.Messages[n].Traced {
		return ""
	}
	return fmt.Sprintf("Root=1-5e1b4151-%024d", n)
}

// group is the message group of message n: empty if it has none.
func (s *scenario) group(n int) string {
	if !s.Queue.FIFO && !s.Messages[n].Tenant {
		return ""
	}
	return fmt.Sprint("group", s.Messages[n].Group)
}

// observer notes events.
func (p *program) observer() reprise.Observer {
	w, l := p.w, p.life
	locked := func(f func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		f()
	}
	return reprise.Observer{
		Received: func(_ context.Context, e reprise.Received) {
			locked(func() {
				l.receivedEvents++
				l.duplicates += b2i(e.Duplicate)
				w.arrived(p.number, -1, e)
			})
		},
		Starting: func(ctx context.Context, _ *reprise.Message) (context.Context, string) {
			locked(func() { l.starting++ })
			return ctx, ""
		},
		Attempt: func(_ context.Context, e reprise.Attempt) {
			locked(func() {
				l.attempted++
				w.attempts = append(w.attempts, attempt{
					process: p.number, message: number(e.Message.Body), at: w.now(), n: e.Message.Attempt, id: e.Message.ID, origin: e.Message.OriginID,
					outcome: e.Outcome, reason: e.Reason, due: w.since(e.Due), ended: w.since(e.Started.Add(e.Duration)), err: e.Err,
					sent: e.Message.Sent, first: e.Message.FirstReceived,
				})
			})
		},
		Settled: func(_ context.Context, e reprise.Settled) {
			locked(func() {
				w.settled = append(w.settled, settled{
					p.number, number(e.Message.Body), e.Message.ID, w.now(), e.Outcome, e.Reason, w.since(e.Due), e.Requeued,
				})
			})
		},
		Expiring: func(_ context.Context, e reprise.Expiring) {
			locked(func() {
				w.expiring = append(w.expiring, expiring{p.number, number(e.Message.Body), w.now(), w.since(e.At)})
			})
		},
		Call: func(_ context.Context, e reprise.Call) {
			locked(func() { countCall(&l.observed, e.Operation) })
		},
		Finding: func(_ context.Context, f plan.Finding) {
			locked(func() { l.findings = append(l.findings, f.Code) })
		},
		Outage: func(_ context.Context, e reprise.OutageEvent) {
			locked(func() { l.outages = append(l.outages, e) })
		},
		GivingUp: func(_ context.Context, e reprise.GivingUp) {
			locked(func() { l.givingUp = append(l.givingUp, e) })
		},
		Stopped: func(r reprise.Report) {
			locked(func() { l.events = append(l.events, r) })
		},
	}
}

func countCall(c *reprise.Calls, op reprise.Operation) {
	switch op {
	case reprise.OpReceive:
		c.Receives++
	case reprise.OpDelete:
		c.Deletes++
	case reprise.OpVisibility, reprise.OpHeartbeat:
		c.Visibilities++
	case reprise.OpSend:
		c.Sends++
	case reprise.OpAttributes:
		c.Attributes++
	}
}
