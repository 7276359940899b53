package redrive

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/interrupt"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// RunInside is [Redrive.Run] for a queue of a server of this process: the server moves the letters
// itself, without receives, many at a time. So no receive count rises, each letter is in exactly one
// queue at any time, and one that a consumer has received stays. Client is asked where the letters
// go. AtOnce and Edit are not used.
func (r Redrive) RunInside(ctx context.Context, stop <-chan struct{}, server *sqsserver.Server) (Report, error) {
	p := &inside{
		run: &run{
			Redrive: r,
			report:  Report{Sent: make(map[string]int), Left: make(map[string]int)},
			queues:  make(map[string]*queue),
		},
		server:  server,
		blocked: make(map[string]uint64),
	}
	err := p.begin(ctx)
	if err == nil {
		p.start, p.nextAt = server.Now(), time.Now()
		err = p.empty(ctx, stop)
	}
	return p.report, errors.Join(err, p.close(ctx))
}

// inside is a pass over a queue of the server of this process.
type inside struct {
	*run
	server  *sqsserver.Server
	start   time.Time         // by the server's clock, to the nanosecond
	blocked map[string]uint64 // FIFO: by group, the sequence number of the first letter that was left
	moved   int
	taken   int // letters, for Max
}

// insideBatch is how many letters are read, and moved with one sync of the journal.
const insideBatch = 500

