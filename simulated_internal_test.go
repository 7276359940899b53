package reprise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

// simulated is a consumer in a world of virtual time: its platform is a process of that
// world, its requests go over the process's links to queues of internal/engine, and its
// handlers are models. Nothing in it waits, and nothing runs beside it.
type simulated struct {
	*world.Process
	*Consumer
	loop      *world.Loop
	latest    time.Time     // that now has returned, when
	since     time.Duration // the loop had run for so long
	link      *world.Link   // of most requests
	beats     *world.Link   // of heartbeats, which are not awaited so long
	queue     *world.Queue
	dead      *world.Queue
	timer     *world.Timer
	model     func(*Message) work
	observer  observer
	running   []*shift
	receiving []*receiving
	ended     func(Report)
	stops     time.Time // when it was told to stop; zero: it was not
}

// observer is told what passes between a simulated consumer and the queue.
type observer interface {
	arrived(d *engine.Delivery)                                // a receive has brought it
	asks(action world.Action, batch []*delivery)               // a request about deliveries begins
	confirmed(action world.Action, d *delivery, e world.Entry) // SQS has carried out an entry
	answered(batch []*delivery)                                // the request has ended
}

// heartbeat is what an observer calls the action of a heartbeat.
const heartbeat world.Action = "heartbeat"

// work is what a handler is about to do.
type work struct {
	takes    time.Duration
	heeds    bool         // it returns when its context ends
	err      func() error // what it returns otherwise
	finished func()
}

// shift is a run of a handler.
type shift struct {
	*delivery
	work
	began time.Time
	over  bool
}

// receiving is a receive under way.
type receiving struct {
	poller *poller
	n      int
	over   bool
}

// letter is the payload of a message in a queue.
type letter struct {
	body       string
	attributes map[string]types.MessageAttributeValue
}

// simulate makes a consumer that runs in p, and starts it.
func simulate(l *world.Loop, p *world.Process, queue, dead *world.Queue, latency world.Latency, model func(*Message) work, o observer, cfg Config) (*simulated, error) {
	s := &simulated{Process: p, loop: l, latest: p.Now(), since: l.Since(), queue: queue, dead: dead, model: model, observer: o}
	s.link = p.NewLink(latency, settleTimeout)
	s.beats = p.NewLink(latency, min(heartbeatTimeout, cfg.Lease/5))
	s.timer = p.NewTimer(func() { s.ringAlarms(); s.interrupt() })
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	var err error
	s.Consumer, err = New(attributesOnly{s: s}, urlOf(queue), HandlerFunc(func(context.Context, *Message) error { panic("a model runs") }), cfg)
	if err != nil {
		return nil, err
	}
	s.platform = s
	s.makeContexts(context.Background())
	learned := s.learn(context.Background())
	core := s.enter()
	core.health.set(HealthOK, "")
	core.poll()
	if !learned {
		core.learnLater()
	}
	s.leave()
	return s, nil
}

func urlOf(q *world.Queue) string { return "https://sqs.eu-west-1.amazonaws.com/1/" + q.Name() }
func arnOf(q *world.Queue) string { return "arn:aws:sqs:eu-west-1:1:" + q.Name() }

// attributesOnly is the client of a simulated consumer. Attributes are read at once; other
// requests are effects.
type attributesOnly struct {
	Client
	s *simulated
}

func (a attributesOnly) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	q := a.s.queue
	if *in.QueueUrl != urlOf(q) {
		q = a.s.dead
	}
	set := q.Settings()
	visible, inFlight, delayed := q.Counts()
	attributes := map[string]string{
		"QueueArn":                              arnOf(q),
		"VisibilityTimeout":                     strconv.Itoa(int(set.Visibility / time.Second)),
		"ApproximateNumberOfMessages":           strconv.Itoa(visible),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(inFlight),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed),
	}
	if set.Retention > 0 {
		attributes["MessageRetentionPeriod"] = strconv.Itoa(int(set.Retention / time.Second))
	}
	if set.DeadLetter != "" {
		attributes["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, arnOf(a.s.dead), set.MaxReceives)
	}
	return &sqs.GetQueueAttributesOutput{Attributes: attributes}, nil
}

