package machines_test

import (
	"math/rand/v2"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// nature has the properties of a fleet that never change.
type nature struct {
	fifo, calm    bool          // calm: nothing goes wrong but handlers
	lives         time.Duration // until the faults end
	receives      int           // the queues' maxReceiveCount
	noDeadLetters bool
	retention     time.Duration // of the queues
	delay         time.Duration // of the queues
	quota         int           // of messages in flight; 0: that of SQS
	groups        int           // message groups of a FIFO queue
	pooled        bool          // each node consumes two queues, in a pool
	priority      int           // of the second; 0: they share by weights
	laned         bool          // what fails goes to a retry lane
	batches       bool          // handlers get batches
	keyed         bool          // messages have keys, with a breaker each
	probed        bool          // breakers have probes
	signed        bool          // histories and stories are signed
	sender        bool          // messages are sent by a Sender
	rate          float64       // how many handlers a second their dependency answers; 0: all
	odd           []kind        // kinds of messages beside plain ones
}

const (
	settling      = 120 * time.Hour // after the end of the faults all is done
	machinesRange = 90 * time.Second
)

func drawNature(r *rand.Rand) nature {
	one := func(in int) bool { return r.IntN(in) == 0 }
	if one(40) {
		return nature{
			lives: 16 * time.Minute, receives: 1000, retention: 14 * 24 * time.Hour,
			probed: one(4), rate: 0.3 + 2*r.Float64(),
		}
	}
	n := nature{
		fifo: r.IntN(5) < 2, calm: one(4), lives: 5 * time.Hour, receives: 1000, retention: 14 * 24 * time.Hour, groups: 4,
		noDeadLetters: one(8), pooled: one(8), batches: one(6), keyed: one(6), probed: one(6), signed: one(6), sender: one(8),
	}
	if n.pooled {
		n.priority = r.IntN(2)
	}
	if one(3) {
		n.groups = 40
	}
	if one(40) {
		n.lives = 30 * time.Hour
	}
	if one(6) {
		n.retention = time.Duration(1+r.IntN(24)) * time.Hour
	}
	if one(8) {
		n.delay = time.Duration(1+r.IntN(60)) * time.Second
	}
	if one(10) {
		n.quota = 20 + r.IntN(60)
	}
	if n.fifo {
		return n
	}
	n.receives = []int{3, 6, 1000, 1000}[r.IntN(4)]
	n.laned = one(8)
	for k := crowded; k <= forged; k++ {
		if one(10) && (k != deadly || !n.calm) {
			n.odd = append(n.odd, k)
		}
	}
	return n
}

// configure draws the configuration of the consumers that start from now on.
func (f *fleet) configure() {
	r := f.loop.Random
	f.cfg = consumer.Settings{LongPoll: 20 * time.Second, InFlightQuota: plan.MaxInFlight}
	f.cfg.Concurrency = 1 + r.IntN(12)
	prefetch := r.IntN(22) - 1
	f.cfg.Lease = time.Duration(2+r.IntN(40)) * time.Second
	f.cfg.StopBudget = time.Duration(1+r.IntN(30)) * time.Second
	f.cfg.Retry = f.drawPolicy()
	f.cfg.Seed = r.Uint64()
	if f.batches && r.IntN(4) > 0 {
		f.cfg.Batch = consumer.Batch{Size: 1 + r.IntN(30), Linger: time.Duration(r.IntN(3000)-500) * time.Millisecond, Bytes: 1 << (10 + r.IntN(12))}
		f.cfg.Batch.Linger = max(f.cfg.Batch.Linger, 0)
	}
	if f.cfg.Prefetch = max(prefetch, 0); prefetch == 0 {
		f.cfg.Prefetch = max(10, f.cfg.Batch.Size)
	}
	if r.IntN(3) == 0 && f.cfg.Batch.Size == 0 {
		f.cfg.HandlerTimeout = 3 * time.Second
	}
	if r.IntN(8) == 0 {
		f.cfg.Rate = float64(2 + r.IntN(50))
	}
	if f.fifo {
		f.cfg.FIFO = consumer.FIFO(r.IntN(3))
	} else if f.cfg.Via = []plan.Via{plan.ViaAuto, plan.ViaAuto, plan.ViaVisibility, plan.ViaRequeue}[r.IntN(4)]; f.laned {
		f.cfg.Via = plan.ViaAuto
	}
	if f.quota > 0 {
		f.cfg.InFlightQuota = f.quota
	}
	f.cfg.Threshold = []int{20, 20, 20, 3}[r.IntN(4)]
	if f.rate > 0 {
		f.cfg.Retry = retry.Policy{Backoff: retry.Exponential{Base: 2 * time.Second, Max: 2 * time.Minute}, MaxAttempts: -1, MaxAge: -1}
		f.cfg.Rate, f.cfg.HandlerTimeout, f.cfg.Threshold = 0, 0, 20
	}
	f.impatient = f.impatient || f.cfg.Retry.Backoff.Delay(10) < 15*time.Minute
	f.ruled = f.ruled || len(f.cfg.Retry.Rules) > 0
	f.unexplained = f.unexplained || f.starts > 0 || f.cfg.Via == plan.ViaVisibility // a second policy counts other attempts
	f.mayEnd = f.mayEnd || f.cfg.Retry.MaxAttempts > 0 || f.cfg.Retry.MaxAge > 0 || f.cfg.FIFO == consumer.FIFOSkip
}

// drawPolicy draws the retry policy.
func (f *fleet) drawPolicy() retry.Policy {
	r := f.loop.Random
	most := time.Duration(1+r.IntN(60)) * time.Second
	p := retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: most}, MaxAttempts: []int{-1, 3, 5}[r.IntN(3)], MaxAge: -1}
	switch r.IntN(16) {
	case 0, 1: // waits of hours, beyond what SQS unexplained a message at a time too
		p.Backoff = retry.Exponential{Base: time.Duration(1+r.IntN(800)) * time.Minute, Max: 16 * time.Hour}
	case 2, 3:
		p.Backoff = retry.Exponential{Base: time.Second, Max: time.Hour}
	case 4:
		p.Backoff = retry.Linear{Base: time.Second, Max: most}
	case 5:
		p.Backoff = retry.Polynomial{Base: time.Second, Max: most}
	case 6:
		p.Backoff = retry.List{0, time.Second, most}
	case 7:
		p.Backoff = retry.Func(func(n int) time.Duration { return time.Duration(n%7) * most / 7 })
	}
	p.Jitter = []retry.Jitter{retry.Full, retry.Full, retry.None, retry.Equal, retry.FromBase, retry.Decorrelated, retry.Percent(20)}[r.IntN(7)]
	if r.IntN(4) == 0 {
		p.Rules = []retry.Rule{retry.On(errOfRule, retry.Constant(5*time.Minute), retry.Equal)}
	}
	if r.IntN(4) == 0 {
		p.MaxAge = time.Duration(10+r.IntN(600)) * time.Minute
		p.AgeFrom = []retry.AgeFrom{retry.FirstReceive, retry.Sent}[r.IntN(2)]
	}
	return p
}