func (p *inside) empty(ctx context.Context, stop <-chan struct{}) error {
	next := p.pages(p.WithoutBodies)
	if strings.HasSuffix(p.own.Resource, ".fifo") {
		var err error
		if next, err = p.pagesInOrder(ctx); err != nil {
			return err
		}
	}
	for {
		if interrupt.Requested(stop) {
			p.report.Stopped = true
			return nil
		}
		infos, more, err := next()
		if err != nil {
			return err
		}
		chosen := p.choose(ctx, infos)
		for len(chosen) > 0 {
			n := min(len(chosen), p.portion())
			if !p.await(ctx, stop, p.turn(n)) {
				p.report.Stopped = ctx.Err() == nil
				return context.Cause(ctx)
			}
			if err := p.transfer(chosen[:n]); err != nil {
				return err
			}
			chosen = chosen[n:]
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !more || p.Max > 0 && p.taken >= p.Max {
			return nil
		}
	}
}

// portion is how many letters are moved at once: with a rate those of a tenth of a second.
func (p *inside) portion() int {
	if p.Rate <= 0 || p.DryRun {
		return insideBatch
	}
	return max(1, min(insideBatch, int(p.Rate/10)))
}

// turn returns when n letters may be sent: as soon as the rate has permitted that many since the start.
func (p *inside) turn(n int) time.Time {
	if p.Rate <= 0 || p.DryRun {
		return time.Time{}
	}
	if now := time.Now(); p.nextAt.Before(now.Add(-p.takes(n))) { // unused permits expire
		p.nextAt = now.Add(-p.takes(n))
	}
	p.nextAt = p.nextAt.Add(p.takes(n))
	return p.nextAt
}

// pages returns what reads the queue, some messages at a time, and reports whether there may be more.
func (p *inside) pages(withoutBodies bool) func() ([]sqsserver.MessageInfo, bool, error) {
	page := sqsserver.Page{Limit: insideBatch, WithoutBodies: withoutBodies}
	return func() ([]sqsserver.MessageInfo, bool, error) {
		infos, err := p.server.Messages(p.own.String(), page)
		if len(infos) > 0 {
			page.After = infos[len(infos)-1].Number
		}
		return infos, len(infos) == insideBatch, err
	}
}

// pagesInOrder is pages for a FIFO queue: each group in its order, which is not that of the pages.
func (p *inside) pagesInOrder(ctx context.Context) (func() ([]sqsserver.MessageInfo, bool, error), error) {
	type place struct{ sequence, number uint64 }
	var places []place
	for next, more := p.pages(true), true; more && ctx.Err() == nil; {
		infos, goesOn, err := next()
		if err != nil {
			return nil, err
		}
		more = goesOn
		for i := range infos {
			places = append(places, place{infos[i].Sequence, infos[i].Number})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.sequence < b.sequence {
			return -1
		}
		return 1
	})
	return func() ([]sqsserver.MessageInfo, bool, error) {
		numbers := make([]uint64, min(len(places), insideBatch))
		for i := range numbers {
			numbers[i] = places[i].number
		}
		places = places[len(numbers):]
		infos, err := p.server.Messages(p.own.String(), sqsserver.Page{Numbers: numbers, WithoutBodies: p.WithoutBodies})
		return infos, len(places) > 0, err
	}, context.Cause(ctx)
}

// bound is a letter that is to be moved, and where to.
type bound struct {
	info *sqsserver.MessageInfo
	to   *queue
	sqsserver.Transfer
}

// choose returns the letters of a page that are to be moved, and counts those that are left.
func (p *inside) choose(ctx context.Context, infos []sqsserver.MessageInfo) (chosen []bound) {
	for i := range infos {
		info := &infos[i]
		if info.State != sqsserver.Visible { // somebody works on it
			p.report.Busy++
			continue
		}
		if p.Max > 0 && p.taken == p.Max {
			return chosen
		}
		m := Wire(info)
		if p.Select != nil && !p.Select(&m, p.server.Now()) {
			continue
		}
		l := letter{&m}
		to, problem := p.to, ""
		switch {
		case info.Sent.After(p.start):
			problem = cameLate
		case to == nil:
			to = p.sourceOf(ctx, l)
		}
		if problem == "" {
			problem = to.closed
		}
		if problem != "" {
			p.stays(info, problem)
			continue
		}
		p.taken++
		b := bound{info: info, to: to}
		b.Shown, b.To = sqsserver.Shown{Number: info.Number, Receives: info.Receives}, p.arnOf(to)
		for _, name := range past {
			if _, has := m.MessageAttributes[name]; has && leavesOut(name, p.Whole) {
				b.Without = append(b.Without, name)
			}
		}
		chosen = append(chosen, b)
	}
	return chosen
}

// arnOf returns the ARN of a queue, in the region of this one.
func (p *inside) arnOf(q *queue) string {
	name := p.own
	name.AccountID, name.Resource, _ = strings.Cut(PathOf(q.url), "/")
	return name.String()
}

// stays counts a letter that is left and, so that the order is kept, blocks its group behind it. Those before it may
// be chosen and not yet moved.
func (p *inside) stays(info *sqsserver.MessageInfo, why string) {
	p.count(why)
	if first, isBlocked := p.blocked[info.Group]; info.Sequence > 0 && (!isBlocked || info.Sequence < first) {
		p.blocked[info.Group] = info.Sequence
	}
}

// isBehind reports whether a letter of the group before this one was left.
func (p *inside) isBehind(info *sqsserver.MessageInfo) bool {
	first, isBlocked := p.blocked[info.Group]
	return isBlocked && info.Sequence > first
}

// transfer has the server move letters.
func (p *inside) transfer(letters []bound) error {
	var batch []sqsserver.Transfer
	var moved []*bound
	for i := range letters {
		l := &letters[i]
		switch {
		case p.isBehind(l.info):
			p.stays(l.info, behindAnother)
		case p.DryRun:
			p.report.Sent[l.to.url]++
		default:
			batch, moved = append(batch, l.Transfer), append(moved, l)
		}
	}
	if len(batch) > 0 {
		results, err := p.server.Transfer(p.own.String(), batch)
		if err != nil {
			return err
		}
		for i, l := range moved {
			switch why := results[i]; {
			case why == nil:
				p.report.Sent[l.to.url]++
				p.moved++
			case errors.Is(why, sqsserver.ErrTaken):
				p.stays(l.info, "a consumer has received or deleted meanwhile, or has one before them in their FIFO group")
			case errors.Is(why, sqsserver.ErrBehind):
				p.stays(l.info, behindAnother)
			default:
				p.stays(l.info, "were not accepted by "+l.to.url+": "+terminal.Line(why.Error(), maxBrief))
			}
		}
	}
	if p.Progress != nil {
		p.Progress(p.moved)
	}
	return nil
}

// Wire is a message of a server as a receive would bring it, without a receipt handle.
func Wire(info *sqsserver.MessageInfo) types.Message {
	text := func(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }
	m := types.Message{
		MessageId: &info.ID, Body: &info.Body, MessageAttributes: make(map[string]types.MessageAttributeValue, len(info.Attributes)),
		Attributes: map[string]string{
			"SentTimestamp": text(info.Sent), "ApproximateReceiveCount": strconv.Itoa(info.Receives),
			"MessageGroupId": info.Group, "MessageDeduplicationId": info.Deduplication, "DeadLetterQueueSourceArn": info.Source,
		},
	}
	if !info.FirstReceived.IsZero() {
		m.Attributes["ApproximateFirstReceiveTimestamp"] = text(info.FirstReceived)
	}
	for i := range info.Attributes {
		a := &info.Attributes[i]
		m.MessageAttributes[a.Name] = types.MessageAttributeValue{DataType: &a.DataType, StringValue: &a.StringValue, BinaryValue: a.BinaryValue}
	}
	return m
}
