package reprise

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

// letter is the payload of a message in a queue.
type letter struct {
	body       string
	attributes map[string]types.MessageAttributeValue
	damaged    bool // its digest is not that of its content
}

func urlOf(queue string) string { return "https://sqs.eu-west-1.amazonaws.com/1/" + queue }
func arnOf(queue string) string { return "arn:aws:sqs:eu-west-1:1:" + queue }

// attributesOnly is the client of a simulated consumer. Attributes are read at once; other
// requests are effects.
type attributesOnly struct {
	Client
	sqs  *world.Service
	link *world.Link
}

func (a attributesOnly) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if !a.link.Passes("GetQueueAttributes") {
		return nil, failure(world.ErrServer)
	}
	q := a.sqs.Queue(strings.TrimPrefix(*in.QueueUrl, urlOf("")))
	set := q.Settings()
	visible, inFlight, delayed := q.Counts()
	attributes := map[string]string{
		"QueueArn":                              arnOf(q.Name()),
		"VisibilityTimeout":                     strconv.Itoa(int(set.Visibility / time.Second)),
		"DelaySeconds":                          strconv.Itoa(int(set.Delay / time.Second)),
		"ApproximateNumberOfMessages":           strconv.Itoa(visible),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(inFlight),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed),
	}
	if set.Retention > 0 {
		attributes["MessageRetentionPeriod"] = strconv.Itoa(int(set.Retention / time.Second))
	}
	if q.Largest > 0 {
		attributes["MaximumMessageSize"] = strconv.Itoa(q.Largest)
	}
	if set.DeadLetter != "" {
		attributes["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, arnOf(set.DeadLetter), set.MaxReceives)
	}
	return &sqs.GetQueueAttributesOutput{Attributes: attributes}, nil
}

// failure is the error of a request as the SDK tells it.
func failure(err error) error {
	code, fault := "", smithy.FaultClient
	switch {
	case errors.Is(err, world.ErrThrottled):
		code = "RequestThrottled"
	case errors.Is(err, world.ErrDenied):
		code = "AccessDenied"
	case errors.Is(err, world.ErrKey):
		code = "KmsAccessDenied"
	case errors.Is(err, world.ErrUnacceptable):
		code = "InvalidMessageContents"
	case errors.Is(err, engine.ErrOverLimit):
		code = "OverLimit"
	case errors.Is(err, world.ErrServer):
		code, fault = "InternalError", smithy.FaultServer
	default:
		return err
	}
	return &smithy.GenericAPIError{Code: code, Message: err.Error(), Fault: fault}
}

// resultsOf are the results of a batch's entries as the shell sorts them.
func resultsOf(got []world.Entry, err error) (replied results) {
	entry := func(code string, refused error, ours bool, kinds consumer.FailureKind) consumer.Failure {
		return consumer.Failure{Err: &refusal{code: code, message: refused.Error(), ours: ours}, Kinds: consumer.OfEntry | kinds}
	}
	for i := range got {
		switch refused := got[i].Err; {
		case err != nil:
			replied[i] = failureOf(failure(err))
		case errors.Is(refused, world.ErrRefused):
			replied[i] = entry("InternalError", refused, false, 0)
		case errors.Is(refused, world.ErrNotTaken):
			replied[i] = entry("InvalidParameterValue", refused, true, consumer.BySender)
		case refused != nil:
			replied[i] = entry("ReceiptHandleIsInvalid", refused, true, consumer.BySender)
		}
	}
	return replied
}

// Receiving.

// receiving is a receive under way.
type receiving struct {
	poller *consumer.Poller
	n      int
	over   bool
}

