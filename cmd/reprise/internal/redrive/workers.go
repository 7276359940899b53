package redrive

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// empty starts workers that handle one batch after another, and waits until all have ended.
func (p *run) empty(ctx context.Context, stop <-chan struct{}) error {
	p.workers, p.nextAt = p.atOnce(), time.Now()
	var workers sync.WaitGroup
	for range p.workers {
		workers.Go(func() { p.work(ctx, stop) })
	}
	workers.Wait()
	return p.problem
}

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

// work handles one batch after another. A worker ends when its poll is empty and other workers are
// left; the last worker ends after [emptyPolls] empty polls in a row.
func (p *run) work(ctx context.Context, stop <-chan struct{}) {
	polls := 0
	for room := p.reserve(ctx, stop); room > 0; room = p.reserve(ctx, stop) {
		out, err := p.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &p.QueueURL, MaxNumberOfMessages: int32(room), WaitTimeSeconds: pollSeconds, VisibilityTimeout: int32(lease / time.Second),
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err == nil {
			if polls++; len(out.Messages) > 0 {
				polls = 0
			}
			err = p.handle(ctx, stop, room, out.Messages)
		} else {
			p.free(room)
			err = cmp.Or(context.Cause(ctx), err)
		}
		if p.stops(err, polls) {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers--
}

// reserve returns how many letters to receive next; 0: none, because the run was stopped or as many
// letters as permitted were taken. It waits until the rate permits to send them soon.
func (p *run) reserve(ctx context.Context, stop <-chan struct{}) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := maxBatch
	if p.Rate > 0 && !p.DryRun {
		most = max(1, min(maxBatch, int(p.Rate))) // the letters of one second
		early := p.nextAt.Add(p.takes(most) - maxWait)
		p.mu.Unlock()
		p.await(ctx, stop, early)
		p.mu.Lock()
	}
	for {
		select {
		case <-stop:
			p.report.Stopped = true
			return 0
		default:
		}
		room := most
		if p.Max > 0 {
			room = min(room, p.Max-p.taken-p.asked)
		}
		switch {
		case p.ended || p.Max > 0 && p.taken >= p.Max:
			return 0
		case room > 0:
			p.asked += room
			return room
		}
		p.freed.Wait() // for receives that may bring fewer than they ask for
	}
}

// free gives back the room that was reserved for a receive.
func (p *run) free(room int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked -= room
	p.freed.Broadcast()
}

// handle sends back the letters of a receive for which room was reserved.
func (p *run) handle(ctx context.Context, stop <-chan struct{}, room int, messages []types.Message) error {
	back, undeleted, turn := p.sort(ctx, room, messages)
	p.delete(ctx, undeleted)
	if !p.await(ctx, stop, turn) {
		p.giveUp(back)
		return context.Cause(ctx)
	}
	p.sendBack(ctx, back)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Progress != nil {
		p.Progress(p.ledger.sent)
	}
	return context.Cause(ctx)
}

// turn returns when n letters may be sent: as soon as the rate has permitted that many since the
// start. The caller holds p.mu.
func (p *run) turn(n int) time.Time {
	if p.Rate <= 0 || p.DryRun || n == 0 {
		return time.Time{}
	}
	if now := time.Now(); p.nextAt.Before(now.Add(-p.takes(maxBatch))) { // unused permits expire
		p.nextAt = now.Add(-p.takes(maxBatch))
	}
	p.nextAt = p.nextAt.Add(p.takes(n))
	return p.nextAt
}

// takes returns how long n letters take at the rate.
func (p *run) takes(n int) time.Duration {
	return time.Duration(float64(n) / p.Rate * float64(time.Second))
}

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

// giveUp leaves letters that were not sent because the run has ended, without counting them.
func (p *run) giveUp(back map[*queue][]letter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, letters := range back {
		for _, l := range letters {
			p.held[l.id()] = l.handle()
		}
	}
}

// stops notes how a worker's batch has ended, and reports whether that ends the worker.
func (p *run) stops(err error, polls int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		if p.problem == nil {
			p.problem = err
		}
		p.ended = true
	case polls == 0 || p.workers == 1 && polls < emptyPolls:
		return false
	}
	p.workers--
	p.freed.Broadcast()
	return true
}