// The platform.

// now is the larger of what the wall clock and the time that has passed say, and never
// goes back, as [passed] and [elapsed] make of the clocks of a system.
func (s *simulated) now() time.Time {
	since := s.loop.Since()
	now := s.latest.Add(since - s.since)
	if wall := s.Process.Now(); wall.After(now) {
		now = wall
	}
	s.latest, s.since = now, since
	return now
}

func (s *simulated) ring(in time.Duration) { s.timer.Set(s.Process.Now().Add(in)) }

func (s *simulated) carryOut(e effect) {
	switch e.kind {
	case effectWork:
		s.After(0, func() { s.run(s.arrive()) })
	case effectReceive:
		s.receive(e.poller, e.n)
	case effectSend:
		s.After(0, func() { s.send(e.outbox, e.batch) })
	case effectHeartbeat:
		s.After(0, func() { s.heartbeat(e.batch) })
	case effectWake:
		s.wake(e.waking)
	case effectCount:
		s.After(0, s.readInFlight)
	case effectLearn:
		s.After(0, s.learnAgain)
	case effectAfterDelete:
		s.After(0, s.afterDelete)
	case effectReport:
		s.After(0, s.reportInOrder)
	case effectSettled:
		s.After(0, s.tellSettled)
	case effectEmptied:
		s.After(0, func() {
			if s.idle() {
				s.end(false)
			}
		})
	case effectProbe:
		panic("a simulated consumer has no Config.Outage.Probe")
	}
}

// Receiving.

func (s *simulated) receive(p *poller, n int) {
	requested := s.now()
	r := &receiving{poller: p, n: n}
	s.receiving = append(s.receiving, r)
	s.queue.Receive(s.link, n, s.cfg.Lease, s.cfg.LongPoll, func(got []engine.Delivery, err error) {
		if r.over {
			return // it was cancelled, and what it brings is stranded
		}
		s.receiveEnds(r)
		if err != nil {
			core := s.enter()
			core.receiveFailed(p, n, failure(err))
			s.leave()
			return
		}
		messages := make([]types.Message, len(got))
		for i := range got {
			s.observer.arrived(&got[i])
			messages[i] = rawOf(&got[i])
		}
		batch := s.unpack(messages, requested, s.now())
		core := s.enter()
		core.took(p, n, batch, requested)
		s.leave()
		s.tellSettled()
		if f := s.cfg.Observer.Received; f != nil {
			for i := range batch {
				f(s.runCtx, Received{Message: &batch[i].received, Duplicate: batch[i].duplicate})
			}
		}
		s.interrupt()
	})
}

func (s *simulated) receiveEnds(r *receiving) {
	r.over = true
	for i := range s.receiving {
		if s.receiving[i] == r {
			s.receiving = append(s.receiving[:i], s.receiving[i+1:]...)
			return
		}
	}
}

// rawOf is a message as a receive brings it.
func rawOf(d *engine.Delivery) types.Message {
	l := d.Payload.(*letter)
	handle := fmt.Sprintf("%d-%d", d.Receipt.Number, d.Receipt.Generation)
	raw := types.Message{
		MessageId: aws.String(d.ID.String()), Body: &l.body, ReceiptHandle: &handle, MessageAttributes: l.attributes,
		Attributes: map[string]string{
			"ApproximateReceiveCount":          strconv.Itoa(d.Receives),
			"SentTimestamp":                    strconv.FormatInt(d.SentAt.UnixMilli(), 10),
			"ApproximateFirstReceiveTimestamp": strconv.FormatInt(d.FirstReceived.UnixMilli(), 10),
		},
	}
	if d.Group != "" {
		raw.Attributes["MessageGroupId"] = d.Group
		raw.Attributes["SequenceNumber"] = fmt.Sprintf("%020d", d.Sequence)
	}
	return raw
}