func (s *simulated) receive(p *consumer.Poller, n int) {
	requested := s.now()
	r := &receiving{poller: p, n: n}
	s.receiving = append(s.receiving, r)
	s.queue.Receive(s.link, n, s.cfg.Lease, s.cfg.LongPoll, func(got []engine.Delivery, err error) {
		if r.over {
			return // it was cancelled, and what it brings is stranded
		}
		s.receiveEnds(r)
		if err != nil {
			s.enter().ReceiveFailed(p, n, failureOf(failure(err)))
			s.leave()
			return
		}
		messages := make([]types.Message, len(got))
		for i := range got {
			s.observer.arrived(&got[i])
			messages[i] = rawOf(&got[i])
		}
		s.readClock()
		answered := s.now()
		batch := s.unpack(messages, answered)
		subjects := handOver(s.enter(), p, n, batch, requested, answered, nil)
		s.leave()
		s.tellSettled()
		if f := s.cfg.Observer.Received; f != nil {
			for i := range batch {
				f(s.runCtx, Received{Message: message(subjects[i]), Duplicate: batch[i].Duplicate()})
			}
		}
		s.interrupt()
	})
}

// readClock has s learn SQS's time from a reply, as [serverClock] does from its Date header.
func (s *simulated) readClock() {
	skew := s.sqs.Now().Sub(s.Process.Now())
	if skew.Abs() < skewNoise {
		skew = 0
	}
	s.clock.ahead.Store(int64(skew))
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
	handle := handleOf(d.Receipt)
	raw := types.Message{
		MessageId: aws.String(d.ID.String()), Body: &l.body, ReceiptHandle: &handle, MessageAttributes: l.attributes,
		Attributes: map[string]string{
			"ApproximateReceiveCount":          strconv.Itoa(d.Receives),
			"SentTimestamp":                    strconv.FormatInt(d.SentAt.UnixMilli(), 10),
			"ApproximateFirstReceiveTimestamp": strconv.FormatInt(d.FirstReceived.UnixMilli(), 10),
		},
	}
	if l.damaged {
		raw.MD5OfBody = aws.String(damaged)
	}
	if d.Group != "" {
		raw.Attributes["MessageGroupId"] = d.Group
		raw.Attributes["SequenceNumber"] = fmt.Sprintf("%020d", d.Sequence)
	}
	return raw
}

func handleOf(r engine.Receipt) string {
	return strconv.FormatUint(r.Number, 10) + "-" + strconv.FormatUint(uint64(r.Generation), 10)
}

func receiptOf(handle string) (r engine.Receipt) {
	number, generation, _ := strings.Cut(handle, "-")
	r.Number, _ = strconv.ParseUint(number, 10, 64)
	g, _ := strconv.ParseUint(generation, 10, 32)
	r.Generation = uint32(g)
	return r
}

// Settling.

