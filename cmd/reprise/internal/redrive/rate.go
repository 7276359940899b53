package redrive

import (
	"context"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// atOnce returns how many batches may be in flight at once.
func (p *run) atOnce() int {
	n := p.AtOnce
	if n == 0 {
		n = defaultAtOnce
	}
	if strings.HasSuffix(p.QueueURL, ".fifo") || strings.HasSuffix(p.To, ".fifo") || p.DryRun {
		return 1
	}
	if p.Rate > 0 { // batches hold their leases while they wait for the rate
		n = min(n, int(p.Rate*maxWait.Seconds()/maxBatch))
	}
	return max(1, n)
}

// batch returns how many letters to receive at once: at a low rate those of one second.
func (p *run) batch() int {
	if p.Rate <= 0 || p.DryRun {
		return maxBatch
	}
	return max(1, min(maxBatch, int(p.Rate)))
}

// awaitRate waits until the rate permits to send soon what is received next.
func (p *run) awaitRate(ctx context.Context, stop <-chan struct{}) {
	if p.Rate <= 0 || p.DryRun {
		return
	}
	p.mu.Lock()
	soon := p.nextAt.Add(p.takes(p.batch()) - maxWait)
	p.mu.Unlock()
	p.await(ctx, stop, soon)
}

// turn returns when n letters may be sent: as soon as the rate has permitted that many since the
// start.
func (p *run) turn(n int) time.Time {
	if p.Rate <= 0 || p.DryRun || n == 0 {
		return time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.nextAt.Before(now.Add(-p.takes(maxBatch))) { // unused permits expire
		p.nextAt = now.Add(-p.takes(maxBatch))
	}
	p.nextAt = p.nextAt.Add(p.takes(n))
	return p.nextAt
}

// takes returns how long n letters take at the rate.
func (p *run) takes(n int) time.Duration { return operate.Pace(n, p.Rate) }

// await waits until that time. It returns false if the run ends earlier.
func (p *run) await(ctx context.Context, stop <-chan struct{}, then time.Time) bool {
	if then.IsZero() {
		return true
	}
	wait := time.NewTimer(time.Until(then))
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-stop:
	case <-ctx.Done():
	}
	return false
}