func receiptOf(handle *string) (r engine.Receipt) {
	number, generation, _ := strings.Cut(*handle, "-")
	r.Number, _ = strconv.ParseUint(number, 10, 64)
	g, _ := strconv.ParseUint(generation, 10, 32)
	r.Generation = uint32(g)
	return r
}

// failure is the error of a request as the SDK tells it.
func failure(err error) error {
	switch {
	case errors.Is(err, world.ErrThrottled):
		return &smithy.GenericAPIError{Code: "RequestThrottled", Message: "too many", Fault: smithy.FaultClient}
	case errors.Is(err, world.ErrDenied):
		return &smithy.GenericAPIError{Code: "AccessDenied", Message: "denied", Fault: smithy.FaultClient}
	case errors.Is(err, engine.ErrOverLimit):
		return &smithy.GenericAPIError{Code: "OverLimit", Message: "too many in flight", Fault: smithy.FaultClient}
	case errors.Is(err, world.ErrServer):
		return &smithy.GenericAPIError{Code: "InternalError", Message: "failed", Fault: smithy.FaultServer}
	}
	return err
}

// Running.

func (s *simulated) run(d *delivery) {
	if d == nil {
		s.workerEnded()
		return
	}
	d.run.ctx.start(s.workCtx, 0)
	d.run.shown = *d.msg
	r := &shift{delivery: d, began: s.now()}
	s.running = append(s.running, r)
	r.work = s.model(d.msg)
	if timeout := s.cfg.HandlerTimeout; timeout > 0 {
		s.After(timeout, func() {
			if !r.over {
				d.run.ctx.end(context.DeadlineExceeded)
				s.interrupt()
			}
		})
	}
	s.After(r.takes, func() { s.runEnds(r, r.err) })
}

// interrupt ends the handlers whose contexts have ended, if they heed that.
func (s *simulated) interrupt() {
	for _, r := range s.running {
		if r.heeds && !r.over && r.run.ctx.cause() != nil {
			s.After(time.Millisecond, func() { s.runEnds(r, func() error { return context.Canceled }) })
		}
	}
}

func (s *simulated) runEnds(r *shift, result func() error) {
	if r.over {
		return
	}
	r.over = true
	for i := range s.running {
		if s.running[i] == r {
			s.running = append(s.running[:i], s.running[i+1:]...)
			break
		}
	}
	r.finished()
	err := result()
	now := s.now()
	next, _ := s.Consumer.ended(r.delivery, s.weigh(r.delivery, err, now), r.began, now, true)
	s.run(next)
}

// Settling.

func (s *simulated) send(o *outbox, batch []*delivery) {
	var results [maxBatch]error
	core := s.enter()
	if o.leased {
		batch = core.dropExpired(batch, core.now)
	}
	s.leave()
	done := func(got []world.Entry, err error) {
		results = resultsOf(got, err)
		s.acknowledge(o, batch, &results)
		s.sent(o)
		s.interrupt()
	}
	if len(batch) == 0 {
		done(nil, nil)
		return
	}
	entries := make([]world.Entry, len(batch))
	core = s.lock()
	now := core.now
	to, action := s.queue, world.Send
	switch o {
	case &core.deletes:
		action = world.Delete
		for i, d := range batch {
			d.named = d.handle
			entries[i].Receipt = receiptOf(d.handle)
		}
	case &core.hides:
		action = world.ChangeVisibility
		s.hide(entries, core.hidesOf(batch, now))
	case &core.copies:
		to = s.dead
		for i, d := range batch {
			entries[i].Message = mail(core.copyOf(d, core.facts.deadLetter, now))
		}
	case &core.requeues:
		for i, d := range batch {
			entries[i].Message = mail(core.requeueOf(d, now))
		}
	}
	s.unlock()
	s.observer.asks(action, batch)
	then := func(got []world.Entry, err error) {
		s.confirms(action, batch, got, err)
		done(got, err)
	}
	switch action {
	case world.Delete:
		to.Delete(s.link, entries, then)
	case world.ChangeVisibility:
		to.ChangeVisibility(s.link, entries, then)
	default:
		to.Send(s.link, entries, then)
	}
}

