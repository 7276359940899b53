package stranger_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
)

// mapping is an event source mapping and the instances of its function: a process of a version with Lambda.
type mapping struct {
	p       *program
	client  reprise.Client
	make    func(reprise.Client) (function, error)
	polls   context.Context // ends when the mapping is stopped
	halt    context.CancelFunc
	alive   context.Context // ends when all instances die
	kill    context.CancelFunc
	pollers sync.WaitGroup
}

type function func(context.Context, repriselambda.Event) (repriselambda.Response, error)

// invocation is what is known of one.
type invocation struct {
	process         int
	began, deadline time.Duration
	ended           time.Duration // when it had returned; 0: it has not, or too late
	died            time.Duration // 0: it did not
	messages        map[string]int
	named           []string
	err             error
	kill            context.CancelFunc
}

// die kills the instance of the invocation. The world's lock is held.
func (in *invocation) die(now time.Duration) {
	if in.died == 0 && in.ended == 0 {
		in.died = max(now, 1)
		in.kill()
	}
}

type invocationKey struct{}

// invocationOf returns the invocation to which a handler belongs: "Handlers' contexts have the values of the invocation's context".
func invocationOf(ctx context.Context) *invocation {
	in, _ := ctx.Value(invocationKey{}).(*invocation)
	return in
}

// functionConfig makes the Config of a function of what a consumer of its version would have.
func (v settings) functionConfig(client reprise.Client, cfg reprise.Config) repriselambda.Config {
	return repriselambda.Config{
		Client: client, Concurrency: v.Concurrency, Retry: cfg.Retry, Via: v.Via, DeadLetterURL: cfg.DeadLetterURL, Name: cfg.Name,
		SigningKeys: cfg.SigningKeys, Observer: cfg.Observer, Logger: cfg.Logger,
	}
}

func (v settings) batchFunctionConfig(client reprise.Client, cfg reprise.Config) repriselambda.BatchConfig {
	return repriselambda.BatchConfig{Config: v.functionConfig(client, cfg), Size: v.BatchSize, Bytes: v.BatchBytes}
}

// timeout is the function's.
func (v settings) timeout() time.Duration { return cmp.Or(v.Timeout, 30*time.Second) }

// mapTo starts a mapping of the queue to a function.
func (p *program) mapTo(client reprise.Client, v settings, cfg reprise.Config) {
	w := p.w
	m := &mapping{p: p, client: client}
	m.make = func(c reprise.Client) (function, error) {
		if v.Batch {
			return repriselambda.SQSBatch(p, v.batchFunctionConfig(c, cfg))
		}
		return repriselambda.SQS(p, v.functionConfig(c, cfg))
	}
	if _, err := m.make(client); err != nil {
		w.refuse(err)
		return
	}
	m.polls, m.halt = context.WithCancel(context.Background())
	m.alive, m.kill = context.WithCancel(context.Background())
	w.mu.Lock()
	p.function, p.life.program = m, p
	w.mu.Unlock()
	for range max(1, v.Instances) {
		m.pollers.Add(1)
		w.busy.Go(func() {
			defer m.pollers.Done()
			m.poll(v)
		})
	}
	p.endAsPlanned()
}

// stop stops the mapping: invocations under way end by themselves.
func (m *mapping) stop() {
	m.halt()
	m.pollers.Wait()
	w := m.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	m.p.life.until = w.now()
}

// crash ends all instances at once. The world's lock is held.
func (m *mapping) crash() {
	m.halt()
	m.kill()
	for _, in := range m.p.w.invocations {
		if in.process == m.p.number {
			in.die(m.p.w.now())
		}
	}
}

// poll receives and invokes until the mapping is stopped, as one of Lambda's pollers with an instance of the function does. The
// receives have the visibility timeout that AWS recommends, six times the function's.
func (m *mapping) poll(v settings) {
	w := m.p.w
	var call function
	var die context.CancelFunc
	var instance context.Context
	for m.polls.Err() == nil {
		in := receiveAll(w.q.URL())
		in.MaxNumberOfMessages, in.WaitTimeSeconds = int32(max(1, min(v.EventSize, 10))), 20
		in.VisibilityTimeout = int32(6 * v.timeout() / time.Second)
		out, err := m.client.ReceiveMessage(m.polls, in)
		if err != nil || len(out.Messages) == 0 {
			if err != nil {
				w.sleep(time.Second)
			}
			if isClosed(w.done) {
				return
			}
			continue
		}
		if instance == nil || instance.Err() != nil { // a new one
			instance, die = context.WithCancel(m.alive)
			if call, err = m.make(cut{m.client, instance}); err != nil {
				w.refuse(err)
				die()
				return
			}
		}
		m.invoke(call, instance, die, v, out.Messages)
	}
	if die != nil {
		die()
	}
}