func (s *simulated) send(o *consumer.Outbox, batch []*consumer.Delivery) {
	var asked [maxBatch]consumer.Entry
	batch = s.enter().Prepare(o, batch, &asked)
	target := s.deadLetter
	s.leave()
	done := func(replied *results) {
		s.enter().Acknowledge(o, batch, replied)
		s.leave()
		s.tellSettled()
		s.interrupt()
	}
	if len(batch) == 0 {
		done(new(results))
		return
	}
	to, action, entries := s.requestOf(o.Request, batch, asked[:len(batch)], target)
	sound, replied := batch, new(results)
	if o.Request == consumer.SendCopies {
		if sound, entries = leaveOutDamaged(batch, entries, replied); len(sound) == 0 {
			done(replied)
			return
		}
	}
	s.observer.asks(action, s.look(sound, entries))
	then := func(got []world.Entry, err error) {
		s.report(action, sound, got, err)
		of, at := resultsOf(got, err), 0
		for i := range batch {
			if replied[i].Err == nil { // it was asked for
				replied[i] = of[at]
				at++
			}
		}
		done(replied)
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

// requestOf is a request about batch: where it goes, and what it says.
func (s *simulated) requestOf(r consumer.Request, batch []*consumer.Delivery, asked []consumer.Entry, target queueURL) (to *world.Queue, action world.Action, entries []world.Entry) {
	entries = make([]world.Entry, len(batch))
	switch r {
	case consumer.DeleteMessages:
		hide(entries, asked)
		return s.queue, world.Delete, entries
	case consumer.HideMessages:
		hide(entries, asked)
		return s.queue, world.ChangeVisibility, entries
	case consumer.SendDeadLetters:
		for i := range batch {
			e := s.deadLetterOf(ofMachine(batch[i]), &asked[i], target)
			signStory(&e, target, s.cfg.SigningKeys)
			entries[i].Message = mail(e)
		}
		return s.sqs.Queue(target.name), world.Send, entries
	}
	for i := range batch {
		e := s.copyOf(ofMachine(batch[i]), &asked[i])
		s.signHistory(&e)
		entries[i].Message = mail(e)
	}
	return s.sqs.Queue(s.copyTo.name), world.Send, entries
}

// leaveOutDamaged takes the messages out of a request whose digests are not those of their
// content, as a consumer does that computes them.
func leaveOutDamaged(batch []*consumer.Delivery, entries []world.Entry, replied *results) (sound []*consumer.Delivery, theirs []world.Entry) {
	for i, d := range batch {
		if deref(ofMachine(d).raw.MD5OfBody) == damaged {
			replied[i] = consumer.Failure{Err: errDigest, Kinds: consumer.Damaged}
			continue
		}
		sound, theirs = append(sound, d), append(theirs, entries[i])
	}
	return sound, theirs
}

const damaged = "not that of its body"

// hide makes what is asked for messages entries of the queue.
func hide(entries []world.Entry, asked []consumer.Entry) {
	for i := range asked {
		entries[i].Receipt = receiptOf(*asked[i].Handle)
		entries[i].Visibility = time.Duration(asked[i].Seconds) * time.Second
	}
}

// mail is a message as the queue takes it.
func mail(e types.SendMessageBatchRequestEntry) engine.Message {
	m := engine.Message{
		Payload: &letter{body: *e.MessageBody, attributes: e.MessageAttributes},
		Group:   aws.ToString(e.MessageGroupId), Dedup: aws.ToString(e.MessageDeduplicationId),
		Delay: time.Duration(e.DelaySeconds) * time.Second,
	}
	if e.DelaySeconds == 0 {
		m.Delay = -1
	}
	return m
}

// look is a batch as the observer sees it. It is good until the next call.
func (s *simulated) look(batch []*consumer.Delivery, asked []world.Entry) []entry {
	s.seen = s.seen[:0]
	for i, d := range batch {
		e := entry{Message: message(d.Subject()), handle: *d.Handle, outcome: Outcome(d.Outcome())}
		if l, ok := asked[i].Message.Payload.(*letter); ok {
			e.alone = strings.Contains(deref(l.attributes[HistoryAttribute].StringValue), `"alone":1`)
		}
		s.seen = append(s.seen, e)
	}
	return s.seen
}

// report tells the observer of the end of a request.
func (s *simulated) report(action world.Action, batch []*consumer.Delivery, got []world.Entry, err error) {
	seen := s.look(batch, got)
	s.observer.answered(seen)
	for i := range seen {
		if err == nil && got[i].Err == nil {
			s.observer.confirmed(action, seen[i], got[i])
		}
	}
}

func (s *simulated) heartbeat(batch []*consumer.Delivery) {
	asked := new([maxBatch]consumer.Entry)
	m := s.enter()
	requested := m.Now()
	batch = m.Renew(batch, asked)
	s.leave()
	renewed := func(replied *results) {
		s.enter().Renewed(batch, asked, replied, requested)
		s.leave()
		s.tellSettled()
	}
	if len(batch) == 0 {
		renewed(new(results))
		return
	}
	entries := make([]world.Entry, len(batch))
	hide(entries, asked[:len(batch)])
	s.observer.asks(heartbeat, s.look(batch, entries))
	s.queue.ChangeVisibility(s.beats, entries, func(got []world.Entry, err error) {
		s.report(heartbeat, batch, got, err)
		replied := resultsOf(got, err)
		renewed(&replied)
		s.interrupt()
	})
}

func (s *simulated) wake(w *consumer.Waking) {
	entries := make([]world.Entry, len(w.Handles))
	for i, handle := range w.Handles {
		entries[i].Receipt = receiptOf(*handle)
	}
	s.queue.ChangeVisibility(s.beats, entries, func(got []world.Entry, err error) {
		replied := resultsOf(got, err)
		for i := range got {
			if replied[i].Err == nil {
				s.observer.confirmed(wakeUp, entry{}, got[i])
			}
		}
		s.enter().Woken(w, &replied)
		s.leave()
	})
}