func (s *simulated) hide(entries []world.Entry, asked []types.ChangeMessageVisibilityBatchRequestEntry) {
	for i := range asked {
		entries[i].Receipt = receiptOf(asked[i].ReceiptHandle)
		entries[i].Visibility = time.Duration(asked[i].VisibilityTimeout) * time.Second
	}
}

// mail is a message as the queue takes it.
func mail(e types.SendMessageBatchRequestEntry) engine.Message {
	m := engine.Message{
		Payload: &letter{*e.MessageBody, e.MessageAttributes},
		Group:   aws.ToString(e.MessageGroupId), Dedup: aws.ToString(e.MessageDeduplicationId),
		Delay: time.Duration(e.DelaySeconds) * time.Second,
	}
	if e.DelaySeconds == 0 {
		m.Delay = -1
	}
	return m
}

func resultsOf(got []world.Entry, err error) (results [maxBatch]error) {
	for i := range got {
		switch refused := got[i].Err; {
		case err != nil:
			results[i] = failure(err)
		case errors.Is(refused, world.ErrRefused):
			results[i] = &refusal{code: "InternalError", message: refused.Error()}
		case refused != nil:
			results[i] = &refusal{code: "ReceiptHandleIsInvalid", message: refused.Error(), ours: true}
		}
	}
	return results
}

func (s *simulated) confirms(action world.Action, batch []*delivery, got []world.Entry, err error) {
	s.observer.answered(batch)
	for i := range batch {
		if err == nil && got[i].Err == nil {
			s.observer.confirmed(action, batch[i], got[i])
		}
	}
}

func (s *simulated) heartbeat(batch []*delivery) {
	core := s.enter()
	requested := core.now
	batch, asked := core.renewalsOf(batch, requested)
	s.leave()
	if len(batch) == 0 {
		s.tellSettled()
		s.heartbeatEnded()
		return
	}
	entries := make([]world.Entry, len(batch))
	s.hide(entries, asked)
	s.observer.asks(heartbeat, batch)
	s.queue.ChangeVisibility(s.beats, entries, func(got []world.Entry, err error) {
		s.confirms(heartbeat, batch, got, err)
		results := resultsOf(got, err)
		s.beaten(batch, asked, &results, requested)
		s.heartbeatEnded()
		s.interrupt()
	})
}

func (s *simulated) wake(w *waking) {
	entries := make([]world.Entry, len(w.entries))
	s.hide(entries, w.entries)
	s.queue.ChangeVisibility(s.beats, entries, func(got []world.Entry, err error) {
		results := resultsOf(got, err)
		core := s.enter()
		core.woken(w, results[:len(w.ids)])
		s.leave()
	})
}

// Stopping.

// stop has the consumer drain. ended is called with its report.
func (s *simulated) stop(ended func(Report)) {
	s.ended, s.stops = ended, s.now()
	s.beginStop()
	soft := s.softBudget()
	stranded := false
	s.After(soft, func() {
		if s.ended == nil {
			return
		}
		stranded = s.stopHandlers()
		for len(s.receiving) > 0 {
			r := s.receiving[0]
			s.receiveEnds(r)
			core := s.enter()
			core.receiveFailed(r.poller, r.n, context.Canceled)
			s.leave()
		}
		s.interrupt()
	})
	s.After(s.cfg.StopBudget, func() { s.end(stranded) })
	if s.idle() {
		s.end(false)
	}
}

// end ends the drain.
func (s *simulated) end(stranded bool) {
	if ended := s.ended; ended != nil {
		s.ended = nil
		ended(s.close(stranded, s.stops))
	}
}