// invoke invokes the function with what was received, and deletes what it does not name.
func (m *mapping) invoke(call function, instance context.Context, die context.CancelFunc, v settings, received []types.Message) {
	w := m.p.w
	w.mu.Lock()
	in := &invocation{process: m.p.number, began: w.now(), deadline: w.now() + v.timeout(), messages: make(map[string]int), kill: die}
	for _, r := range received {
		in.messages[*r.MessageId] = number(*r.Body)
	}
	w.invocations = append(w.invocations, in)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithValue(instance, invocationKey{}, in), v.timeout())
	defer cancel()
	type reply struct {
		response repriselambda.Response
		err      error
	}
	replies := make(chan reply, 1)
	w.busy.Go(func() {
		response, err := call(ctx, eventOf(received, w.q.ARN()))
		replies <- reply{response, err}
	})
	select {
	case <-ctx.Done(): // its time is over, or it has died
		w.mu.Lock()
		in.die(w.now())
		w.mu.Unlock()
	case r := <-replies:
		w.mu.Lock()
		in.ended, in.err = w.now(), r.err
		for _, f := range r.response.BatchItemFailures {
			in.named = append(in.named, f.ItemIdentifier)
		}
		w.mu.Unlock()
		if r.err == nil {
			m.remove(received, in.named)
		}
	}
}

// remove deletes what a reply does not name.
func (m *mapping) remove(received []types.Message, named []string) {
	var entries []types.DeleteMessageBatchRequestEntry
	for _, r := range received {
		if !slices.Contains(named, *r.MessageId) {
			entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: r.MessageId, ReceiptHandle: r.ReceiptHandle})
		}
	}
	entries = slices.CompactFunc(entries, func(a, b types.DeleteMessageBatchRequestEntry) bool { return *a.Id == *b.Id })
	for tries := 0; len(entries) > 0 && tries < 5; tries++ {
		url := m.p.w.q.URL()
		out, err := m.client.DeleteMessageBatch(m.alive, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
		if err != nil {
			m.p.w.sleep(time.Second)
			continue
		}
		entries = slices.DeleteFunc(entries, func(e types.DeleteMessageBatchRequestEntry) bool {
			return !slices.ContainsFunc(out.Failed, func(f types.BatchResultErrorEntry) bool { return *f.Id == *e.Id })
		})
	}
}

// eventOf makes the event of a mapping, by way of its JSON.
func eventOf(received []types.Message, arn string) (event repriselambda.Event) {
	var sent repriselambda.Event
	for _, m := range received {
		r := repriselambda.Record{
			MessageID: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes, MD5OfBody: str(m.MD5OfBody),
			MD5OfMessageAttributes: str(m.MD5OfMessageAttributes), EventSourceARN: arn, MessageAttributes: make(map[string]repriselambda.Attribute),
		}
		for name, a := range m.MessageAttributes {
			r.MessageAttributes[name] = repriselambda.Attribute{DataType: *a.DataType, StringValue: a.StringValue, BinaryValue: a.BinaryValue}
		}
		sent.Records = append(sent.Records, r)
	}
	text, err := json.Marshal(sent)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(text, &event); err != nil {
		panic(err)
	}
	return event
}

// cut is the connection of an instance, which ends with it.
type cut struct {
	reprise.Client
	alive context.Context
}

var errCut = errors.New("the instance is dead: its connection is cut")

func (c cut) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return through(c, ctx, in, o, c.Client.ChangeMessageVisibilityBatch)
}

func (c cut) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return through(c, ctx, in, o, c.Client.SendMessageBatch)
}

func (c cut) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return through(c, ctx, in, o, c.Client.GetQueueAttributes)
}

func through[In, Out any](c cut, ctx context.Context, in *In, o []func(*sqs.Options), call func(context.Context, *In, ...func(*sqs.Options)) (*Out, error)) (*Out, error) {
	if c.alive.Err() != nil {
		return nil, errCut
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.alive, cancel)()
	out, err := call(ctx, in, o...)
	if c.alive.Err() != nil {
		return nil, errCut
	}
	return out, err
}

// drawLambda draws functions in the place of consumers, or beside them.
func (s *scenario) drawLambda() {
	d := s.own("lambda")
	if !d.chance(0.15) {
		return
	}
	consumers := len(s.Versions)
	for _, v := range s.Versions {
		v.Lambda, v.Pooled = true, false
		v.Lane, v.LaneShare = false, reprise.Share{} // a function does not receive from a lane
		v.Timeout = d.whole(time.Second, 15*time.Minute)
		v.EventSize = 1 + d.IntN(10)
		v.Instances = 1 + d.IntN(3)
		if v.Batch && v.BatchSize == 0 && v.Concurrency > 10 { // "With a Concurrency above 10 set a Size"
			v.BatchSize = d.count(1, 1000)
		}
		if s.Queue.FIFO {
			v.Via = reprise.ViaVisibility
		}
		s.Versions = append(s.Versions, v)
	}
	mixed := d.chance(0.5)
	if mixed && len(s.Processes) == 1 {
		s.Processes = append(s.Processes, process{})
	}
	for i := range s.Processes {
		if !mixed || i == 0 || d.chance(0.5) && i != 1 {
			s.Processes[i].Version += consumers
		}
	}
}
